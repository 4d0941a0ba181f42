/** A lone payment arms this long before its time. */
export const ARM_LEAD_MS = 3_000;
/** Lanes from this rate on arm ahead of the due time, one slot after the other. */
const FAST_LANE_RATE = 100;
/** Below what a small machine arms in a second (60 to 130), so that a burst is armed when it is due. */
const SLOTS_PER_SECOND = 50;
const EARLIEST_MS = 120_000;
/** Slower lanes arm in the order in which they can be sent, a little faster than that. */
const SLOW_LANE_SHARE = 0.9;

/**
 * When to arm the payment with this slot of its second, relative to its due time; ms, negative is
 * before. Fast lanes spread the work of a full second evenly over the time before it (5,000 at one
 * instant over 100 s); slow lanes arm after it, since their payments cannot all go at once anyway.
 */
export function armOffsetMs(slot: number, lanePerSecond: number): number {
  if (lanePerSecond >= FAST_LANE_RATE) {
    return -ARM_LEAD_MS - Math.min(EARLIEST_MS - ARM_LEAD_MS, (slot * 1000) / SLOTS_PER_SECOND);
  }
  return -ARM_LEAD_MS + (SLOW_LANE_SHARE * slot * 1000) / lanePerSecond;
}
