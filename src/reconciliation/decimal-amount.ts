/** Up to 13 digits before the point: beyond every amount of a payment, and far from the limit of bigint columns. */
const DECIMAL = /^(-?)(0|[1-9][0-9]{0,12})(?:\.([0-9]{1,9}))?$/;

/**
 * Reads decimal text as minor units, exactly: no float in between.
 * @param exponent decimal digits of the currency's minor unit (ISO 4217).
 * @returns null for every other text: thousands separators, a comma, an exponent, a plus sign, spaces,
 * and digits below the minor unit that are not zero.
 */
export function parseDecimalMinor(text: string, exponent: number): bigint | null {
  const found = DECIMAL.exec(text);
  if (!found) return null;
  const fraction = found[3] ?? '';
  for (let i = exponent; i < fraction.length; i++) if (fraction[i] !== '0') return null;
  const minor = BigInt((found[2] ?? '') + fraction.slice(0, exponent).padEnd(exponent, '0'));
  return found[1] === '-' ? -minor : minor;
}
