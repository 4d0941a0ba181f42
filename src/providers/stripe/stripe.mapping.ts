import Stripe from 'stripe';
import type { ProviderStatus, ResultClass } from '../../domain/provider-outcome.js';
import { foreignBodyOf } from '../foreign-body.js';
import type { LookupAnswer, LookupPath, ProviderResult } from '../payment-provider.js';
import type { StripeHead } from './stripe.call.js';
import type { StripeExchange } from './stripe.client.js';
import { namesPayment, readList, readMovement, wordOf } from './stripe.object.js';
import type { StripeMovement, StripeResource } from './stripe.object.js';
import {
  AUTHENTICATION_REQUIRED,
  UNEXPECTED_STATE,
  asksForCustomer,
  cardRefusal,
  invalidRequestRefusal,
} from './stripe.refusals.js';

/** What an answer is held against. */
export interface Expected {
  readonly resource: StripeResource;
  readonly livemode: boolean;
  /** null where the caller does not know the money (cancel): then nothing of it is compared. */
  readonly money: {
    readonly amountMinor: bigint;
    readonly currency: string;
    readonly destination: string;
  } | null;
  readonly paymentId: string;
  readonly generation: number;
  readonly providerKey: string;
  /** The object that the call named; null when it named none. */
  readonly providerRef: string | null;
}

/**
 * move: the call moves the money. create: it makes an inert object. commit: it releases one. cancel:
 * it stops one. read: a lookup; an inert object is an answer there.
 */
export type CallKind = 'move' | 'create' | 'commit' | 'cancel' | 'read';

interface Verdict {
  readonly class: ResultClass;
  readonly status: ProviderStatus | null;
  readonly code: string;
}

const { StripeError, StripeIdempotencyError, StripeRateLimitError, StripeConnectionError, RateLimitError } =
  Stripe.errors;

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

/**
 * The answer of a list whose entries are all about this payment. Objects that moved nothing count only
 * while no other is there; two that moved are a finding, also when one belongs to another generation.
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
  const released = movements.filter(({ state }) => state !== 'requires_confirmation' && state !== 'canceled');
  if (released.length > 1) return { kind: 'found_many', count: released.length };
  const [only = movements[0]] = released;
  if (!only) return { kind: 'absent', by: [path] };
  if (released.length === 0 && movements.length > 1) return { kind: 'cannot_tell', code: 'several_inert' };
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

/** The SDK resolves any JSON without `error`, also under 404 and 502: the HTTP status is ours to check. */
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
    return outcome.error instanceof StripeError
      ? judgeError(outcome.error, head, expected, call)
      : ambiguous('sdk_fault');
  }
  return judgeStatus(head);
}

/** An object in Stripe's form: is it ours, and what became of it? */
function judgeMovement(movement: StripeMovement, expected: Expected, call: CallKind): Verdict {
  // Another mode is another world: nothing in it says anything about this payment.
  if (movement.livemode !== expected.livemode) return ambiguous('other_mode');
  const verdict = judgeState(movement, call);
  const difference = differenceOf(movement, expected, verdict);
  return difference ? { class: 'key_mismatch', status: null, code: difference } : verdict;
}

function differenceOf(movement: StripeMovement, expected: Expected, verdict: Verdict): string | null {
  const { money, paymentId, generation, providerKey, providerRef, resource } = expected;
  if (providerRef !== null && movement.id !== providerRef) return 'other_object';
  if (movement.paymentId !== paymentId || movement.generation !== generation) return 'other_reference';
  if (movement.providerKey !== providerKey) return 'other_key';
  if (resource === 'transfer' && movement.transferGroup !== paymentId) return 'other_reference';
  if (money === null) return null;
  if (movement.amountMinor !== money.amountMinor) return 'other_amount';
  if (movement.currency !== money.currency) return 'other_currency';
  // Stripe takes the method off a PaymentIntent that was declined.
  const mayLackMethod = verdict.status === 'failed' && movement.destination === null;
  return movement.destination === money.destination || mayLackMethod ? null : 'other_destination';
}

