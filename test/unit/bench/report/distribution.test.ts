import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { distribution, percentile } from '../../../../bench/report/distribution.js';

describe('percentiles', () => {
  it('are taken by nearest rank, of values in any order', () => {
    const values = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(distribution(values)).toEqual({ p50: 50, p99: 99, most: 100 });
    expect(distribution([7])).toEqual({ p50: 7, p99: 7, most: 7 });
  });

  it('are not known without values', () => {
    expect(distribution([])).toEqual({ p50: null, p99: null, most: null });
  });

  it('leave at least their share of the values at or below them, and are one of the values', () => {
    const share = fc.double({ min: 0.01, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.integer(), { minLength: 1 }), share, (values, p) => {
        const found = percentile(values, p);
        expect(values).toContain(found);
        const below = values.filter((value) => value <= (found ?? NaN)).length;
        expect(below).toBeGreaterThanOrEqual(p * values.length - 1e-9);
      }),
    );
  });
});
