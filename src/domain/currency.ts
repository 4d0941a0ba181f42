declare const currencyBrand: unique symbol;

/** An active ISO 4217 currency of the pinned table, three upper-case letters. */
export type CurrencyCode = string & { readonly [currencyBrand]: true };

/** malformed: not three upper-case letters. unsupported: well formed, not in the pinned table. */
export type CurrencyParsed =
  | { readonly kind: 'currency'; readonly currency: CurrencyCode }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'unsupported' };

/**
 * ISO 4217, list one (active codes), by number of decimal digits of the minor unit. Pinned here
 * because `Intl` disagrees with ISO on real currencies, and because an exponent must not change
 * with the runtime. Left out on purpose: funds codes and indexed units (BOV CHE CHW CLF COU MXV
 * USN UYI UYW), metals (XAG XAU XPD XPT), bond and accounting units (XAD XBA XBB XBC XBD XDR XSU
 * XUA), test and no-currency codes (XTS XXX), and withdrawn ones (among them ANG, BGN, HRK, SLL,
 * ZWL).
 */
const BY_EXPONENT: Readonly<Record<0 | 2 | 3, string>> = Object.freeze({
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF',
  2:
    'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF ' +
    'CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL ' +
    'HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT ' +
    'MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB ' +
    'SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH ' +
    'USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG',
  3: 'BHD IQD JOD KWD LYD OMR TND',
});

const EXPONENTS: ReadonlyMap<string, number> = new Map(
  Object.entries(BY_EXPONENT).flatMap(([exponent, codes]) =>
    codes.split(' ').map((code) => [code, Number(exponent)] as const),
  ),
);

/** Every code of the table, in alphabetic order. */
export const CURRENCY_CODES = Object.freeze([...EXPONENTS.keys()].sort()) as readonly CurrencyCode[];

const FORM = /^[A-Z]{3}$/;
const MALFORMED: CurrencyParsed = Object.freeze({ kind: 'malformed' });
const UNSUPPORTED: CurrencyParsed = Object.freeze({ kind: 'unsupported' });

/** Neither trims nor changes letter case: `usd` and `USD ` are malformed. */
export function parseCurrency(text: string): CurrencyParsed {
  if (!FORM.test(text)) return MALFORMED;
  return EXPONENTS.has(text) ? { kind: 'currency', currency: text as CurrencyCode } : UNSUPPORTED;
}

/** Number of decimal digits of the minor unit: 0, 2 or 3. A Chilean peso has 0, a Kuwaiti dinar 3. */
export function exponentOf(currency: CurrencyCode): number {
  const exponent = EXPONENTS.get(currency);
  if (exponent === undefined) throw new Error('a currency of the pinned table was expected');
  return exponent;
}
