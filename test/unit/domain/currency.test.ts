import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CURRENCY_CODES, exponentOf, parseCurrency } from '../../../src/domain/currency.js';

const exponent = (code: string): number | string => {
  const parsed = parseCurrency(code);
  return parsed.kind === 'currency' ? exponentOf(parsed.currency) : parsed.kind;
};

describe('a currency', () => {
  it.each([
    ['EUR', 2],
    ['USD', 2],
    ['JPY', 0],
    ['KRW', 0],
    ['CLP', 0],
    ['XOF', 0],
    ['XAF', 0],
    ['XPF', 0],
    ['KWD', 3],
    ['TND', 3],
    ['IQD', 3],
    ['MGA', 2],
    ['MRU', 2],
    ['HUF', 2],
    ['IDR', 2],
    ['XCD', 2],
    ['XCG', 2],
    ['SLE', 2],
    ['VED', 2],
    ['ZWG', 2],
  ])('AM-01: %s has %i digits of minor unit, as ISO 4217 says', (code, digits) => {
    expect(exponent(code)).toBe(digits);
  });

  it.each(['CLF', 'CHE', 'CHW', 'BOV', 'COU', 'MXV', 'USN', 'UYI', 'UYW'])(
    'AM-01: the funds code %s is not supported',
    (code) => {
      expect(parseCurrency(code)).toEqual({ kind: 'unsupported' });
    },
  );

  it.each(['usd', 'UsD', 'USD ', ' USD', 'USD\n', 'US', 'USDX', '', '978', 'ＵＳＤ', 'ÜSD'])(
    'AM-04: "%s" has the wrong form',
    (code) => {
      expect(parseCurrency(code)).toEqual({ kind: 'malformed' });
    },
  );

  it.each([
    'XXX',
    'XTS',
    'XAU',
    'XAG',
    'XPT',
    'XPD',
    'XDR',
    'XUA',
    'XSU',
    'XBA',
    'BTC',
    'ZWL',
    'ANG',
    'HRK',
    'BGN',
    'AAA',
  ])('AM-04: %s is well formed and outside the table', (code) => {
    expect(parseCurrency(code)).toEqual({ kind: 'unsupported' });
  });

  it('the table holds 155 codes, each once, each readable', () => {
    expect(new Set(CURRENCY_CODES).size).toBe(155);
    expect(CURRENCY_CODES).toHaveLength(155);
    for (const code of CURRENCY_CODES) expect([0, 2, 3]).toContain(exponent(code));
  });

  it('anything but a code of the table is refused, also the names of object members', () => {
    const known = new Set<string>(CURRENCY_CODES);
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constantFrom('constructor', '__proto__', 'toString')), (text) => {
        expect(parseCurrency(text).kind === 'currency').toBe(known.has(text));
      }),
    );
  });
});
