import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ARM_LEAD_MS, armOffsetMs } from '../../../src/outbox/arm-slots.js';

describe('the arm time of a slot', () => {
  it('is 3 s before the due time for the first one of every lane', () => {
    for (const rate of [1, 20, 99, 100, 20_000]) expect(armOffsetMs(0, rate)).toBe(-3_000);
  });

  it('of a fast lane goes back 20 ms a slot, and never further than 120 s', () => {
    expect(armOffsetMs(1, 100)).toBe(-3_020);
    expect(armOffsetMs(4_999, 5_000)).toBe(-102_980);
    expect(armOffsetMs(5_850, 5_000)).toBe(-120_000);
    expect(armOffsetMs(1_000_000, 5_000)).toBe(-120_000);
  });

  it('of a slow lane follows the order in which the lane sends, a little faster', () => {
    expect(armOffsetMs(100, 20)).toBe(-3_000 + 4_500);
    expect(armOffsetMs(1, 99)).toBeCloseTo(-3_000 + 900 / 99);
  });

  it('is never later than the lane can send, so that no token waits for its payment', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1_000_000 }),
        fc.double({ min: 0.1, max: 50_000, noNaN: true }),
        (slot, rate) => {
          const sendableMs = rate >= 100 ? 0 : (slot * 1_000) / rate;
          expect(armOffsetMs(slot, rate)).toBeLessThanOrEqual(sendableMs - ARM_LEAD_MS + 1e-6);
        },
      ),
    );
  });
});
