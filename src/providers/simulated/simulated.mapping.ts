import type { ProviderStatus, ResultClass } from '../../domain/provider-outcome.js';
import { foreignBodyOf } from '../foreign-body.js';
import type { LookupAnswer, LookupPath, Observed, ProviderResult } from '../payment-provider.js';
import type { Exchange, ExchangeResponse } from './simulated.client.js';
import { readError, readList, readPayout } from './simulated.response.js';
import type { Payout } from './simulated.response.js';

/** What an answer is held against. */
export interface Expected {
  /** null where the caller does not know it (cancel, events): then whoever records compares `observed`. */
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  readonly destination: string | null;
  readonly reference: string;
  /** The payout that the call named; null when it named none. */
  readonly providerRef: string | null;
}

/**
 * move: the call moves the money. create: it makes an inert payout. commit: it releases one.
 * cancel: it stops one. read: a lookup; an inert payout is an answer there.
 */
export type CallKind = 'move' | 'create' | 'commit' | 'cancel' | 'read';

interface Verdict {
  readonly class: ResultClass;
  readonly status: ProviderStatus | null;
  readonly code: string;
}

interface Listed {
  /** The one HTTP status that it comes with. */
  readonly httpStatus: number;
  readonly class: ResultClass;
}

/** Refusals that the provider documents for calls that make or release a payout. */
const REFUSALS: Readonly<Record<string, Listed>> = {
  parameter_invalid: { httpStatus: 400, class: 'rejected' },
  card_declined: { httpStatus: 402, class: 'rejected' },
  destination_closed: { httpStatus: 402, class: 'rejected' },
  insufficient_funds: { httpStatus: 402, class: 'rejected_funds' },
};

/** Reasons of a payout whose status is `failed`. */
const FAILURES: Readonly<Record<string, ResultClass>> = {
  card_declined: 'rejected',
  destination_closed: 'rejected',
  insufficient_funds: 'rejected_funds',
};

/** Documented as refused before execution. A replayed one would be a stored answer: not listed. */
const NOT_PROCESSED: Readonly<Record<string, Listed>> = {
  rate_limited: { httpStatus: 429, class: 'throttled' },
  invalid_api_key: { httpStatus: 401, class: 'config' },
  permission_denied: { httpStatus: 403, class: 'config' },
};

/** Payouts that moved nothing: made and never released. */
const UNRELEASED = ['requires_commit', 'cancelled'];

/**
 * The result of a call that writes. Total: whatever came back has a class, and what is not
 * understood is `ambiguous`. The order of the rules is that of the table of observations: proof
 * that nothing left, documented refusals, a right object, everything else.
 */
export function mapWrite(exchange: Exchange, expected: Expected, call: CallKind): ProviderResult {
  const { response } = exchange;
  if (!response) {
    const resultClass = exchange.bytesSent ? 'ambiguous' : 'not_sent';
    return resultOf({ class: resultClass, status: null, code: exchange.fault }, exchange, null);
  }
  const payout = isSuccess(response) ? readPayout(response.body) : null;
  const verdict = payout ? judge(payout, expected, call) : judgeError(response, call);
  return resultOf(verdict, exchange, payout);
}

/** The answer to a read by provider id. Absence counts only in the provider's own words. */
export function mapRead(exchange: Exchange, expected: Expected): LookupAnswer {
  const { response } = exchange;
  if (!response) return { kind: 'cannot_tell', code: exchange.fault };
  if (response.status === 404 && readError(response.body)?.code === 'payout_not_found')
    return { kind: 'absent', by: ['provider_id'] };
  const payout = response.status === 200 ? readPayout(response.body) : null;
  return payout
    ? foundAs(payout, exchange, expected)
    : { kind: 'cannot_tell', code: judgeError(response, 'read').code };
}

/** The answer to a list by reference. */
export function mapList(exchange: Exchange, expected: Expected): LookupAnswer {
  const page = mapPage(exchange);
  if (page.kind === 'cannot_tell') return page;
  if (page.hasMore) return { kind: 'found_many', count: page.payouts.length };
  return mapPayouts(page.payouts, 'reference', exchange, expected);
}

