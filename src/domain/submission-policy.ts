/**
 * The numbers of the submission protocol and what follows from them. Times are milliseconds.
 * Rules 4 to 10 of the protocol; pure, so that store, worker and tests use the same ones.
 */

/**
 * What a provider offers against double payment. A: idempotent, with lookup. B: idempotent only.
 * C: lookup only. D: neither. T: two phases, the object's own state admits one commit.
 */
export type CapabilityClass = 'A' | 'B' | 'C' | 'D' | 'T';

export interface ClassRules {
  /** The provider can be asked what became of a payment. */
  readonly looksUp: boolean;
  /** It is asked before every send, also the first: nothing else would keep a second one out. */
  readonly looksBeforeSend: boolean;
  /** An unknown payment may be sent again if rule 7 holds. */
  readonly resends: boolean;
  /** A silence that meets the absence proof fails an unknown payment. */
  readonly provesAbsence: boolean;
}

/** What follows from the class. In T the object was seen when it was made, so silence proves nothing. */
export const CLASS_RULES: Readonly<Record<CapabilityClass, ClassRules>> = Object.freeze({
  A: { looksUp: true, looksBeforeSend: false, resends: true, provesAbsence: true },
  B: { looksUp: false, looksBeforeSend: false, resends: true, provesAbsence: false },
  C: { looksUp: true, looksBeforeSend: true, resends: false, provesAbsence: true },
  D: { looksUp: false, looksBeforeSend: false, resends: false, provesAbsence: false },
  T: { looksUp: true, looksBeforeSend: false, resends: true, provesAbsence: false },
});

/** A bug must not hammer a provider: after so many attempts an unknown payment is not sent again (T15). */
export const MAX_ATTEMPTS = 10;
/**
 * Attempts that were proven not sent, before the payment is given up (T12). Those that a closed lane
 * let through as its probe are not counted, nor those that the provider throttled or refused for our
 * credential: a provider that is away for hours makes payments late and fails none.
 */
export const MAX_UNSENT_ATTEMPTS = 10;
/** From the call of the adapter until its answer. */
export const CALL_DEADLINE_MS = 25_000;
/** First answers to "proven not sent, try again". */
const RETRY_FIRST_MS = 1_000;
const RETRY_LONGEST_MS = 60_000;
/** Longest wait of a throttled payment, however absurd the provider's word. */
const THROTTLE_LONGEST_MS = 15 * 60_000;
/** An object or key that is busy is looked at again after this, doubling. */
const IN_FLIGHT_FIRST_MS = 2_000;
const IN_FLIGHT_LONGEST_MS = 30_000;

/** Inquiry times since the first ambiguous end of the generation; after the last, people decide. */
export const INQUIRY_LADDER_MS: readonly number[] = Object.freeze([5_000, 15_000, 60_000, 180_000, 840_000]);
/** Two silences that fail a payment are at least this far apart. */
export const ABSENCE_SPACING_MS = 10 * 60_000;
/** While people decide, the provider is still asked this often. */
export const REVIEW_LOOKUP_MS = 3_600_000;
/** A look before a send must leave time for the send under the same fence. */
export const LOOK_BEFORE_SEND_MS = 10_000;
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

/** How long to wait before asking again about what was still being executed: 2 s doubling to 30 s. */
export function inFlightDelayMs(no: number, askedMs: number | null): number {
  const own = IN_FLIGHT_FIRST_MS * 2 ** Math.min(16, Math.max(0, no - 1));
  return Math.min(IN_FLIGHT_LONGEST_MS, Math.max(own, askedMs ?? 0));
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

/** True when the generation's last attempt ended after the last step of the ladder: it is not sent again. */
export function isLadderSpent(firstToLastMs: number, divisor: number): boolean {
  return firstToLastMs >= (INQUIRY_LADDER_MS.at(-1) ?? 0) / divisor;
}

/** The next poll of a submitted payment: 30 s, doubling with its age, to one hour. */
export function nextPollMs(sinceSubmittedMs: number, divisor: number): number {
  const first = POLL_FIRST_MS / divisor;
  return Math.round(Math.min(POLL_LONGEST_MS / divisor, Math.max(first, sinceSubmittedMs)));
}
