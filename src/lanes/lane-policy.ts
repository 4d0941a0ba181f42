/**
 * The numbers of a lane: how its budget follows from what a provider declares, how long it waits when
 * the provider has had enough, and when its breaker opens. Times are milliseconds.
 */

/** Below what the provider declares, so that lookups and other users of the account find room. */
export const SHARE_OF_DECLARED_RATE = 0.8;
/** Seconds of rate that a rested lane may spend at once: with the share above, no second exceeds what was declared. */
export const BURST_SECONDS = 0.25;

/** A provider that says "too many calls" (429). */
export const THROTTLE = Object.freeze({
  /** What the provider asked for counts from here on: a lane that waits for nothing would hammer. */
  shortestMs: 1_000,
  /** Longest wait, however absurd the provider's word. */
  longestAskedMs: 15 * 60_000,
  /** Without a word of the provider: this, doubling. */
  firstMs: 1_000,
  longestMs: 60_000,
});

/** Calls that end without an answer which is understood: each more is one more unknown payment. */
export const BREAKER = Object.freeze({
  failuresInARow: 5,
  window: 20,
  failuresInWindow: 10,
  firstProbeMs: 10_000,
  longestProbeMs: 60_000,
});

/**
 * A payment that waits for a closed lane looks again this seldom: nobody knows how long a person or a provider
 * takes, and each look costs a dozen events. The sweep wakes it as soon as its lane lets it pass.
 */
export const CLOSED_LANE_LOOK_MS = 15 * 60_000;

/** After this a probe of which nothing was heard no longer keeps the next one back: an attempt is abandoned before. */
export const PROBE_LASTS_MS = 90_000;

/**
 * Ends of an attempt that say nothing about the provider: this worker had lost its lease, lacks the
 * adapter, or cannot open the stored request.
 */
export const CODES_OF_OUR_OWN: readonly string[] = Object.freeze([
  'lease_lost',
  'provider_unknown',
  'parameters_unreadable',
]);
