import { monotonicMs, pause } from '../platform/clock.js';
import type { ArmedEntry, ArmedPayments } from './armed-payments.js';

/** Pairs a second whose results go back to Temporal when nothing is due. */
const PAIRS_PER_SECOND = 120;
/** An entry is held this long before it goes whatever else happens. */
const LONGEST_HOLD_MS = 45_000;
/** A call counts as young for this long after it went out. */
const YOUNG_CALL_MS = 50;
/** After a call that went out late, paperwork waits this long for the next ones. */
const AFTER_LATE_CALL_MS = 700;
const LATE_CALL_MS = 1_000;
const LOOK_AGAIN_MS = 25;

/**
 * Calls first, paperwork later: a result that goes to Temporal costs about as much as a call, so
 * while payments are due the results wait here, both of a pair together.
 */
export class CompletionPacer {
  private readonly ready: { readonly entry: ArmedEntry; readonly readyAtMs: number }[] = [];
  private youngCalls = 0;
  private lastLateCallAtMs = -Infinity;
  private pumping = false;
  /** When the next pair may go (monotonic ms); kept from one queue to the next, or bursts are not paced. */
  private nextAtMs = -Infinity;

  constructor(
    private readonly armed: ArmedPayments,
    /** True while some lane has waiting payments, tokens and free calls. */
    private readonly gateIsBusy: () => boolean,
  ) {}

  /** Pairs that wait to go back. */
  get waiting(): number {
    return this.ready.length;
  }

  /** A call goes out now, `lateMs` after it could have gone. */
  callStarted(lateMs: number): void {
    if (lateMs > LATE_CALL_MS) this.lastLateCallAtMs = monotonicMs();
    this.youngCalls++;
    setTimeout(() => this.youngCalls--, YOUNG_CALL_MS).unref();
  }

  /** Resolves when this activity's result may go back; the last activity of the entry queues it. */
  leave(entry: ArmedEntry): Promise<void> {
    return new Promise((resolve) => {
      entry.leaving.push(resolve);
      this.quit(entry);
    });
  }

  /** This activity answers at once. When it was the entry's last one, results that waited for it follow. */
  quit(entry: ArmedEntry): void {
    if (!this.armed.leave(entry) || entry.leaving.length === 0) return;
    this.ready.push({ entry, readyAtMs: monotonicMs() });
    void this.pump();
  }

  private mustWait(readyAtMs: number): boolean {
    const now = monotonicMs();
    if (this.armed.isDraining || now - readyAtMs >= LONGEST_HOLD_MS) return false;
    return this.youngCalls > 0 || now - this.lastLateCallAtMs < AFTER_LATE_CALL_MS || this.gateIsBusy();
  }

  private async pump(): Promise<void> {
    if (this.pumping) return;
    this.pumping = true;
    for (let head = this.ready[0]; head; head = this.ready[0]) {
      while (this.mustWait(head.readyAtMs)) await pause(LOOK_AGAIN_MS);
      const now = monotonicMs();
      if (this.nextAtMs > now) await pause(this.nextAtMs - now);
      // At most 20 ms of unused time is caught up, so a pause does not end in a burst.
      this.nextAtMs = Math.max(this.nextAtMs, now - 20) + 1000 / PAIRS_PER_SECOND;
      this.ready.shift();
      for (const resolve of head.entry.leaving) resolve();
    }
    this.pumping = false;
  }
}