/** One page of a list, or why it is none. */
export function mapPage(
  exchange: Exchange,
):
  | { readonly kind: 'page'; readonly payouts: readonly Payout[]; readonly hasMore: boolean }
  | Extract<LookupAnswer, { kind: 'cannot_tell' }> {
  const { response } = exchange;
  if (!response) return { kind: 'cannot_tell', code: exchange.fault };
  const list = response.status === 200 ? readList(response.body) : null;
  return list ? { kind: 'page', ...list } : { kind: 'cannot_tell', code: judgeError(response, 'read').code };
}

/**
 * What a complete list of the payouts under our reference says. Payouts that were never released
 * moved no money: they count only while no other is there.
 */
export function mapPayouts(
  payouts: readonly Payout[],
  by: LookupPath,
  exchange: Exchange,
  expected: Expected,
): LookupAnswer {
  const released = payouts.filter((payout) => !UNRELEASED.includes(payout.status));
  if (released.length > 1) return { kind: 'found_many', count: payouts.length };
  const [only = payouts[0]] = released;
  if (!only) return { kind: 'absent', by: [by] };
  if (released.length === 0 && payouts.length > 1) return { kind: 'cannot_tell', code: 'several_inert' };
  return foundAs(only, exchange, expected);
}

/**
 * What an event says of a payout, compared with nothing but itself; null when its status is not
 * understood: then the event is only a hint to look.
 */
export function mapEvent(payout: Payout): ProviderResult | null {
  const { reference } = payout;
  const unknown = { amountMinor: null, currency: null, destination: null, providerRef: null };
  const verdict = judge(payout, { ...unknown, reference }, 'read');
  if (verdict.class === 'ambiguous') return null;
  return {
    ...verdict,
    providerRef: payout.id,
    requestId: null,
    httpStatus: null,
    replayed: false,
    bytesSent: true,
    observed: observedOf(payout),
    retryAfterMs: null,
    foreignBody: null,
  };
}

function foundAs(payout: Payout, exchange: Exchange, expected: Expected): LookupAnswer {
  const verdict = judge(payout, expected, 'read');
  const result = resultOf(verdict, exchange, payout);
  const { class: resultClass, code } = verdict;
  if (resultClass === 'key_mismatch') return { kind: 'found_other', result };
  const understood: readonly ResultClass[] = ['accepted', 'rejected', 'rejected_funds'];
  return understood.includes(resultClass) ? { kind: 'found', result } : { kind: 'cannot_tell', code };
}

/** A payout in the provider's form: is it ours, and what became of it? */
function judge(payout: Payout, expected: Expected, call: CallKind): Verdict {
  const difference = differenceOf(payout, expected);
  if (difference) return { class: 'key_mismatch', status: null, code: difference };
  if (call === 'cancel') return judgeCancelled(payout);
  switch (payout.status) {
    case 'requires_commit':
      if (call === 'move' || call === 'commit') return ambiguous('unexpected_status');
      return { class: 'accepted', status: 'inert', code: 'requires_commit' };
    case 'cancelled':
      // It was stopped before anybody released it, and cannot be released any more.
      if (call === 'move' || call === 'create') return ambiguous('unexpected_status');
      return { class: 'rejected', status: 'failed', code: 'cancelled' };
    case 'pending':
    case 'succeeded':
      if (call === 'create') return ambiguous('unexpected_status');
      return { class: 'accepted', status: payout.status, code: payout.status };
    case 'failed': {
      const failure = payout.failureCode ?? '';
      const refusal = Object.hasOwn(FAILURES, failure) ? FAILURES[failure] : undefined;
      if (!refusal) return ambiguous('unknown_failure');
      return { class: refusal, status: 'failed', code: failure };
    }
    default:
      return ambiguous('unknown_status');
  }
}

/** The answer to a cancel shows the payout as it is: stopped, or released before. */
function judgeCancelled({ status }: Payout): Verdict {
  switch (status) {
    case 'cancelled':
      return { class: 'accepted', status: 'failed', code: 'cancelled' };
    case 'pending':
    case 'succeeded':
    case 'failed':
      return { class: 'rejected', status, code: 'already_released' };
    default:
      return ambiguous('unknown_status');
  }
}

