/**
 * How fast requests may come: a bucket of `burst` tokens that fills at `ratePerSecond`. A request takes
 * one token. There is no window with an edge, so nobody doubles a limit by calling around one.
 */
export interface RateLimit {
  /** Tokens per second, above 0. */
  readonly ratePerSecond: number;
  /** Tokens of a full bucket: what may come at once after a rest. At least 1. */
  readonly burst: number;
}

/** Whose limit it is: that of one credential, or that of all credentials of a tenant together. */
export const LIMIT_SUBJECTS = ['client', 'tenant'] as const;
export type LimitSubject = (typeof LIMIT_SUBJECTS)[number];

export type RateLimits = Readonly<Record<LimitSubject, RateLimit>>;

/**
 * Cancels draw on buckets of their own, of the same size: who has used up their requests can still
 * stop a payment.
 */
export type LimitedCall = 'request' | 'cancel';

/** The name of a bucket in headers and metrics. */
export type LimitName = LimitSubject | `${LimitSubject}-cancel`;

/** What the headers of an answer say of one bucket. */
export interface LimitState {
  readonly name: LimitName;
  readonly limit: RateLimit;
  /** Whole tokens that are left, as far as this process knows. */
  readonly remaining: number;
  /** Milliseconds until the next token, if nobody else takes it. */
  readonly nextInMs: number;
}

/**
 * admitted: one token of each bucket was taken. refused: nothing was taken; `states` has every bucket
 * that was asked, the one that refused last.
 */
export interface Admission {
  readonly kind: 'admitted' | 'refused';
  readonly states: readonly LimitState[];
}
