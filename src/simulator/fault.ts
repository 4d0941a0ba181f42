/** The calls a script can disturb, and the events that the provider sends by itself. */
export const OPERATIONS = ['submit', 'commit', 'lookup', 'cancel', 'webhook'] as const;
export type Operation = (typeof OPERATIONS)[number];
/** The operations that are requests of a client. */
export type CallOperation = Exclude<Operation, 'webhook'>;

/**
 * Ways to go wrong. `_before`: nothing was executed. `_after`: executed and in the ledger, only the
 * answer is wrong.
 */
const FAULTS_OF_ANY_CALL = [
  'none',
  /** Never answers, never executes. */
  'hang',
  /** Executes, never answers. */
  'hang_after',
  'reset_before',
  'reset_after',
  /** `httpStatus` gives another status than 500. */
  'http_500_before',
  'http_500_after',
  'http_502_html_before',
  'http_502_html_after',
  /** JSON that is not in the provider's error form, as proxies send it. */
  'http_502_json_before',
  'http_502_json_after',
  'http_404_json_before',
  'http_404_json_after',
  'empty_200_before',
  'empty_200_after',
  'broken_json_after',
  /** Announces the whole body, sends half of it and cuts the connection. */
  'truncate_after',
  'unknown_status_after',
  /** An error that repeats the whole object in its message and the destination as its code. */
  'echo_error_after',
  'other_amount_after',
  'other_currency_after',
  'other_destination_after',
  /** Shows another payment's object. */
  'other_object_after',
  'http_429',
  'http_401',
  'http_403',
  /** Says that another request holds the key. */
  'http_409_in_use',
  /** Says that the key was used with other parameters. */
  'http_400_key_reused',
  /** Executes at once, answers after `afterMs`; the key is busy meanwhile. */
  'slow',
  'redirect_307',
  /** The process kills itself (SIGKILL) before it executes. */
  'kill_before',
  /** The process kills itself (SIGKILL) once the ledger is written, before it answers. */
  'kill_after',
] as const;
const FAULTS_OF_WRITES = [
  'decline',
  'decline_funds',
  'pending_then_final',
  /** Executes after `afterMs` and never answers. */
  'late_commit',
  /** Executes `copies` times and shows the first. */
  'double',
  /** Succeeds; the money comes back after `afterMs` of the virtual clock. */
  'return_after',
] as const;
const FAULTS_OF_LOOKUPS = [
  /** Says that nothing exists, whatever exists. */
  'lookup_absent',
  'lookup_500',
  /** Sees the account as it was `afterMs` of the virtual clock ago. */
  'lookup_lag',
  /** Shows the status before the last one. */
  'lookup_stale',
  /** Lists leave the objects out; a read by id finds them. */
  'lookup_lost_rows',
  /** Lists show each object a second time under another id. */
  'lookup_two_hits',
] as const;
const FAULTS_OF_WEBHOOKS = [
  'none',
  'drop',
  /** Sends the event `copies` times. */
  'duplicate',
  /** Holds the event back until the payment's next one is delivered, at most `afterMs`. */
  'reorder',
  /** The event arrives before the answer of the call that caused it. */
  'early',
  /** A lying copy with a wrong signature comes first. */
  'forged',
  /** First signed with a time stamp 10 minutes old, later honestly. */
  'old',
  /** First signed with a time stamp 10 minutes ahead, later honestly. */
  'future',
  /** An event about a payout of another account comes first. */
  'other_account',
  /** An event about a reference that nobody gave comes first. */
  'unknown_reference',
  /** An event of a type that no client knows comes first. */
  'unknown_type',
  /** A copy of more than 1 MiB comes first. */
  'oversized',
] as const;

export type CallFaultKind =
  | (typeof FAULTS_OF_ANY_CALL)[number]
  | (typeof FAULTS_OF_WRITES)[number]
  | (typeof FAULTS_OF_LOOKUPS)[number];
export type WebhookFaultKind = (typeof FAULTS_OF_WEBHOOKS)[number];
export type FaultKind = CallFaultKind | WebhookFaultKind;

/** The kinds that `operation` admits, in the order of the documentation. */
export function kindsOf(operation: Operation): readonly FaultKind[] {
  switch (operation) {
    case 'submit':
    case 'commit':
      return [...FAULTS_OF_ANY_CALL, ...FAULTS_OF_WRITES];
    case 'lookup':
      return [...FAULTS_OF_ANY_CALL, ...FAULTS_OF_LOOKUPS];
    case 'cancel':
      return FAULTS_OF_ANY_CALL;
    case 'webhook':
      return FAULTS_OF_WEBHOOKS;
  }
}

export interface Fault {
  readonly kind: FaultKind;
  /** Consecutive requests that get it. */
  readonly times: number;
  /** From its first request on, every request of the payment and operation gets it for so long (ms). */
  readonly stickyMs: number;
  /** The delay of the kinds that have one. Milliseconds. pending_then_final: pending for so long. */
  readonly afterMs: number | null;
  /** pending_then_final: lookups that still see it pending. */
  readonly lookups: number | null;
  /** pending_then_final: how it ends. */
  readonly final: 'succeeded' | 'failed';
  /** pending_then_final that ends failed: the payout's `failure_code`. */
  readonly failureCode: string;
  /** pending_then_final: comes back so many ms of the virtual clock after it was sent off. */
  readonly returnAfterMs: number | null;
  /** return_after, pending_then_final with a return: why the money came back. */
  readonly returnCode: string;
  /** return_after, pending_then_final with a return: how much; null: all of it. */
  readonly returnAmount: number | null;
  /** http_429: the Retry-After header, seconds or a date; null: no header. */
  readonly retryAfter: string | null;
  /** http_429: the Retry-After header is the date so many ms from now. */
  readonly retryAfterDateMs: number | null;
  /** http_500_before, http_500_after: the status. */
  readonly httpStatus: number;
  /** other_amount_after: the amount shown; null: one minor unit more than instructed. */
  readonly amount: number | null;
  /** other_amount_after: also executed and booked with that amount, so that lookups show it too. */
  readonly booked: boolean;
  /** http_500_before, http_500_after: the error is kept and replayed under the key. */
  readonly stored: boolean;
  /** double, duplicate: how often. */
  readonly copies: number;
}

export const PLAIN: Omit<Fault, 'kind'> = Object.freeze({
  times: 1,
  stickyMs: 0,
  afterMs: null,
  lookups: null,
  final: 'succeeded',
  failureCode: 'destination_closed',
  returnAfterMs: null,
  returnCode: 'destination_closed',
  returnAmount: null,
  retryAfter: null,
  retryAfterDateMs: null,
  httpStatus: 500,
  amount: null,
  booked: false,
  stored: false,
  copies: 2,
});

export const NO_FAULT: Fault = Object.freeze({ kind: 'none', ...PLAIN });

/** Input that the control port refuses; the message is the answer. */
export class PlanRefused extends Error {}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
