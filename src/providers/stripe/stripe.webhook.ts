import type { ProviderEvent, ReturnedMoney, WebhookReading } from '../payment-provider.js';
import { checkTimestampedSignature } from '../webhook-signature.js';
import type { SignedRequest } from '../webhook-signature.js';
import { fromStripeAmount } from './stripe.money.js';
import { mapEvent } from './stripe.mapping.js';
import { isFields, readMovement, wordOf } from './stripe.object.js';
import type { StripeMovement, StripeResource } from './stripe.object.js';

const SIGNATURE_HEADER = 'stripe-signature';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Verifies `Stripe-Signature` over the raw bytes, at most 300 s old and 60 s ahead (the SDK's verifier
 * accepts any time ahead), then reads the event. An event about anything else than this provider's
 * resource is an event without a payment: Stripe need not send it again, and an endpoint that is told of
 * everything does no harm.
 * @param livemode events of the other mode are unreadable: they are about another world.
 */
export function readWebhook(
  request: SignedRequest,
  livemode: boolean,
  resource: StripeResource,
): WebhookReading {
  const refusal = checkTimestampedSignature(SIGNATURE_HEADER, request);
  if (refusal) return { kind: 'refused', reason: refusal };
  const event = eventOf(parse(request.raw), livemode, resource);
  return event ? { kind: 'event', event } : { kind: 'refused', reason: 'unreadable' };
}

/** @returns null when the value is not, in full, an event of the Events API of this mode. */
function eventOf(event: unknown, livemode: boolean, resource: StripeResource): ProviderEvent | null {
  if (!isFields(event) || event['object'] !== 'event' || event['livemode'] !== livemode) return null;
  const { id, type, created, data } = event;
  if (typeof id !== 'string' || !/^evt_[0-9A-Za-z_]{4,120}$/.test(id)) return null;
  if (typeof type !== 'string' || !/^[a-z0-9_.]{1,80}$/.test(type) || !isFields(data)) return null;
  const object = isFields(data['object']) ? data['object'] : {};
  const movement = readMovement(object, resource);
  const returned = returnedBy(type, object, movement, data);
  const isAboutCharge = resource === 'payment_intent';
  return {
    eventId: id,
    type,
    occurredAtMs: isSecond(created) ? created * 1000 : null,
    // A refund and a dispute name the PaymentIntent that they are about.
    providerRef: movement?.id ?? (isAboutCharge ? textOf(object['payment_intent']) : null),
    paymentId: movement?.paymentId ?? null,
    generation: movement?.generation ?? null,
    providerKey: movement?.providerKey ?? null,
    result: movement && mapEvent(movement),
    returned: isAboutCharge === (type === 'transfer.reversed') ? null : returned,
  };
}

/** Money that came back: a reversal of a transfer, a refund that was paid, a dispute that took it. */
function returnedBy(
  type: string,
  object: Fields,
  movement: StripeMovement | null,
  data: Fields,
): ReturnedMoney | null {
  switch (type) {
    case 'transfer.reversed':
      return movement && reversalOf(object, movement.currency, data['previous_attributes']);
    case 'refund.created':
    case 'refund.updated':
      return object['status'] === 'succeeded' ? returnOf(object, 'refunded') : null;
    case 'charge.dispute.funds_withdrawn':
      return returnOf(object, 'disputed');
    default:
      return null;
  }
}

/** The newest reversal; its amount must be what the event says was added, else nobody can tell. */
function reversalOf(transfer: Fields, currency: string, previous: unknown): ReturnedMoney | null {
  const reversals = isFields(transfer['reversals']) ? transfer['reversals']['data'] : undefined;
  const newest: unknown = Array.isArray(reversals) ? reversals[0] : undefined;
  if (!isFields(newest)) return null;
  const before = isFields(previous) ? previous['amount_reversed'] : undefined;
  const after = transfer['amount_reversed'];
  if (typeof before === 'number' && typeof after === 'number' && newest['amount'] !== after - before)
    return null;
  return returnOf({ ...newest, currency: currency.toLowerCase() }, 'transfer_reversed');
}

function returnOf({ id, amount, currency }: Fields, code: string): ReturnedMoney | null {
  if (typeof id !== 'string' || !/^[0-9A-Za-z_]{4,120}$/.test(id)) return null;
  if (!Number.isSafeInteger(amount) || (amount as number) < 1) return null;
  const upper = wordOf(currency)?.toUpperCase() ?? '';
  const amountMinor = fromStripeAmount(BigInt(amount as number), upper);
  return amountMinor === null ? null : { returnId: id, amountMinor, currency: upper, code };
}

function parse(raw: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw)) as unknown;
  } catch {
    return null;
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && /^pi_[0-9A-Za-z_-]{4,200}$/.test(value) ? value : null;
}

function isSecond(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < 1e11;
}
