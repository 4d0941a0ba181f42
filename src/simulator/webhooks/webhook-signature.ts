import { createHmac } from 'node:crypto';
import type { WebhookEndpoint } from './webhook-endpoint.js';

/** What is signed: the bytes of the body as sent, and when. */
export interface Signed {
  readonly eventId: string;
  /** Whole epoch seconds of the wall clock: receivers compare it with theirs. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * The signature headers of one delivery.
 *
 * stripe: `Stripe-Signature: t=<seconds>,v1=<hex>` (simulated: `Simulated-Signature`), an HMAC-SHA256 over `<t>.<body>` under the whole
 * text of the secret. standard: `webhook-id`, `webhook-timestamp` and `webhook-signature:
 * v1,<base64>`, an HMAC-SHA256 over `<id>.<timestamp>.<body>` under the decoded rest of the secret
 * after `whsec_`. Several secrets give several signatures.
 */
export function signatureHeaders(
  { scheme, secrets }: Pick<WebhookEndpoint, 'scheme' | 'secrets'>,
  { eventId, timestamp, body }: Signed,
): Record<string, string> {
  if (scheme !== 'standard') {
    const signatures = secrets.map(
      (secret) => `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`,
    );
    return { [`${scheme}-signature`]: [`t=${timestamp}`, ...signatures].join(',') };
  }
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${eventId}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}
