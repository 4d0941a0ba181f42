import { setTimeout as sleep } from 'node:timers/promises';

export interface Waiting {
  /** Milliseconds between two looks; a look costs the measured servers something. */
  readonly everyMs: number;
  readonly limitMs: number;
  /** Ends the wait with its reason. */
  readonly signal: AbortSignal;
}

/** Looks until the condition holds. @returns false when it did not within the limit. */
export async function waitUntil(condition: () => Promise<boolean>, waiting: Waiting): Promise<boolean> {
  const endsAt = performance.now() + waiting.limitMs;
  for (;;) {
    waiting.signal.throwIfAborted();
    if (await condition()) return true;
    if (performance.now() >= endsAt) return false;
    await pauseFor(waiting.everyMs, waiting.signal);
  }
}

/** @throws the signal's reason when it aborts. */
export async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(Math.max(0, ms), undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** Waits until this machine's wall clock shows an instant (epoch ms); a past one does not wait. */
export async function waitForInstant(at: number, signal: AbortSignal): Promise<void> {
  while (Date.now() < at) await pauseFor(at - Date.now(), signal);
}
