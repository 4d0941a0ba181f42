import { SHARE_OF_DECLARED_RATE } from './lane-policy.js';

/** What payments leave of the declared rate, for each call a second that they may make. */
const LOOKUPS_PER_TOKEN = 1 / SHARE_OF_DECLARED_RATE - 1;
/** Lookups of a second may come at once: the declared rates count seconds. */
const BURST_SECONDS = 1;

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/**
 * How many lookups this worker may send on each lane: its share of the room that the lane's own rate
 * leaves in what the provider declares. Kept in memory, so workers that come and go are off by a moment's worth.
 */
export class LookupBudget {
  private readonly buckets = new Map<string, Bucket>();

  /**
   * Whole lookups that may go now.
   * @param of.ratePerSecond of the lane's row. @param of.workers that share the lane, 1 and more.
   * @param nowMs of a clock that never jumps.
   */
  available(lane: string, of: { ratePerSecond: number; workers: number }, nowMs: number): number {
    const perSecond = (of.ratePerSecond * LOOKUPS_PER_TOKEN) / Math.max(1, of.workers);
    const burst = Math.max(1, perSecond * BURST_SECONDS);
    const bucket = this.buckets.get(lane) ?? { tokens: burst, filledAtMs: nowMs };
    const filled = bucket.tokens + (perSecond * (nowMs - bucket.filledAtMs)) / 1_000;
    this.buckets.set(lane, { tokens: Math.min(burst, filled), filledAtMs: nowMs });
    return Math.floor(Math.min(burst, filled));
  }

  /** One lookup goes out. */
  spend(lane: string): void {
    const bucket = this.buckets.get(lane);
    if (bucket) bucket.tokens--;
  }
}
