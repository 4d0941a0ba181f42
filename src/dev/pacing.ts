import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 40;

/**
 * Asks `condition` again and again until it answers true.
 * @param signal ends the wait with its reason; every wait of the stack has a bound through it.
 */
export async function until(condition: () => boolean | Promise<boolean>, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    if (await condition()) return;
    // An abort ends the sleep early; the next round throws the signal's own reason.
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** As `until`, for at most `limitMs`. @returns whether the condition came true. */
export async function untilOrTimeout(
  condition: () => boolean | Promise<boolean>,
  limitMs: number,
): Promise<boolean> {
  const signal = AbortSignal.timeout(limitMs);
  try {
    await until(condition, signal);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/** "340 ms" or "12.3 s". */
export function showDuration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
