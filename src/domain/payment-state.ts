/**
 * The states of a payment and the moves between them, as data. The SQL edge check, the state
 * diagram, the gate and the tests are derived from this table; nothing else lists edges.
 */

/** Every state, in the order of a payment's life. Stored and shown exactly like this. */
export const PAYMENT_STATES = [
  'scheduled',
  'held',
  'submitting',
  'submitted',
  'unknown',
  'needs_review',
  'succeeded',
  'failed',
  'cancelled',
  'expired',
  'returned',
] as const;
export type PaymentState = (typeof PAYMENT_STATES)[number];

/** States that end a payment. `succeeded` may still become `returned` (T21). */
export const FINAL_STATES = [
  'succeeded',
  'failed',
  'cancelled',
  'expired',
  'returned',
] as const satisfies readonly PaymentState[];

/** States in which the provider may have the payment: cancel is closed for good. */
export const STARTED_STATES = [
  'submitting',
  'submitted',
  'unknown',
  'needs_review',
] as const satisfies readonly PaymentState[];

export type TransitionId =
  | 'T1' | 'T2' | 'T3' | 'T4' | 'T5' | 'T6' | 'T7' | 'T8' | 'T9' | 'T10' | 'T11'
  | 'T12' | 'T13' | 'T14' | 'T15' | 'T16' | 'T17' | 'T18' | 'T19' | 'T20' | 'T21' | 'T22'; // prettier-ignore

/** The operation that asks for a move; the same word in routes, activities, metrics and tests. */
export type Cause =
  | 'create'
  | 'reschedule'
  | 'hold'
  | 'prepare_failed'
  | 'recovery'
  | 'release'
  | 'cancel'
  | 'expire'
  | 'begin-submission'
  | 'record-outcome'
  | 'resend'
  | 'escalate'
  | 'resolve'
  | 'record-return'
  | 'recover';

export interface TransitionRule {
  readonly id: TransitionId;
  /** Empty only for T1: a payment that does not exist yet. */
  readonly from: readonly PaymentState[];
  readonly to: readonly PaymentState[];
  readonly causes: readonly Cause[];
  /** The guard beyond the state, in the words of the design; the SQL stands beside the gate. */
  readonly guard: string;
}

const rule = (
  id: TransitionId,
  from: readonly PaymentState[],
  to: readonly PaymentState[],
  causes: readonly Cause[],
  guard: string,
): TransitionRule => Object.freeze({ id, from, to, causes, guard });

/** T1 to T22 of the domain page. An edge that is not here does not exist. */
export const TRANSITIONS: readonly TransitionRule[] = Object.freeze([
  rule('T1', [], ['scheduled'], ['create'], 'unique tenant and idempotency key; limits'),
  rule('T2', ['scheduled'], ['scheduled'], ['reschedule'], 'version as given; new time not in the past'),
  rule('T3', ['scheduled'], ['held'], ['hold', 'prepare_failed', 'recovery'], 'none'),
  rule('T4', ['held'], ['scheduled'], ['release'], 'not_after in the future'),
  rule('T5', ['scheduled', 'held'], ['cancelled'], ['cancel'], 'none: no attempt exists before T7'),
  rule('T6', ['scheduled', 'held'], ['expired'], ['expire'], 'database clock after not_after; no recovery hold'),
  rule('T7', ['scheduled'], ['submitting'], ['begin-submission'], 'database clock within execute_at and not_after; lane open'),
  rule('T8', ['submitting'], ['submitted'], ['record-outcome'], 'attempt open and ours, closed accepted'),
  rule('T9', ['submitting'], ['succeeded'], ['record-outcome'], 'as T8; amount, currency, destination equal'),
  rule('T10', ['submitting'], ['failed'], ['record-outcome'], 'attempt refused; nothing ambiguous in the generation'),
  rule('T11', ['submitting'], ['submitting'], ['resend'], 'attempt not sent; budget, key life and deadline not over'),
  rule('T12', ['submitting'], ['failed'], ['record-outcome'], 'attempt not sent; budget or deadline over; nothing ambiguous'),
  rule('T13', ['submitting'], ['unknown'], ['record-outcome'], 'closes the attempt ambiguous'),
  rule('T14', ['unknown'], ['submitted', 'succeeded', 'failed'], ['record-outcome'], 'evidence row'),
  rule('T15', ['unknown'], ['submitting'], ['resend'], 'rule 7 of the provider page; opens the next attempt'),
  rule('T16', ['submitting', 'submitted', 'unknown'], ['needs_review'], ['escalate'], 'case row'),
  rule('T17', ['submitted'], ['succeeded', 'failed'], ['record-outcome'], 'evidence row'),
  rule('T18', ['needs_review'], ['succeeded', 'failed', 'submitted'], ['resolve'], 'two distinct people; version as given'),
  rule('T19', ['needs_review'], ['submitting'], ['resolve'], 'two distinct people; as T15, or proof of non-execution'),
  rule('T20', ['needs_review'], ['submitted', 'succeeded', 'failed'], ['record-outcome'], 'decisive evidence; closes the case'),
  rule('T21', ['succeeded'], ['returned'], ['record-return'], 'return id unique; amount at most what was paid'),
  rule('T22', ['scheduled', 'held'], ['needs_review'], ['recover'], 'recovery hold is on; evidence row'),
]); // prettier-ignore

/**
 * The rule with this id.
 * @throws Error for an id outside T1 to T22: a bug in the caller.
 */
export function transition(id: TransitionId): TransitionRule {
  const found = TRANSITIONS.find((t) => t.id === id);
  if (!found) throw new Error(`no transition ${id}`);
  return found;
}

/** True when some rule leads from `from` to `to` (null: from nothing). */
export function isLegalEdge(from: PaymentState | null, to: PaymentState): boolean {
  return TRANSITIONS.some((t) =>
    from === null ? t.from.length === 0 && t.to.includes(to) : t.from.includes(from) && t.to.includes(to),
  );
}

/** True when the payment can do nothing more, T21 apart. */
export function isFinal(state: PaymentState): boolean {
  return (FINAL_STATES as readonly PaymentState[]).includes(state);
}