function judgeState(movement: StripeMovement, call: CallKind): Verdict {
  if (movement.resource === 'transfer') {
    if (call !== 'move' && call !== 'read') return ambiguous('unexpected_status');
    return { class: 'accepted', status: 'succeeded', code: movement.state };
  }
  return judgeIntent(movement, call);
}

/** The life of a PaymentIntent (docs.stripe.com/payments/paymentintents/lifecycle). */
function judgeIntent({ state, isWhole, refusal }: StripeMovement, call: CallKind): Verdict {
  switch (state) {
    case 'requires_confirmation':
      if (call !== 'create' && call !== 'read') break;
      return { class: 'accepted', status: 'inert', code: state };
    case 'canceled':
      if (call === 'cancel') return { class: 'accepted', status: 'failed', code: 'cancelled' };
      if (call !== 'read') break;
      return { class: 'rejected', status: 'failed', code: 'cancelled' };
    case 'requires_payment_method':
      if ((call !== 'read' && call !== 'commit') || !refusal) break;
      return judgeDeclinedIntent(refusal);
    case 'processing':
      if (call === 'create' || call === 'cancel') break;
      return { class: 'accepted', status: 'pending', code: state };
    case 'succeeded':
      if (call === 'create' || call === 'cancel') break;
      if (!isWhole) return ambiguous('partly_received');
      return { class: 'accepted', status: 'succeeded', code: state };
    case 'requires_action':
    case 'requires_capture':
      return ambiguous(state);
    default:
      return ambiguous('unknown_status');
  }
  return ambiguous(call === 'create' ? 'committed_itself' : 'unexpected_status');
}

/**
 * The object itself says that its one confirmation failed and that its method is gone, whatever the
 * reason: no charge can come of it any more but by a new method under our secret key.
 */
function judgeDeclinedIntent({ code, declineCode }: NonNullable<StripeMovement['refusal']>): Verdict {
  if (asksForCustomer(code, declineCode))
    return { class: 'rejected', status: 'failed', code: AUTHENTICATION_REQUIRED };
  const refusal = cardRefusal(code, declineCode) ?? { class: 'rejected' as const, code: 'declined' };
  return { ...refusal, status: 'failed' };
}

/** An answer in Stripe's error form, or the SDK's word for none. */
function judgeError(
  error: InstanceType<typeof StripeError>,
  head: StripeHead | null,
  expected: Expected,
  call: CallKind,
): Verdict {
  const { statusCode: status } = error;
  // A connection error that came after the head, broken JSON: no error of the API.
  if (status === undefined || error instanceof StripeConnectionError) return judgeStatus(head);
  const code = wordOf(error.code) ?? '';
  const replayed = isReplayed(head);
  if (status === 409 && code === 'idempotency_key_in_use') return { class: 'in_flight', status: null, code };
  if (error instanceof StripeIdempotencyError && (status === 400 || status === 409))
    return { class: 'key_mismatch', status: null, code: 'idempotency_key_reused' };
  if (status >= 500) return ambiguous(replayed ? 'stored_error' : 'http_5xx');
  const notProcessed = judgeNotProcessed(error, status, code);
  // A stored answer of this kind would be the answer of an execution.
  if (notProcessed) return replayed ? ambiguous('replayed_refusal') : notProcessed;
  return judgeRefusal(error, { status, code }, expected, call);
}

/** Documented as refused before execution. */
function judgeNotProcessed(
  error: InstanceType<typeof StripeError>,
  status: number,
  code: string,
): Verdict | null {
  const isLimit =
    error instanceof StripeRateLimitError ||
    error instanceof RateLimitError ||
    ((code === 'rate_limit' || code === 'lock_timeout') && [400, 409, 429].includes(status));
  if (isLimit)
    return { class: 'throttled', status: null, code: code === 'lock_timeout' ? code : 'rate_limit' };
  if (status === 401) return { class: 'config', status: null, code: 'authentication' };
  if (status === 403) return { class: 'config', status: null, code: 'permission' };
  return null;
}

