import { z } from 'zod';

const url = z.url({ protocol: /^postgres(ql)?$/ });

/** The members of the environment that say where Postgres is and as whom we come. */
export const DatabaseEnvironment = {
  PAYMENTS_DATABASE_URL: url,
  PAYMENTS_RELAY_DATABASE_URL: url.optional(),
  PAYMENTS_READ_DATABASE_URL: url.optional(),
  PAYMENTS_DATABASE_POOL: z.coerce.number().int().min(2).default(12),
};

export interface DatabaseSettings {
  /** As `payments_api` in the API, as `payments_worker` in the worker. */
  readonly url: string;
  /** As `payments_relay`; null where nothing is published. */
  readonly relayUrl: string | null;
  /** As `payments_read`; null where nothing is measured. */
  readonly readUrl: string | null;
  /** Largest number of connections of this process's first pool. */
  readonly poolSize: number;
}

export function databaseSettingsOf(env: z.infer<z.ZodObject<typeof DatabaseEnvironment>>): DatabaseSettings {
  return Object.freeze({
    url: env.PAYMENTS_DATABASE_URL,
    relayUrl: env.PAYMENTS_RELAY_DATABASE_URL ?? null,
    readUrl: env.PAYMENTS_READ_DATABASE_URL ?? null,
    poolSize: env.PAYMENTS_DATABASE_POOL,
  });
}

/** @throws Error with a sentence: a process that needs a pool of its own does not share another role's. */
export function neededUrl(settings: DatabaseSettings, of: 'relay' | 'read'): string {
  const found = of === 'relay' ? settings.relayUrl : settings.readUrl;
  if (found !== null) return found;
  const name = of === 'relay' ? 'PAYMENTS_RELAY_DATABASE_URL' : 'PAYMENTS_READ_DATABASE_URL';
  throw new Error(`${name} is missing: this process needs it, as the role payments_${of}. See .env.example.`);
}
