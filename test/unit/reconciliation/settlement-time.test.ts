import { describe, expect, it } from 'vitest';
import { parseSettlementTime } from '../../../src/reconciliation/settlement-time.js';

describe('the time of a row', () => {
  it.each([
    ['2027-03-01T09:00:00Z', '2027-03-01T09:00:00Z'],
    ['2027-03-01T09:00:00.123456+02:00', '2027-03-01T09:00:00.123456+02:00'],
    ['2027-03-01 09:00:00', '2027-03-01T09:00:00Z'],
    ['2027-03-01', '2027-03-01T00:00:00Z'],
    ['2028-02-29', '2028-02-29T00:00:00Z'],
  ])('%s is %s', (text, time) => {
    expect(parseSettlementTime(text)).toBe(time);
  });

  it.each([
    '', '2027-02-29', '2027-02-31T00:00:00Z', '2027-13-01', '2027-03-01T25:00:00Z', '01.03.2027', '2027-3-1',
    '0000-01-01', '9999-01-01', '1700000000', '2027-03-01T09:00:00+99:00', '2027-03-01T09:00', 'now', 'infinity',
  ])('%j is none: Postgres would refuse it and its whole portion', (text) => {
    expect(parseSettlementTime(text)).toBeNull();
  }); // prettier-ignore
});
