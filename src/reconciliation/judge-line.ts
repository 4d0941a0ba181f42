import type { PaymentState } from '../domain/payment-state.js';
import type { Bucket, SettlementLine } from './settlement-line.js';

/** The payment that a line names, by the provider's object or by our reference. */
export interface NamedPayment {
  readonly id: string;
  readonly provider: string;
  readonly amount: bigint;
  readonly currency: string;
  readonly state: PaymentState;
  readonly providerRef: string | null;
  /** Null: never sent. */
  readonly lastGeneration: number | null;
  /** The line's generation was opened; null: the line names none. */
  readonly knowsGeneration: boolean | null;
  /** From submission start to the line's booking, in ms; database's clock to provider's. Null: never sent. */
  readonly bookedAfterMs: number | null;
  /** Another line of kind payment tells of it already. */
  readonly hasOtherLine: boolean;
  /** It was reported missing, and no line told of it since. */
  readonly wasMissing: boolean;
}

export interface LineFacts {
  readonly provider: string;
  /** The payment whose provider_ref is the line's source id. */
  readonly bySource: string | null;
  /** Null: neither the source id nor the reference names a payment. */
  readonly payment: NamedPayment | null;
}

/** What is to be done about a line after it is stored. */
export type FollowUp = 'settle' | 'contradict' | 'return';

export type Unexpected =
  | 'no_payment'
  | 'no_reference'
  | 'two_payments'
  | 'other_provider'
  | 'never_sent'
  | 'unknown_generation'
  | 'other_generation'
  | 'second_line'
  | 'other_object'
  | 'after_failed';

export interface Judgement {
  readonly bucket: Exclude<Bucket, 'missing_at_provider' | 'duplicate' | 'unreadable'>;
  /** A code; null: the bucket says it all. */
  readonly reason: string | null;
  readonly paymentId: string | null;
  readonly followUp: FollowUp | null;
}

/** States of a payment that its provider cannot have: nothing was sent, or it was refused. */
const NEVER_SENT: readonly PaymentState[] = ['scheduled', 'held', 'cancelled', 'expired'];
/** States that a line can still decide. */
const OPEN: readonly PaymentState[] = ['submitting', 'submitted', 'unknown', 'needs_review'];

/**
 * Which bucket a line belongs to. Pure: what is known comes in as facts, limits as arguments.
 *
 * The first fault wins, from identity to money to time: who is meant, whether it may be there at all,
 * whether it is there once, whether every money field is equal, whether it came in time. Only a line
 * without fault is proof of a success; destination is no column of a settlement file, so the line
 * must name the payment and the newest generation by our reference, or the object that we know.
 * @param lagMs booking lag: a line booked later than this after submission start is late.
 */
export function judgeLine(line: SettlementLine, facts: LineFacts, lagMs: number): Judgement {
  const { payment } = facts;
  const paymentId = payment?.id ?? null;
  if (line.kind === 'other') return { bucket: 'other', reason: null, paymentId, followUp: null };
  if (line.kind === 'payment' ? line.grossMinor >= 0n : line.grossMinor <= 0n) {
    return { bucket: 'sign_flipped', reason: null, paymentId, followUp: null };
  }
  const unexpected = whyUnexpected(line, facts);
  if (unexpected !== null || payment === null) {
    const followUp = payment === null ? null : 'contradict';
    return { bucket: 'unexpected_at_provider', reason: unexpected, paymentId, followUp };
  }
  const differs = moneyDiffers(line, payment);
  if (differs !== null) {
    const followUp = differs === 'fee_differs' ? null : 'contradict';
    return { bucket: differs, reason: null, paymentId, followUp };
  }
  if (line.kind === 'return') return { bucket: 'returned', reason: null, paymentId, followUp: 'return' };
  const followUp = OPEN.includes(payment.state) ? 'settle' : null;
  if (payment.wasMissing) return { bucket: 'late', reason: 'was_missing', paymentId, followUp };
  if (payment.bookedAfterMs !== null && payment.bookedAfterMs > lagMs) {
    return { bucket: 'late', reason: 'booked_late', paymentId, followUp };
  }
  return { bucket: 'matched', reason: null, paymentId, followUp };
}

function whyUnexpected(line: SettlementLine, { provider, bySource, payment }: LineFacts): Unexpected | null {
  if (payment === null) return line.paymentId === null ? 'no_reference' : 'no_payment';
  if (bySource !== null && line.paymentId !== null && bySource !== line.paymentId) return 'two_payments';
  if (payment.provider !== provider) return 'other_provider';
  if (payment.lastGeneration === null || NEVER_SENT.includes(payment.state)) return 'never_sent';
  if (payment.knowsGeneration === false) return 'unknown_generation';
  if (line.generation !== null && line.generation !== payment.lastGeneration) return 'other_generation';
  if (line.kind === 'return') return null;
  // A return has an object of its own; a second object that paid is a second payment.
  if (payment.providerRef !== null && line.sourceId !== null && payment.providerRef !== line.sourceId) {
    return 'other_object';
  }
  if (payment.hasOtherLine) return 'second_line';
  return payment.state === 'failed' ? 'after_failed' : null;
}

type Differs = 'currency_differs' | 'amount_differs' | 'fee_differs';

function moneyDiffers(line: SettlementLine, payment: NamedPayment): Differs | null {
  if (line.currency !== payment.currency) return 'currency_differs';
  const moved = line.grossMinor < 0n ? -line.grossMinor : line.grossMinor;
  // Part of a payment may come back; a payment leaves whole.
  if (line.kind === 'return' ? moved > payment.amount : moved !== payment.amount) return 'amount_differs';
  return line.feeMinor < 0n || line.netMinor !== line.grossMinor - line.feeMinor ? 'fee_differs' : null;
}
