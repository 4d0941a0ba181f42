import type { StripeHead } from './stripe.call.js';
import { ambiguous } from './stripe.verdict.js';
import type { Verdict } from './stripe.verdict.js';

/** What the bare HTTP status says where the body says nothing: never more than ambiguous. */
export function judgeStatus(head: StripeHead | null): Verdict {
  if (!head) return ambiguous('no_answer');
  if (head.status >= 500 && isReplayed(head)) return ambiguous('stored_error');
  return judgeStatusCode(head.status);
}

export function judgeStatusCode(status: number): Verdict {
  if (status >= 500) return ambiguous('http_5xx');
  if (status >= 400) return ambiguous('http_4xx');
  if (status >= 300) return ambiguous('http_3xx');
  return ambiguous('unrecognised_answer');
}

/** The SDK resolves any JSON without `error`, also under 404 and 502: the HTTP status is ours to check. */
export function isSuccess(head: StripeHead | null): boolean {
  return head !== null && head.status >= 200 && head.status <= 299;
}

export function isReplayed(head: StripeHead | null): boolean {
  return head?.headers['idempotent-replayed'] === 'true';
}

export function requestIdOf(head: StripeHead | null): string | null {
  const id = head?.headers['request-id'] ?? '';
  return /^[\w-]{1,64}$/.test(id) ? id : null;
}

/**
 * Retry-After in seconds or as a date (RFC 9110, 10.2.3), in ms from now; a date that has passed is 0.
 * A date is measured from the answer's own Date, so that a clock that differs does not matter. null:
 * absent or unreadable. Absurd values are the lane's to cap.
 */
export function retryAfterMsOf({ headers, receivedAtMs }: StripeHead): number | null {
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const until = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(until)) return null;
  const stated = Date.parse(headers['date'] ?? '');
  return Math.max(0, until - (Number.isNaN(stated) ? receivedAtMs : stated));
}
