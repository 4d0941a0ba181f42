import { z } from 'zod';

/** Settings of the events that we send to clients. */
export const WebhookOutEnvironment = {
  PAYMENTS_WEBHOOK_OUT_PORTS: z
    .string()
    .regex(/^[1-9]\d{0,4}(,[1-9]\d{0,4})*$/)
    .optional(),
  PAYMENTS_WEBHOOK_OUT_LOOPBACK: z.stringbool().default(false),
  PAYMENTS_EGRESS_PROXY: z.url({ protocol: /^http$/ }).optional(),
};

export interface WebhookOutSettings {
  /** Ports of clients' endpoints beside 443. */
  readonly ports: readonly number[];
  /** Endpoints of this machine are allowed, on any port and without TLS; never in production. */
  readonly allowLoopback: boolean;
  /** HTTP proxy that every event goes through by CONNECT; null: directly. */
  readonly proxy: string | null;
}

/** @throws Error with a sentence when a setting is not allowed; never its value. */
export function webhookOutSettingsOf(
  e: z.infer<z.ZodObject<typeof WebhookOutEnvironment>>,
  mode: 'development' | 'production',
): WebhookOutSettings {
  if (e.PAYMENTS_WEBHOOK_OUT_LOOPBACK && mode === 'production') {
    throw new Error(
      'PAYMENTS_WEBHOOK_OUT_LOOPBACK is set in production, where a client could then reach this machine.',
    );
  }
  const ports = (e.PAYMENTS_WEBHOOK_OUT_PORTS ?? '443').split(',').map(Number);
  if (ports.some((port) => port > 65_535)) throw new Error('PAYMENTS_WEBHOOK_OUT_PORTS names no ports.');
  return Object.freeze({
    ports,
    allowLoopback: e.PAYMENTS_WEBHOOK_OUT_LOOPBACK,
    proxy: e.PAYMENTS_EGRESS_PROXY ?? null,
  });
}
