import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { parseDecimalMinor } from '../../../src/reconciliation/decimal-amount.js';

describe('decimal text becomes minor units', () => {
  it.each([
    ['19.99', 2, 1_999n],
    ['-19.99', 2, -1_999n],
    ['0.01', 2, 1n],
    ['-0.00', 2, 0n],
    ['19.9', 2, 1_990n],
    ['19', 2, 1_900n],
    ['500', 0, 500n],
    ['500.00', 0, 500n],
    ['1.234', 3, 1_234n],
    ['9999999999999.99', 2, 999_999_999_999_999n],
    // As a float it would be 1000.00000000000011 or so.
    ['1000.10', 2, 100_010n],
  ])('%s with %i digits', (text, exponent, minor) => {
    expect(parseDecimalMinor(text, exponent)).toBe(minor);
  });

  it.each([
    ['', 2], ['1,999.00', 2], ['19,99', 2], ['1e3', 2], ['+1.00', 2], [' 1.00', 2], ['1.00 ', 2], ['1.', 2],
    ['.5', 2], ['(1.00)', 2], ['--1.00', 2], ['01.00', 2], ['1.001', 2], ['500.50', 0], ['0x10', 2], ['NaN', 2],
    ['12345678901234.00', 2], ['1.00\n', 2], ['１.00', 2], ['1_000', 2],
  ] as const)('but not %j with %i digits', (text, exponent) => {
    expect(parseDecimalMinor(text, exponent)).toBeNull();
  }); // prettier-ignore

  it('and every amount that is written comes back, whatever its size', () => {
    const amount = fc.bigInt({ min: -999_999_999_999n, max: 999_999_999_999n });
    fc.assert(
      fc.property(amount, fc.constantFrom(0, 2, 3), (minor, exponent) => {
        const digits = (minor < 0n ? -minor : minor).toString().padStart(exponent + 1, '0');
        const text = exponent === 0 ? digits : `${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`;
        expect(parseDecimalMinor(minor < 0n ? `-${text}` : text, exponent)).toBe(minor);
      }),
    );
  });
});
