import { afterEach, describe, expect, it, vi } from 'vitest';
import { createWallClock } from '../../../src/simulator/wall-clock.js';

describe('the wall clock of the simulator', () => {
  afterEach(() => vi.restoreAllMocks());

  it('stays inside the millisecond that the machine shows, and has a fraction', () => {
    const now = createWallClock();
    const readings = Array.from({ length: 2_000 }, () => {
      const before = Date.now();
      const value = now();
      return { before, value, after: Date.now() };
    });
    for (const { before, value, after } of readings) {
      expect(value).toBeGreaterThanOrEqual(before);
      expect(value).toBeLessThan(after + 1);
    }
    expect(readings.some(({ value }) => !Number.isInteger(value))).toBe(true);
  });

  it('follows at once when the clock is set forward or back', () => {
    const now = createWallClock();
    const real = Date.now();
    for (const shiftMs of [3_600_000, -3_600_000, 0]) {
      vi.spyOn(Date, 'now').mockReturnValue(real + shiftMs);
      expect(Math.floor(now())).toBe(real + shiftMs);
    }
  });
});
