import { assert } from './assert.js';
import { exponentOf, type CurrencyCode } from './currency.js';

/** An amount in whole minor units of its currency. No float ever touches it. */
export interface Money {
  readonly amountMinor: bigint;
  readonly currency: CurrencyCode;
}

/** The smallest and largest amount, in minor units: one to twelve decimal digits. */
export const MIN_AMOUNT_MINOR = 1n;
export const MAX_AMOUNT_MINOR = 999_999_999_999n;

const LITERAL = /^[1-9][0-9]{0,11}$/;

/**
 * Reads an amount from the text of its JSON literal, so that nothing is rounded before it is
 * checked.
 * @returns minor units, or null for every other text: zero, a sign, a fraction, an exponent, a
 * leading zero, more than 12 digits, digits of another script.
 */
export function parseAmountMinor(literal: string): bigint | null {
  return LITERAL.test(literal) ? BigInt(literal) : null;
}

/**
 * @throws Error for an amount outside 1 to 999,999,999,999 minor units: input is refused before it
 * gets here, so this is a bug in the caller.
 */
export function money(amountMinor: bigint, currency: CurrencyCode): Money {
  assert(
    amountMinor >= MIN_AMOUNT_MINOR && amountMinor <= MAX_AMOUNT_MINOR,
    'an amount has one to twelve digits of minor units and is positive',
  );
  return Object.freeze({ amountMinor, currency });
}

/** Equal in amount and in currency. */
export function sameMoney(a: Money, b: Money): boolean {
  return a.amountMinor === b.amountMinor && a.currency === b.currency;
}

/** For people: major units by the currency's exponent and its code, `19.99 EUR`, `500 JPY`. */
export function formatMoney({ amountMinor, currency }: Money): string {
  const exponent = exponentOf(currency);
  const digits = amountMinor.toString().padStart(exponent + 1, '0');
  if (exponent === 0) return `${digits} ${currency}`;
  return `${digits.slice(0, -exponent)}.${digits.slice(-exponent)} ${currency}`;
}
