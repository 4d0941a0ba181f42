import { performance } from 'node:perf_hooks';

/**
 * Epoch milliseconds of this machine's wall clock, with microseconds in the fraction.
 *
 * `Date.now()` has whole milliseconds, which is too coarse to judge whether a request came before
 * its time. The fraction comes from the monotonic clock and is pulled back into the millisecond
 * that the wall clock shows, so a clock that is set while the simulator runs is followed at once.
 */
export function createWallClock(): () => number {
  let offset = performance.timeOrigin;
  return () => {
    const monotonic = performance.now();
    const whole = Date.now();
    const estimate = offset + monotonic;
    const value = Math.min(Math.max(estimate, whole), whole + 0.999);
    if (value !== estimate) offset = value - monotonic;
    return Math.round(value * 1000) / 1000;
  };
}
