import { PLAIN, PlanRefused, isRecord, kindsOf } from './fault.js';
import type { Fault, FaultKind, Operation } from './fault.js';

/** Kinds that mean nothing without a delay. */
const DELAYED: readonly string[] = ['slow', 'late_commit', 'lookup_lag', 'return_after'];
/** As often as an event or a payout may be repeated. */
const MOST_COPIES = 5;

/**
 * Reads one fault of a plan: the bare kind, or an object with the kind and options. `times` is a
 * count or `"always"`.
 * @throws PlanRefused naming what is wrong.
 */
export function parseFault(input: unknown, operation: Operation): Fault {
  const given = typeof input === 'string' ? { kind: input } : input;
  if (!isRecord(given)) throw new PlanRefused('A fault is a word or an object with a kind.');
  const allowed: readonly string[] = kindsOf(operation);
  const kind = given['kind'];
  if (typeof kind !== 'string' || !allowed.includes(kind)) {
    throw new PlanRefused(`"${String(kind)}" is no fault of ${operation}. Known: ${allowed.join(', ')}.`);
  }
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (name !== 'kind') options[name] = parseOption(kind, name, value);
  }
  const fault: Fault = { ...PLAIN, ...(options as Partial<Fault>), kind: kind as FaultKind };
  if (DELAYED.includes(kind) && fault.afterMs === null) throw new PlanRefused(`${kind} needs afterMs.`);
  if (fault.booked && fault.amount === null) {
    throw new PlanRefused('An amount that is booked must be given.');
  }
  return fault;
}

function parseOption(kind: string, name: string, value: unknown): unknown {
  switch (name) {
    case 'times':
      return value === 'always' ? Infinity : wholeNumber(kind, name, value);
    case 'stickyMs':
      return wholeNumber(kind, name, value);
    case 'afterMs':
    case 'lookups':
    case 'amount':
    case 'returnAfterMs':
    case 'returnAmount':
    case 'retryAfterDateMs':
      return value === null ? null : wholeNumber(kind, name, value);
    case 'copies':
      return numberWithin(kind, name, value, { min: 1, max: MOST_COPIES });
    case 'httpStatus':
      return numberWithin(kind, name, value, { min: 400, max: 599 });
    case 'final':
      if (value === 'succeeded' || value === 'failed') return value;
      break;
    case 'failureCode':
    case 'returnCode':
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

function numberWithin(
  kind: string,
  name: string,
  value: unknown,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const number = wholeNumber(kind, name, value);
  if (number >= min && number <= max) return number;
  throw new PlanRefused(`The option ${name} of ${kind} must be from ${min} to ${max}.`);
}
