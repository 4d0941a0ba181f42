import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCurrency, type CurrencyCode } from '../../../src/domain/currency.js';
import { formatMoney, money, parseAmountMinor, sameMoney } from '../../../src/domain/money.js';

const currency = (code: string): CurrencyCode => {
  const parsed = parseCurrency(code);
  if (parsed.kind !== 'currency') throw new Error(parsed.kind);
  return parsed.currency;
};

describe('an amount', () => {
  it.each(['1', '500', '1999', '999999999999'])('%s is whole minor units', (literal) => {
    expect(parseAmountMinor(literal)).toBe(BigInt(literal));
  });

  it.each(['19.99', '8.20', '78.4', '0.30000000000000004', '1.005', '10.0', '.5', '5.'])(
    'AM-02: %s is refused, never multiplied',
    (literal) => {
      expect(parseAmountMinor(literal)).toBeNull();
    },
  );

  it.each([
    '-1',
    '0',
    '-0',
    '00',
    '01',
    '1e3',
    '1E3',
    '1.0',
    '1e21',
    '+5',
    '１００',
    '٣',
    '1000000000000',
    '',
    ' 1',
    '1 ',
    '1_000',
    '1,000',
    '0x10',
    '1n',
    'NaN',
    'Infinity',
    'null',
    'true',
    '[]',
  ])('AM-03: "%s" is refused', (literal) => {
    expect(parseAmountMinor(literal)).toBeNull();
  });

  it('keeps every value of one to twelve digits exactly', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 999_999_999_999n }), (value) => {
        expect(parseAmountMinor(value.toString())).toBe(value);
      }),
    );
  });

  it('is never made outside one to twelve digits', () => {
    const eur = currency('EUR');
    for (const wrong of [0n, -1n, 1_000_000_000_000n])
      expect(() => money(wrong, eur)).toThrow('one to twelve digits');
    expect(money(1n, eur)).toEqual({ amountMinor: 1n, currency: 'EUR' });
  });
});

describe('money', () => {
  it('is the same only in amount and currency', () => {
    const ten = money(10n, currency('EUR'));
    expect(sameMoney(ten, money(10n, currency('EUR')))).toBe(true);
    expect(sameMoney(ten, money(11n, currency('EUR')))).toBe(false);
    expect(sameMoney(ten, money(10n, currency('USD')))).toBe(false);
  });

  it.each([
    [1999n, 'EUR', '19.99 EUR'],
    [5n, 'EUR', '0.05 EUR'],
    [500n, 'JPY', '500 JPY'],
    [1234n, 'KWD', '1.234 KWD'],
    [1n, 'KWD', '0.001 KWD'],
    [1n, 'KRW', '1 KRW'],
  ])('AM-01: %s minor units of %s are shown as %s', (amountMinor, code, shown) => {
    expect(formatMoney(money(amountMinor, currency(code)))).toBe(shown);
  });
});