function judgeRefusal(
  error: InstanceType<typeof StripeError>,
  { status, code }: { readonly status: number; readonly code: string },
  expected: Expected,
  call: CallKind,
): Verdict {
  // What the object is now, nobody said: it is read.
  if (code === UNEXPECTED_STATE) {
    if (call === 'cancel') return { class: 'rejected', status: null, code };
    return ambiguous(code);
  }
  if (call === 'read' || call === 'cancel') return notUnderstood(status, code);
  if (isAboutOtherObject(error, expected)) return ambiguous('other_object');
  if (status === 402 && error.rawType === 'card_error') return judgeCardError(error, code);
  if ((status === 400 || status === 404) && error.rawType === 'invalid_request_error') {
    // The object that a commit names was there: an answer that it is not says nothing about the money.
    const refusal = call === 'commit' && code === 'resource_missing' ? null : invalidRequestRefusal(code);
    if (refusal) return { class: refusal, status: 'failed', code };
  }
  return notUnderstood(status, code);
}

function judgeCardError(error: InstanceType<typeof StripeError>, code: string): Verdict {
  const declineCode = wordOf(error.decline_code);
  if (asksForCustomer(code, declineCode)) return ambiguous(AUTHENTICATION_REQUIRED);
  const refusal = cardRefusal(code, declineCode);
  return refusal ? { ...refusal, status: 'failed' } : notUnderstood(402, code);
}

/** Words of Stripe's that tell people more than the HTTP status does; no other word of it passes. */
const TELLING = ['resource_missing', 'processing_error'];

function notUnderstood(status: number, code: string): Verdict {
  return TELLING.includes(code) ? ambiguous(code) : judgeStatusCode(status);
}

/** An error of a charge carries the PaymentIntent it is about. */
function isAboutOtherObject(error: InstanceType<typeof StripeError>, { providerRef }: Expected): boolean {
  const id: unknown = error.payment_intent?.id;
  return providerRef !== null && id !== undefined && id !== providerRef;
}

function judgeStatus(head: StripeHead | null): Verdict {
  if (!head) return ambiguous('no_answer');
  if (head.status >= 500 && isReplayed(head)) return ambiguous('stored_error');
  return judgeStatusCode(head.status);
}

function judgeStatusCode(status: number): Verdict {
  if (status >= 500) return ambiguous('http_5xx');
  if (status >= 400) return ambiguous('http_4xx');
  if (status >= 300) return ambiguous('http_3xx');
  return ambiguous('unrecognised_answer');
}

function ambiguous(code: string): Verdict {
  return { class: 'ambiguous', status: null, code };
}

function isSuccess(head: StripeHead | null): boolean {
  return head !== null && head.status >= 200 && head.status <= 299;
}

function isReplayed(head: StripeHead | null): boolean {
  return head?.headers['idempotent-replayed'] === 'true';
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

function requestIdOf(head: StripeHead | null): string | null {
  const id = head?.headers['request-id'] ?? '';
  return /^[\w-]{1,64}$/.test(id) ? id : null;
}

/**
 * Retry-After in seconds or as a date (RFC 9110, 10.2.3), in ms from now; a date that has passed is 0.
 * A date is measured from the answer's own Date, so that a clock that differs does not matter. null:
 * absent or unreadable. Absurd values are the lane's to cap.
 */
function retryAfterMsOf({ headers, receivedAtMs }: StripeHead): number | null {
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const until = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(until)) return null;
  const stated = Date.parse(headers['date'] ?? '');
  return Math.max(0, until - (Number.isNaN(stated) ? receivedAtMs : stated));
}
