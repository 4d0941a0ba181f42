import { monotonicMs } from '../platform/clock.js';

const EVERY_MS = 100;
/** A single pause may be a collection of garbage; so many in a row are too much work. */
const SAMPLES = 3;

/**
 * Watches how late this process's timers are. `ms` is the least delay of the last three samples, so it
 * tells of lasting overload alone.
 */
export class EventLoopLag {
  private readonly samples: number[] = [];
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly nowMs: () => number = monotonicMs) {}

  start(): void {
    let dueMs = this.nowMs() + EVERY_MS;
    this.timer = setInterval(() => {
      const now = this.nowMs();
      this.record(now - dueMs);
      dueMs = now + EVERY_MS;
    }, EVERY_MS);
    this.timer.unref();
  }

  record(delayMs: number): void {
    this.samples.push(Math.max(0, delayMs));
    if (this.samples.length > SAMPLES) this.samples.shift();
  }

  get ms(): number {
    return this.samples.length < SAMPLES ? 0 : Math.min(...this.samples);
  }

  /** Twice: nothing. */
  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
  }
}
