/** ISO 4217 currencies whose minor unit has other than two digits. */
const DIGITS: Readonly<Record<string, number>> = Object.freeze({
  ...Object.fromEntries(
    'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF'.split(' ').map((code) => [code, 0]),
  ),
  ...Object.fromEntries('BHD IQD JOD KWD LYD OMR TND'.split(' ').map((code) => [code, 3])),
});

/** Decimal text of an amount in minor units: -1999 EUR is `-19.99`, 500 JPY `500`, 5 KWD `0.005`. */
export function decimalText(minor: bigint, currency: string): string {
  const digits = DIGITS[currency] ?? 2;
  const sign = minor < 0n ? '-' : '';
  const text = (minor < 0n ? -minor : minor).toString().padStart(digits + 1, '0');
  return digits === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}
