import type { ResultClass } from '../../domain/provider-outcome.js';
import { foreignBodyOf } from '../foreign-body.js';
import type { LookupAnswer, LookupPath, ProviderResult } from '../payment-provider.js';
import type { StripeExchange } from './stripe.client.js';
import { namesPayment, readList, readMovement } from './stripe.object.js';
import type { StripeMovement, StripeResource } from './stripe.object.js';
import { judgeThrown } from './stripe.error-verdict.js';
import { isReplayed, isSuccess, judgeStatus, requestIdOf, retryAfterMsOf } from './stripe.head.js';
import { judgeMovement, judgeState } from './stripe.object-verdict.js';
import { ambiguous } from './stripe.verdict.js';
import type { CallKind, Expected, Verdict } from './stripe.verdict.js';

/**
 * The result of a call that writes. Total: whatever came back has a class, and what is not understood
 * is `ambiguous`. First match wins: proof that nothing left, an error in Stripe's form, a right object,
 * everything else. Pure.
 */
export function mapWrite(exchange: StripeExchange, expected: Expected, call: CallKind): ProviderResult {
  const movement = movementOf(exchange, expected.resource);
  return resultOf(judgeExchange(exchange, movement, expected, call), exchange, movement);
}

/**
 * The answer to a read by id. `resource_missing` proves nothing: another key, mode or account says the
 * same of an object that exists.
 */
export function mapRead(exchange: StripeExchange, expected: Expected): LookupAnswer {
  const movement = movementOf(exchange, expected.resource);
  if (!movement) return { kind: 'cannot_tell', code: judgeExchange(exchange, null, expected, 'read').code };
  return foundAs(movement, exchange, expected);
}

/** One page of a list: its entries as they came; cannot_tell for everything else. */
export function mapPage(
  exchange: StripeExchange,
  expected: Expected,
):
  | { readonly kind: 'page'; readonly data: readonly unknown[]; readonly hasMore: boolean }
  | (LookupAnswer & { kind: 'cannot_tell' }) {
  const list =
    exchange.outcome.kind === 'resolved' && isSuccess(exchange.head)
      ? readList(exchange.outcome.value)
      : null;
  if (list) return { kind: 'page', ...list };
  return { kind: 'cannot_tell', code: judgeExchange(exchange, null, expected, 'read').code };
}

/** PaymentIntents that are open, stopped or declined. Every transfer has moved. */
const MOVED_NOTHING = ['requires_confirmation', 'canceled', 'requires_payment_method'];

/**
 * The answer of a list whose entries are all about this payment. Objects that moved nothing count only
 * while no other is there, and only for their own generation; one that moved counts for every
 * generation, and two are a finding.
 */
export function mapEntries(
  entries: readonly unknown[],
  path: LookupPath,
  exchange: StripeExchange,
  expected: Expected,
): LookupAnswer {
  const movements: StripeMovement[] = [];
  for (const entry of entries) {
    const movement = readMovement(entry, expected.resource);
    // One that cannot be read may be the one that was asked for.
    if (!movement) return { kind: 'cannot_tell', code: 'entry_unreadable' };
    movements.push(movement);
  }
  const moved = movements.filter(({ state }) => !MOVED_NOTHING.includes(state));
  if (moved.length > 1) return { kind: 'found_many', count: moved.length };
  const ofGeneration = movements.filter(({ generation }) => generation === expected.generation);
  const [only, another] = moved.length > 0 ? moved : ofGeneration;
  if (!only) return { kind: 'absent', by: [path] };
  if (another) return { kind: 'cannot_tell', code: 'several_inert' };
  return foundAs(only, exchange, expected);
}

/** Which entries of a page speak of this payment; the others are other people's. */
export function entriesOf(data: readonly unknown[], paymentId: string): readonly unknown[] {
  return data.filter((entry) => namesPayment(entry, paymentId));
}

/** What an event says of an object, compared with no instruction. */
export function mapEvent(movement: StripeMovement): ProviderResult {
  const { code, ...verdict } = judgeState(movement, 'read');
  return {
    ...EMPTY,
    ...verdict,
    code,
    providerRef: movement.id,
    bytesSent: false,
    observed: observedOf(movement),
  };
}

function foundAs(movement: StripeMovement, exchange: StripeExchange, expected: Expected): LookupAnswer {
  const verdict = judgeMovement(movement, expected, 'read');
  const result = resultOf(verdict, exchange, movement);
  const { class: resultClass, code } = verdict;
  if (resultClass === 'key_mismatch') return { kind: 'found_other', result };
  const understood: readonly ResultClass[] = ['accepted', 'rejected', 'rejected_funds'];
  return understood.includes(resultClass) ? { kind: 'found', result } : { kind: 'cannot_tell', code };
}

function movementOf({ outcome, head }: StripeExchange, resource: StripeResource): StripeMovement | null {
  if (outcome.kind !== 'resolved' || !isSuccess(head)) return null;
  return readMovement(outcome.value, resource);
}

function judgeExchange(
  exchange: StripeExchange,
  movement: StripeMovement | null,
  expected: Expected,
  call: CallKind,
): Verdict {
  const { outcome, fault, bytesSent, head } = exchange;
  if (!bytesSent) return { class: 'not_sent', status: null, code: fault ?? 'client_fault' };
  if (fault !== null && fault !== 'unreadable') return ambiguous(fault);
  if (movement) return judgeMovement(movement, expected, call);
  if (outcome.kind === 'thrown' && fault === null) {
    return judgeThrown(outcome.error, head, expected, call);
  }
  return judgeStatus(head);
}

const EMPTY: ProviderResult = Object.freeze({
  class: 'ambiguous',
  status: null,
  providerRef: null,
  requestId: null,
  httpStatus: null,
  replayed: false,
  bytesSent: true,
  observed: { amountMinor: null, currency: null, destination: null },
  code: 'no_answer',
  retryAfterMs: null,
  foreignBody: null,
});

function observedOf(movement: StripeMovement | null): ProviderResult['observed'] {
  return {
    amountMinor: movement?.amountMinor ?? null,
    currency: movement?.currency ?? null,
    destination: movement?.destination ?? null,
  };
}

function resultOf(
  verdict: Verdict,
  { head, bytesSent }: StripeExchange,
  movement: StripeMovement | null,
): ProviderResult {
  const isForeign = verdict.class === 'ambiguous' && typeof head?.body === 'string';
  return {
    ...verdict,
    providerRef: movement?.id ?? null,
    requestId: requestIdOf(head),
    httpStatus: head?.status ?? null,
    replayed: isReplayed(head),
    bytesSent,
    observed: observedOf(movement),
    retryAfterMs: verdict.class === 'throttled' && head ? retryAfterMsOf(head) : null,
    foreignBody: isForeign && head?.body ? foreignBodyOf(head.body) : null,
  };
}
