/**
 * The numbers of the submission protocol and what follows from them. Times are milliseconds.
 * Rules 4 to 10 of the protocol; pure, so that store, worker and tests use the same ones.
 */

/** A bug must not hammer a provider: after so many attempts an unknown payment is not sent again (T15). */
export const MAX_ATTEMPTS = 10;
/**
 * Attempts that were all proven not sent may be many more (T11): at one a minute this outlasts the
 * usual day until `not_after`, so that a provider which is away for hours makes payments late and
 * fails none. It bounds a payment whose deadline lies far ahead.
 */
export const MAX_UNSENT_ATTEMPTS = 1_500;
/** From the call of the adapter until its answer. */
export const CALL_DEADLINE_MS = 25_000;
/** First answers to "proven not sent, try again". */
const RETRY_FIRST_MS = 1_000;
const RETRY_LONGEST_MS = 60_000;
/** Longest wait of a throttled payment, however absurd the provider's word. */
const THROTTLE_LONGEST_MS = 15 * 60_000;
/** An object or key that is busy is looked at again after this. */
export const IN_FLIGHT_WAIT_MS = 2_000;

/** Inquiry times since the first ambiguous end of the generation; after the last, people decide. */
export const INQUIRY_LADDER_MS: readonly number[] = Object.freeze([5_000, 15_000, 60_000, 180_000, 840_000]);
const POLL_FIRST_MS = 30_000;
const POLL_LONGEST_MS = 3_600_000;

/**
 * How long to wait before attempt `no + 1` after attempt `no` was proven not sent: 1 s doubling to
 * 60 s, or what the provider asked for, at most 15 min.
 */
export function retryDelayMs(no: number, askedMs: number | null): number {
  const own = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(16, Math.max(0, no - 1)));
  return askedMs === null ? own : Math.min(THROTTLE_LONGEST_MS, Math.max(own, askedMs));
}

/**
 * The next inquiry of an unknown payment.
 * @param sinceFirstMs ms since the generation's first ambiguous end.
 * @param divisor test rigs run the ladder that many times faster; 1 everywhere else.
 * @returns ms from now until the next step, or null when the ladder is at its end.
 */
export function nextInquiryMs(sinceFirstMs: number, divisor: number): number | null {
  const next = INQUIRY_LADDER_MS.map((step) => step / divisor).find((step) => step > sinceFirstMs);
  return next === undefined ? null : Math.max(1, Math.round(next - sinceFirstMs));
}

/** The next poll of a submitted payment: 30 s, doubling with its age, to one hour. */
export function nextPollMs(sinceSubmittedMs: number, divisor: number): number {
  const first = POLL_FIRST_MS / divisor;
  return Math.round(Math.min(POLL_LONGEST_MS / divisor, Math.max(first, sinceSubmittedMs)));
}
