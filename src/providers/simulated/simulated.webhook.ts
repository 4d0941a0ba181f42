import type {
  ProviderDescriptor,
  ProviderEvent,
  WebhookHeaders,
  WebhookReading,
} from '../payment-provider.js';
import { checkStandardWebhook, checkTimestampedSignature } from '../webhook-signature.js';
import type { SignatureRefusal, SignedRequest } from '../webhook-signature.js';
import { parseWithExactAmount } from './simulated.json.js';
import { mapEvent } from './simulated.mapping.js';
import { payoutOf } from './simulated.response.js';
import { paymentOf } from './simulated.request.js';

const SIGNATURE_HEADER = 'simulated-signature';

export interface IncomingWebhook {
  readonly scheme: ProviderDescriptor['webhooks'];
  readonly raw: Buffer;
  readonly headers: WebhookHeaders;
  readonly secrets: readonly string[];
  readonly nowMs: number;
}

/**
 * Verifies by the one scheme that the descriptor declares, then reads the provider's event:
 * `{"object":"event","id":"evt_…","type":"payout.…","created":<epoch s>,"livemode":false,
 * "request":{"idempotency_key":…},"data":{"object":<payout>}}`. A return is a member of the payout.
 */
export function readWebhook(webhook: IncomingWebhook): WebhookReading {
  const refusal = checkSignature(webhook.scheme, webhook);
  if (refusal) return { kind: 'refused', reason: refusal };
  const event = eventOf(textOf(webhook.raw));
  return event ? { kind: 'event', event } : { kind: 'refused', reason: 'unreadable' };
}

function checkSignature(
  scheme: ProviderDescriptor['webhooks'],
  request: SignedRequest,
): SignatureRefusal | null {
  switch (scheme) {
    case 'simulated_v1':
      return checkTimestampedSignature(SIGNATURE_HEADER, request);
    case 'standard_webhooks':
      return checkStandardWebhook(request);
    case 'stripe_v1':
    case 'none':
      // Nothing that such a provider could sign: nothing is believed.
      return 'unsigned';
  }
}

/** @returns null when the text is not, in full, an event of this provider's test world. */
function eventOf(text: string | null): ProviderEvent | null {
  const event = text === null ? undefined : parseWithExactAmount(text);
  if (!isObject(event) || event['object'] !== 'event' || event['livemode'] !== false) return null;
  const { id, type, created, request, data } = event;
  if (typeof id !== 'string' || !/^evt_[0-9A-Za-z]{8,64}$/.test(id)) return null;
  if (typeof type !== 'string' || !/^[a-z0-9_.]{1,64}$/.test(type)) return null;
  if (!isObject(data)) return null;
  // An event about something else is an event: its sender need not send it again.
  const payout = payoutOf(data['object']);
  const payment = payout && paymentOf(payout.reference);
  return {
    eventId: id,
    type,
    occurredAtMs: isSecond(created) ? created * 1000 : null,
    providerRef: payout?.id ?? null,
    paymentId: payment?.paymentId ?? null,
    generation: payment?.generation ?? null,
    providerKey: providerKeyOf(request),
    result: payout && mapEvent(payout),
    returned: payout?.returned ?? null,
  };
}

/** The generation's key: a commit was sent under the same one with a suffix. */
function providerKeyOf(request: unknown): string | null {
  const key = isObject(request) ? request['idempotency_key'] : undefined;
  if (typeof key !== 'string' || key.length === 0 || key.length > 255) return null;
  return key.replace(/:commit(:2)?$/, '');
}

function textOf(raw: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(raw);
  } catch {
    return null;
  }
}

function isSecond(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < 1e11;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