function differenceOf(payout: Payout, expected: Expected): string | null {
  if (expected.providerRef !== null && payout.id !== expected.providerRef) return 'other_object';
  if (payout.reference !== expected.reference) return 'other_reference';
  if (expected.amountMinor !== null && payout.amountMinor !== expected.amountMinor) return 'other_amount';
  if (expected.currency !== null && payout.currency !== expected.currency) return 'other_currency';
  if (expected.destination !== null && payout.destination !== expected.destination)
    return 'other_destination';
  return null;
}

/** Everything but a payout in the provider's form. */
function judgeError(response: ExchangeResponse, call: CallKind): Verdict {
  const { status } = response;
  const code = readError(response.body)?.code;
  if (code !== undefined) {
    if (status === 409 && code === 'idempotency_key_in_use')
      return { class: 'in_flight', status: null, code };
    if (status === 400 && code === 'idempotency_key_reused')
      return { class: 'key_mismatch', status: null, code };
    const notProcessed = Object.hasOwn(NOT_PROCESSED, code) ? NOT_PROCESSED[code] : undefined;
    if (notProcessed?.httpStatus === status && !isReplayed(response)) {
      return { class: notProcessed.class, status: null, code };
    }
    const refusal = Object.hasOwn(REFUSALS, code) ? REFUSALS[code] : undefined;
    // A refused cancel says nothing about where the money is.
    if (refusal?.httpStatus === status && call !== 'cancel') {
      return { class: refusal.class, status: 'failed', code };
    }
  }
  if (status >= 500) return ambiguous(isReplayed(response) ? 'stored_error' : 'http_5xx');
  if (status >= 400) return ambiguous('http_4xx');
  if (status >= 300) return ambiguous('http_3xx');
  return ambiguous('unrecognised_answer');
}

function ambiguous(code: string): Verdict {
  return { class: 'ambiguous', status: null, code };
}

/** The statuses that the provider documents for a payout; another 2xx is not understood. */
function isSuccess({ status }: ExchangeResponse): boolean {
  return status === 200 || status === 201;
}

function isReplayed({ headers }: ExchangeResponse): boolean {
  return headers['idempotent-replayed'] === 'true';
}

function resultOf(verdict: Verdict, exchange: Exchange, payout: Payout | null): ProviderResult {
  const { response, bytesSent } = exchange;
  return {
    ...verdict,
    providerRef: payout?.id ?? null,
    requestId: response ? requestIdOf(response) : null,
    httpStatus: response?.status ?? null,
    replayed: response ? isReplayed(response) : false,
    bytesSent,
    observed: observedOf(payout),
    retryAfterMs: verdict.class === 'throttled' && response ? retryAfterMsOf(response) : null,
    foreignBody: verdict.class === 'ambiguous' ? beginningOf(exchange) : null,
  };
}

/** null where no answer came at all. */
function beginningOf(exchange: Exchange): string | null {
  const body = exchange.response ? exchange.response.body : exchange.beginning;
  return body === undefined ? null : foreignBodyOf(body);
}

function observedOf(payout: Payout | null): Observed {
  return {
    amountMinor: payout?.amountMinor ?? null,
    currency: payout?.currency ?? null,
    destination: payout?.destination ?? null,
  };
}

function requestIdOf({ headers }: ExchangeResponse): string | null {
  const id = headers['request-id'];
  return typeof id === 'string' && /^[\w-]{1,64}$/.test(id) ? id : null;
}

/**
 * Retry-After in seconds or as a date (RFC 9110, 10.2.3), in ms from now; a date that has passed is
 * 0. A date is measured from the answer's own Date, so that a clock that differs does not matter.
 * null: absent or unreadable. Absurd values are the lane's to cap.
 */
function retryAfterMsOf({ headers, receivedAtMs }: ExchangeResponse): number | null {
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const until = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(until)) return null;
  const stated = Date.parse(headers.date ?? '');
  return Math.max(0, until - (Number.isNaN(stated) ? receivedAtMs : stated));
}
