import { PrepareRefused } from '../payment-provider.js';

/**
 * How Stripe counts a currency, where that differs from ISO 4217
 * (docs.stripe.com/currencies, "zero-decimal currencies", "special cases", "three-decimal currencies").
 */

/** Stripe's presentment currencies. One that is not among them has no exponent we could rely on. */
const COUNTED = new Set(
  (
    'USD AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF ' +
    'CLP CNY COP CRC CVE CZK DJF DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GNF GTQ GYD HKD HNL HTG HUF ' +
    'IDR ILS INR ISK JMD JOD JPY KES KGS KHR KMF KRW KWD KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT ' +
    'MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF ' +
    'SAR SBD SCR SEK SGD SHP SLE SOS SRD SZL THB TJS TND TOP TRY TTD TWD TZS UAH UYU UZS VND VUV WST XAF XCD ' +
    'XCG XOF XPF YER ZAR ZMW'
  ).split(' '),
);

/** Stripe wants two decimals of a currency that has none: 5 krónur are 500. */
const HUNDREDFOLD = new Set(['ISK']);
/** Stripe counts whole units of a currency that has two decimals: 5.00 ariary are 5. */
const HUNDREDTH = new Set(['MGA']);
/** Three decimals, the last of which must be 0. */
const LAST_DIGIT_ZERO = new Set(['BHD', 'JOD', 'KWD', 'OMR', 'TND']);
/** Listed as without decimals and, in another table of the same page, as with two: a guess is a factor of 100. */
const CONTRADICTORY = new Set(['UGX']);

/** The same for the descriptor: decimal digits there, where they are others than in ISO 4217. */
export const STRIPE_EXPONENTS: Readonly<Record<string, number>> = Object.freeze({ ISK: 2, MGA: 0 });

/**
 * Minor units of ISO 4217 in Stripe's count. Exact, or refused: nothing is rounded.
 * @param currency three upper-case letters.
 * @throws PrepareRefused currency_unusable, currency_ambiguous, amount_not_expressible.
 */
export function toStripeAmount(amountMinor: bigint, currency: string): bigint {
  if (CONTRADICTORY.has(currency)) throw new PrepareRefused('currency_ambiguous');
  if (!COUNTED.has(currency)) throw new PrepareRefused('currency_unusable');
  if (HUNDREDFOLD.has(currency)) return amountMinor * 100n;
  if (HUNDREDTH.has(currency)) {
    if (amountMinor % 100n !== 0n) throw new PrepareRefused('amount_not_expressible');
    return amountMinor / 100n;
  }
  if (LAST_DIGIT_ZERO.has(currency) && amountMinor % 10n !== 0n)
    throw new PrepareRefused('amount_not_expressible');
  return amountMinor;
}

/**
 * The way back, for an amount that Stripe tells.
 * @returns null when the currency or the amount has no meaning in minor units: then it equals no
 * instruction of ours.
 */
export function fromStripeAmount(amount: bigint, currency: string): bigint | null {
  if (!COUNTED.has(currency)) return null;
  if (HUNDREDFOLD.has(currency)) return amount % 100n === 0n ? amount / 100n : null;
  return HUNDREDTH.has(currency) ? amount * 100n : amount;
}
