/** setTimeout takes no more than 2^31 - 1 ms; a longer wait looks again after this. */
const LONGEST_WAIT_MS = 3_600_000;

/**
 * The provider's own time: the wall clock plus what the control port has added. Keys expire, payouts
 * end and return, and the settlement books by it. The arrival of requests is never measured with it.
 */
export class VirtualClock {
  private readonly waiting = new Map<string, { readonly atMs: number; readonly callback: () => void }>();
  private timer: NodeJS.Timeout | null = null;
  private timerAtMs = Infinity;

  /**
   * @param wallClock epoch milliseconds.
   * @param offset milliseconds added so far; it lives in the ledger, so that a restart keeps it.
   */
  constructor(
    private readonly wallClock: () => number,
    private readonly offset: () => number,
  ) {}

  /** Epoch milliseconds of the virtual clock. */
  readonly now = (): number => this.wallClock() + this.offset();

  /** Calls back once the virtual clock shows `atMs`. Twice with one name: the later call counts. */
  at(name: string, atMs: number, callback: () => void): void {
    this.waiting.set(name, { atMs, callback });
    if (atMs < this.timerAtMs) this.wait();
  }

  /** Carries out what has become due: to be called when the offset has changed. */
  moved(): void {
    const now = this.now();
    const due = [...this.waiting].filter(([, { atMs }]) => atMs <= now);
    due.sort(([, a], [, b]) => a.atMs - b.atMs);
    for (const [name, entry] of due) {
      // A callback may have set the name anew.
      if (this.waiting.get(name) !== entry) continue;
      this.waiting.delete(name);
      entry.callback();
    }
    this.wait();
  }

  /** Forgets everything that waits. */
  clear(): void {
    this.waiting.clear();
    this.wait();
  }

  private wait(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.timerAtMs = Infinity;
    for (const { atMs } of this.waiting.values()) this.timerAtMs = Math.min(this.timerAtMs, atMs);
    if (this.timerAtMs === Infinity) return;
    const delayMs = Math.min(Math.max(0, Math.ceil(this.timerAtMs - this.now())), LONGEST_WAIT_MS);
    this.timer = setTimeout(() => this.moved(), delayMs);
    this.timer.unref();
  }
}
