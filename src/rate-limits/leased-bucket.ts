import type { Lease } from './lease.store.js';
import type { RateLimit } from './rate-limit.js';

/** Unused tokens of a lease are dropped after this: what is held back from other processes is young (ms). */
export const LEASE_LIFE_MS = 1_000;
/** An empty bucket is asked again after this at the earliest, however many requests it refuses (ms). */
const ASK_AGAIN_MS = 50;
/** How long a process goes by its own count after Postgres could not be asked (ms). */
export const ALONE_MS = 1_000;
/** A lease holds what the limit gives in this time (ms) … */
const BLOCK_MS = 100;
/** … and no more than so much of the burst, … */
const BLOCK_OF_BURST = 0.1;
/** … and never more than this. */
const MOST_BLOCK = 100;

/**
 * Tokens that a process takes at once beyond those it needs now. All processes together admit in any T
 * seconds at most `burst + ratePerSecond × T` and, for each process, one block that it had left over.
 */
export function blockOf({ ratePerSecond, burst }: RateLimit): number {
  const wished = Math.min(ratePerSecond * (BLOCK_MS / 1_000), burst * BLOCK_OF_BURST, MOST_BLOCK);
  return Math.max(1, Math.floor(wished));
}

export type Taken =
  | { readonly kind: 'admitted'; readonly remaining: number; readonly nextInMs: number }
  | { readonly kind: 'refused'; readonly remaining: 0; readonly nextInMs: number };

export interface LeasedBucketOptions {
  /** Asks the shared bucket for so many tokens; rejects when Postgres gives no answer in time. */
  readonly lease: (wanted: number) => Promise<Lease>;
  /** The limit until the first lease has named the real one. */
  readonly limit: RateLimit;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly onFault: (error: unknown) => void;
}

/**
 * This process's part of one shared bucket: most requests take a token that was leased before, and ask
 * nobody. While Postgres gives no answer the process admits by a count of its own, under the same
 * limit, so that a limiter that cannot ask never becomes an outage: P processes then admit at most P
 * times the limit.
 */
export class LeasedBucket {
  #limit: RateLimit;
  #leased = 0;
  #leasedUntilMs = 0;
  /** Tokens in the shared bucket after the last lease. */
  #shared: number;
  #emptyUntilMs = 0;
  #aloneUntilMs = 0;
  #own: { tokens: number; atMs: number } | null = null;
  #waiting = 0;
  #asking: Promise<void> | null = null;

  constructor(private readonly options: LeasedBucketOptions) {
    this.#limit = options.limit;
    this.#shared = options.limit.burst;
  }

  get limit(): RateLimit {
    return this.#limit;
  }

  /** Takes one token, or says when there may be one. Never throws. Twice: two tokens. */
  async take(): Promise<Taken> {
    for (;;) {
      const taken = this.#takeHere();
      if (taken !== null) return taken;
      this.#waiting++;
      try {
        await (this.#asking ??= this.#ask());
      } finally {
        this.#waiting--;
      }
    }
  }

  /** Gives back the token of a request that another bucket refused. */
  giveBack(): void {
    const now = this.options.nowMs();
    this.#dropOldLease(now);
    if (this.#leased === 0) this.#leasedUntilMs = now + LEASE_LIFE_MS;
    this.#leased++;
  }

  #dropOldLease(now: number): void {
    if (now >= this.#leasedUntilMs) this.#leased = 0;
  }

  /** null: nobody here knows, the shared bucket has to be asked. */
  #takeHere(): Taken | null {
    const now = this.options.nowMs();
    this.#dropOldLease(now);
    if (this.#leased >= 1) {
      this.#leased--;
      return this.#admitted(this.#leased + this.#shared);
    }
    if (now < this.#emptyUntilMs)
      return { kind: 'refused', remaining: 0, nextInMs: this.#emptyUntilMs - now };
    return now < this.#aloneUntilMs ? this.#takeAlone(now) : null;
  }

  #takeAlone(now: number): Taken {
    const { ratePerSecond, burst } = this.#limit;
    const own = (this.#own ??= { tokens: burst, atMs: now });
    own.tokens = Math.min(burst, own.tokens + (ratePerSecond * (now - own.atMs)) / 1_000);
    own.atMs = now;
    if (own.tokens < 1) {
      return { kind: 'refused', remaining: 0, nextInMs: ((1 - own.tokens) * 1_000) / ratePerSecond };
    }
    own.tokens--;
    return this.#admitted(own.tokens);
  }

  #admitted(tokens: number): Taken {
    const { ratePerSecond, burst } = this.#limit;
    const remaining = Math.max(0, Math.min(burst, Math.floor(tokens)));
    return { kind: 'admitted', remaining, nextInMs: 1_000 / ratePerSecond };
  }

  /** One question at a time, for all who wait: they get theirs, and a block is laid by. */
  async #ask(): Promise<void> {
    // Everybody who waits in this turn of the event loop is counted.
    await Promise.resolve();
    const wanted = this.#waiting + blockOf(this.#limit);
    try {
      const { granted, left, limit } = await this.options.lease(wanted);
      const now = this.options.nowMs();
      this.#limit = limit;
      this.#leased = granted;
      this.#shared = left;
      this.#leasedUntilMs = now + LEASE_LIFE_MS;
      // Less than was wanted: the bucket is empty, and whoever gets none of these need not ask again.
      const nextInMs = ((1 - left) * 1_000) / limit.ratePerSecond;
      this.#emptyUntilMs = granted < wanted ? now + Math.max(nextInMs, ASK_AGAIN_MS) : 0;
    } catch (error) {
      this.#aloneUntilMs = this.options.nowMs() + ALONE_MS;
      this.options.onFault(error);
    } finally {
      this.#asking = null;
    }
  }
}
