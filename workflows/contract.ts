/**
 * What crosses the border between the product and Temporal. Ids, codes, versions, whole
 * milliseconds and nothing else: payloads are shown in clear in the Web UI.
 */

export const TASK_QUEUE = 'payments';
export const EXECUTE_PAYMENT = 'executePayment';
export const RECONCILE_PAYMENTS = 'reconcilePayments';
export const CANCEL_SIGNAL = 'cancel';
export const WAKE_SIGNAL = 'wake';

/** What the workflow knows of a payment. Durations are measured on the database's clock. */
export interface ArmHint {
  readonly version: number;
  /** Milliseconds from the reading until the due time; may be negative. */
  readonly dueInMs: number;
  /** Milliseconds from the reading until the pair is to be armed; may be negative. */
  readonly armInMs: number;
}

/** What a wake may bring: new times. `inquire` was a word of release 0.1: it is kept for its histories. */
export type WakeNews = ArmHint | 'inquire';

/** What a run that left the workers' memory waits for; a wake or its time goes on. */
export type WaitsFor = 'submitted' | 'unknown' | 'review';

export interface ExecutePaymentInput extends ArmHint {
  readonly paymentId: string;
  readonly lane: string;
  /** The run looks at its row first: it was woken, or has waited for long. Absent in a payment's first run. */
  readonly waitsFor?: WaitsFor;
}

/** Input of both armed activities; the worker reads everything else from the row. */
export interface ArmedPayment {
  readonly paymentId: string;
  readonly lane: string;
  readonly version: number;
}

export type FinalState = 'succeeded' | 'failed' | 'cancelled' | 'expired' | 'returned';

export type NotDue = { readonly kind: 'not_due' } & ArmHint;
export type Held = { readonly kind: 'held'; readonly version: number };
export type LaneBusy = {
  readonly kind: 'lane_busy';
  readonly version: number;
  readonly retryAfterMs: number;
};
export type Stopped = { readonly kind: 'stopped'; readonly state: FinalState };

/** `started` also answers for every later state that is not final. */
export type BeginSubmissionAnswer = { readonly kind: 'started' } | NotDue | Held | LaneBusy | Stopped;

/** Submitted or unknown: the workers ask the provider, and whoever moves the payment wakes its run. */
export type OutcomeOpen = { readonly kind: 'outcome_open'; readonly state: 'submitted' | 'unknown' };

/** What workers of release 0.1 said instead of `outcome_open`: the run asks by an activity. Its histories hold it. */
export type AskByActivity = { readonly kind: 'inquire' };

/**
 * stopped: final. outcome_open: nothing to do but to wait for news. review: people decide.
 * retry: proven not sent, the payment waits in `submitting` for `afterMs`.
 */
export type SubmitPaymentAnswer =
  | Stopped
  | OutcomeOpen
  | AskByActivity
  | { readonly kind: 'review' }
  | { readonly kind: 'retry'; readonly afterMs: number }
  | NotDue
  | Held
  | LaneBusy;

/** resend: T15 opened an attempt; submitPayment claims and calls it. */
export type InquireAnswer = Stopped | { readonly kind: 'review' } | { readonly kind: 'resend' };

/** `cancelled` is a final state too; `refused` means submission had started. */
export type CancelAnswer = Stopped | { readonly kind: 'refused' };

/** One read of the row: where the payment stands, and the hint when it waits. */
export type LookAnswer =
  | Stopped
  | ({ readonly kind: 'scheduled' } & ArmHint)
  | Held
  | { readonly kind: 'submitting' }
  | OutcomeOpen
  | AskByActivity
  | { readonly kind: 'review' };

/** The activities as the workflow sees them. */
export interface PaymentActivities {
  beginSubmission(input: ArmedPayment): Promise<BeginSubmissionAnswer>;
  submitPayment(input: ArmedPayment): Promise<SubmitPaymentAnswer>;
  /** Only runs of release 0.1 ask so. */
  inquire(input: { readonly paymentId: string }): Promise<InquireAnswer>;
  cancelPayment(input: { readonly paymentId: string }): Promise<CancelAnswer>;
  look(input: { readonly paymentId: string }): Promise<LookAnswer>;
}

/** What settlement lines that waited came to; see the service of the same name. */
export interface SettlementFollowedUp {
  readonly rejudged: number;
  readonly settled: number;
  readonly returned: number;
  readonly contradicted: number;
  readonly waiting: number;
  readonly failed: number;
}

/** Counts of one scheduled reconciliation. */
export interface ReconciledPayments extends SettlementFollowedUp {
  readonly woken: number;
}

/** The activities of the scheduled reconciliation. */
export interface ReconciliationActivities {
  followUpSettlement(): Promise<SettlementFollowedUp>;
  wakeOverdue(): Promise<{ readonly woken: number }>;
}
