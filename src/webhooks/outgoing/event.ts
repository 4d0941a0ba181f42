import { assert } from '../../domain/assert.js';
import { formatInstant, instantFromPostgres } from '../../domain/instant.js';
import { isPaymentId } from '../../domain/payment-id.js';
import { PAYMENT_STATES, type PaymentState } from '../../domain/payment-state.js';

/**
 * One transition, told to a client. Thin: it names the payment and what became of it, and a client
 * that wants more reads the payment with its own key. No amount, destination, reference or key.
 */
export interface ClientEvent {
  readonly paymentId: string;
  /** The payment's version that the transition made. */
  readonly version: number;
  readonly state: PaymentState;
  /** When the payment moved: the database's clock, as Postgres writes it. */
  readonly occurredAt: string;
}

export type EventType = `payment.${PaymentState}`;

/** Every type that an endpoint can ask for: one for each state that a payment can enter. */
export const EVENT_TYPES: readonly EventType[] = PAYMENT_STATES.map((state) => `payment.${state}` as const);

/** Largest body of an event, in bytes; receivers rely on it. */
export const MOST_EVENT_BYTES = 20 * 1024;

const EVENT_ID = /^evt_([a-z2-7]{32})_([1-9][0-9]{0,8})$/;

/**
 * The id of an event: the same for every endpoint, every try and every resend of one transition, so
 * that a receiver knows a repeat by it.
 */
export function eventId({ paymentId, version }: Pick<ClientEvent, 'paymentId' | 'version'>): string {
  return `evt_${paymentId.slice('pay_'.length)}_${version}`;
}

/** The payment and version inside an event id; null for a text of another form. */
export function readEventId(text: string): { readonly paymentId: string; readonly version: number } | null {
  const m = EVENT_ID.exec(text);
  const paymentId = `pay_${m?.[1]}`;
  return m && isPaymentId(paymentId) ? { paymentId, version: Number(m[2]) } : null;
}

/** The body as it is signed and sent. Same event, same text. */
export function eventBody(event: ClientEvent): string {
  const body = JSON.stringify({
    id: eventId(event),
    type: `payment.${event.state}` satisfies EventType,
    occurred_at: formatInstant(instantFromPostgres(event.occurredAt)),
    payment_id: event.paymentId,
    version: event.version,
  });
  assert(Buffer.byteLength(body) <= MOST_EVENT_BYTES, 'an event fits into its limit');
  return body;
}
