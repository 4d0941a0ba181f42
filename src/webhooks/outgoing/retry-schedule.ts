const S = 1_000;
const MINUTE = 60 * S;
const HOUR = 60 * MINUTE;

/** Waits after the first, second … try that failed (Standard Webhooks, "retry schedule"): 75 h 35 min in all. */
const WAITS = [
  5 * S,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
] as const;

/** Tries of one event at one endpoint before it is given up. */
export const MOST_TRIES = WAITS.length + 1;

/** A share of each wait that is left to chance, so that what failed together does not return together. */
const JITTER = 0.1;

/**
 * How long to wait after `tries` failed tries (from 1), in whole ms: between 90 and 110 % of the
 * schedule. Null: that was the last one.
 * @param random from 0 included to 1 excluded.
 */
export function waitAfter(tries: number, random: number): number | null {
  const wait = WAITS[tries - 1];
  return wait === undefined ? null : Math.round(wait * (1 + JITTER * (2 * random - 1)));
}
