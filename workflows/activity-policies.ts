import type { ActivityOptions } from '@temporalio/workflow';

/**
 * Every time-out and retry policy, and why. Attempts without a limit are safe here: the gate and
 * the claim admit one call however often an activity repeats.
 */

/** Up to 70 s in the gate, then pacing and the queue of results: 5,000 take 90 s to go back. */
const ARMED_BEYOND_DUE_MS = 180_000;

/** Quick first repeat, since nothing is lost by asking again; 5 s bounds the load of a long outage. */
const RETRY_ALWAYS = {
  initialInterval: 200,
  backoffCoefficient: 2,
  maximumInterval: 5_000,
  maximumAttempts: Number.POSITIVE_INFINITY,
} as const;

/** Gate or read only: one statement and its time-outs fit in 10 s. */
export const SHORT: ActivityOptions = { startToCloseTimeout: 10_000, retry: RETRY_ALWAYS };

/** One lookup: the adapter's deadline of 25 s and the statements around it. Undecided repeats by itself. */
export const INQUIRE: ActivityOptions = { startToCloseTimeout: 30_000, retry: RETRY_ALWAYS };

/**
 * One statement for each line that waits: thousands after a large file. The next hour begins anew, so
 * repeats end before it.
 */
export const RECONCILE: ActivityOptions = {
  startToCloseTimeout: 15 * 60_000,
  scheduleToCloseTimeout: 50 * 60_000,
  retry: RETRY_ALWAYS,
};

/** The armed pair waits in the worker until due. No heartbeat: it would be a write of the server each time. */
export function armed(dueInMs: number): ActivityOptions {
  return { startToCloseTimeout: Math.max(0, dueInMs) + ARMED_BEYOND_DUE_MS, retry: RETRY_ALWAYS };
}
