/** The calls a script can disturb. */
export const OPERATIONS = ['submit', 'commit', 'lookup'] as const;
export type Operation = (typeof OPERATIONS)[number];

/**
 * Ways to go wrong. `_before`: nothing was executed. `_after`: executed and in the ledger, only the
 * answer is wrong.
 */
const FAULTS_OF_ANY_CALL = [
  'none',
  /** Never answers, never executes. */
  'hang',
  'reset_before',
  'reset_after',
  'http_500_before',
  'http_500_after',
  'http_502_html_after',
  'empty_200_after',
  'broken_json_after',
  /** Announces the whole body, sends half of it and cuts the connection. */
  'truncate_after',
  'unknown_status_after',
  'other_amount_after',
  'http_429',
  'http_401',
  'http_403',
  /** Executes at once, answers after `afterMs`; the key is busy meanwhile. */
  'slow',
  'redirect_307',
] as const;
const FAULTS_OF_WRITES = [
  'decline',
  'decline_funds',
  'pending_then_final',
  /** Executes after `afterMs` and never answers. */
  'late_commit',
] as const;
const FAULTS_OF_LOOKUPS = [
  /** Says that nothing exists, whatever exists. */
  'lookup_absent',
  'lookup_500',
] as const;

export type FaultKind =
  | (typeof FAULTS_OF_ANY_CALL)[number]
  | (typeof FAULTS_OF_WRITES)[number]
  | (typeof FAULTS_OF_LOOKUPS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** Consecutive requests that get it. */
  readonly times: number;
  /** slow, late_commit: the delay. pending_then_final: pending for so long. Milliseconds. */
  readonly afterMs: number | null;
  /** pending_then_final: lookups that still see it pending. */
  readonly lookups: number | null;
  /** pending_then_final: how it ends. */
  readonly final: 'succeeded' | 'failed';
  /** pending_then_final that ends failed: the payout's `failure_code`. */
  readonly failureCode: string;
  /** http_429: the Retry-After header, seconds or a date; null: no header. */
  readonly retryAfter: string | null;
  /** other_amount_after: the amount shown; null: one minor unit more than instructed. */
  readonly amount: number | null;
  /** other_amount_after: also executed and booked with that amount, so that lookups show it too. */
  readonly booked: boolean;
  /** http_500_before, http_500_after: the error is kept and replayed under the key. */
  readonly stored: boolean;
}

const PLAIN: Omit<Fault, 'kind'> = {
  times: 1,
  afterMs: null,
  lookups: null,
  final: 'succeeded',
  failureCode: 'destination_closed',
  retryAfter: null,
  amount: null,
  booked: false,
  stored: false,
};

export const NO_FAULT: Fault = Object.freeze({ kind: 'none', ...PLAIN });

/** Input that the control port refuses; the message is the answer. */
export class PlanRefused extends Error {}

/**
 * Reads one fault of a plan: the bare kind, or an object with the kind and options. `times` is a
 * count or `"always"`.
 * @throws PlanRefused naming what is wrong.
 */
export function parseFault(input: unknown, operation: Operation): Fault {
  const given = typeof input === 'string' ? { kind: input } : input;
  if (!isRecord(given)) throw new PlanRefused('A fault is a word or an object with a kind.');
  const kind = given['kind'];
  const allowed: readonly string[] = [
    ...FAULTS_OF_ANY_CALL,
    ...(operation === 'lookup' ? FAULTS_OF_LOOKUPS : FAULTS_OF_WRITES),
  ];
  if (typeof kind !== 'string' || !allowed.includes(kind)) {
    throw new PlanRefused(`"${String(kind)}" is no fault of ${operation}. Known: ${allowed.join(', ')}.`);
  }
  const fault: Record<string, unknown> = { ...PLAIN, kind };
  for (const [name, value] of Object.entries(given)) {
    if (name === 'kind') continue;
    fault[name] = parseOption(kind, name, value);
  }
  if ((kind === 'slow' || kind === 'late_commit') && fault['afterMs'] === null) {
    throw new PlanRefused(`${kind} needs afterMs.`);
  }
  if (fault['booked'] === true && fault['amount'] === null) {
    throw new PlanRefused('An amount that is booked must be given.');
  }
  return fault as unknown as Fault;
}

function parseOption(kind: string, name: string, value: unknown): unknown {
  switch (name) {
    case 'times':
      if (value === 'always') return Infinity;
      return wholeNumber(kind, name, value);
    case 'afterMs':
    case 'lookups':
    case 'amount':
      return value === null ? null : wholeNumber(kind, name, value);
    case 'final':
      if (value === 'succeeded' || value === 'failed') return value;
      break;
    case 'failureCode':
      if (typeof value === 'string' && /^[a-z_]{1,64}$/.test(value)) return value;
      break;
    case 'retryAfter':
      if (value === null) return null;
      if (typeof value === 'string' || typeof value === 'number') return String(value);
      break;
    case 'booked':
    case 'stored':
      if (typeof value === 'boolean') return value;
      break;
    default:
  }
  throw new PlanRefused(`The option ${name} of ${kind} is unknown or has no usable value.`);
}

function wholeNumber(kind: string, name: string, value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new PlanRefused(`The option ${name} of ${kind} must be a whole number.`);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
