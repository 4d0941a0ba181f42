/** How pressing a request is. A cancel may stop a payment in its last second; a create can be repeated. */
export const URGENCIES = ['cancel', 'read', 'work'] as const;
export type Urgency = (typeof URGENCIES)[number];

export interface AdmissionLimits {
  /** Places that this urgency and the lesser ones may hold at once. */
  readonly running: Readonly<Record<Urgency, number>>;
  /** Callers of this urgency that wait for their turn. */
  readonly waiting: Readonly<Record<Urgency, number>>;
  /** Longest wait for a turn (ms). */
  readonly waitMs: number;
}

/** Connections that work never takes, and those that neither work nor reads take. */
const KEPT_FROM_WORK = 3;
const KEPT_FOR_CANCELS = 1;
/** Waiting callers for each that runs: a longer queue makes answers late and refuses nothing less. */
const WAITING_PER_RUNNING = 16;
/** Cancels are short and few: they are refused only when something is quite wrong. */
const WAITING_CANCELS = 512;
/** As long as a connection may take to come about; far below the 10 s of a handler. */
const WAIT_MS = 2_000;

/** Shares a pool of connections out, so that cancels find one however many creates there are. */
export function admissionLimitsFor(poolSize: number): AdmissionLimits {
  const work = Math.max(1, poolSize - KEPT_FROM_WORK);
  const read = Math.max(work, poolSize - KEPT_FOR_CANCELS);
  return Object.freeze({
    running: { work, read, cancel: Math.max(read, poolSize) },
    waiting: { work: work * WAITING_PER_RUNNING, read: read * WAITING_PER_RUNNING, cancel: WAITING_CANCELS },
    waitMs: WAIT_MS,
  });
}

interface Waiter {
  readonly resolve: (admitted: boolean) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Who may take a connection now. More pressing callers overtake those that wait, and have places that
 * others never take; among equals the first comes first. Every queue and every wait has a bound.
 */
export class AdmissionQueue {
  private readonly running: Record<Urgency, number> = { cancel: 0, read: 0, work: 0 };
  private readonly waiters: Readonly<Record<Urgency, Set<Waiter>>> = {
    cancel: new Set(),
    read: new Set(),
    work: new Set(),
  };

  constructor(private readonly limits: AdmissionLimits) {}

  /** True when one more would neither run nor find room to wait: it can be refused before any work. */
  isFull(urgency: Urgency): boolean {
    return !this.fits(urgency) && this.waiters[urgency].size >= this.limits.waiting[urgency];
  }

  /**
   * Takes a place, at once or after a wait.
   * @returns true: call `leave` once, whatever happens. false: the queue is full or the wait was too
   * long; nothing was taken.
   */
  enter(urgency: Urgency): true | Promise<boolean> {
    if (this.fits(urgency) && this.waiters[urgency].size === 0) {
      this.running[urgency]++;
      return true;
    }
    if (this.waiters[urgency].size >= this.limits.waiting[urgency]) return Promise.resolve(false);
    return this.wait(urgency);
  }

  /** Gives a place back, and the next in turn takes it. */
  leave(urgency: Urgency): void {
    this.running[urgency]--;
    for (const next of URGENCIES) {
      for (const waiter of this.waiters[next]) {
        if (!this.fits(next)) break;
        this.waiters[next].delete(waiter);
        clearTimeout(waiter.timer);
        this.running[next]++;
        waiter.resolve(true);
      }
    }
  }

  private wait(urgency: Urgency): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.waiters[urgency].delete(waiter);
        resolve(false);
      }, this.limits.waitMs);
      const waiter: Waiter = { resolve, timer };
      this.waiters[urgency].add(waiter);
    });
  }

  /** The places of the more pressing stay free: a caller counts against its own bound and all wider ones. */
  private fits(urgency: Urgency): boolean {
    const { cancel, read, work } = this.running;
    const { running } = this.limits;
    const all = cancel + read + work;
    switch (urgency) {
      case 'cancel':
        return all < running.cancel;
      case 'read':
        return all < running.cancel && read + work < running.read;
      case 'work':
        return all < running.cancel && read + work < running.read && work < running.work;
    }
  }
}
