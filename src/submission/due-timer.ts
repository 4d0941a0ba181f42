import { pause } from '../platform/clock.js';
import type { DatabaseClock } from './database-clock.js';

/** Longest nap, so that a clock that was set is noticed. */
const LONGEST_NAP_MS = 30_000;
/** The last stretch is waited in single milliseconds: timers may come late. */
const LAST_STRETCH_MS = 5;

/** One timer for each due time, however many payments share it. */
export class DueTimer {
  private readonly waits = new Map<number, Promise<void>>();

  constructor(private readonly clock: DatabaseClock) {}

  /** Resolves when both clocks say that `dueAtMs` (epoch ms) has come; at once when it has. */
  due(dueAtMs: number): Promise<void> {
    if (this.clock.isDue(dueAtMs)) return Promise.resolve();
    const known = this.waits.get(dueAtMs);
    if (known) return known;
    const wait = this.wait(dueAtMs).finally(() => this.waits.delete(dueAtMs));
    this.waits.set(dueAtMs, wait);
    return wait;
  }

  private async wait(dueAtMs: number): Promise<void> {
    for (let left = this.clock.untilDueMs(dueAtMs); left > 0; left = this.clock.untilDueMs(dueAtMs)) {
      await pause(left > LAST_STRETCH_MS ? Math.min(LONGEST_NAP_MS, left - 2) : 1);
    }
  }
}
