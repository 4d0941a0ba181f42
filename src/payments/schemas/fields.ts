import { z } from 'zod';
import { CURRENCY_CODES } from '../../domain/currency.js';
import type { FieldCode } from '../../domain/domain-error.js';
import { parseInstant, type Instant } from '../../domain/instant.js';
import { MAX_AMOUNT_MINOR, MIN_AMOUNT_MINOR } from '../../domain/money.js';

/**
 * The members that requests have in common. Lengths count Unicode code points, as JSON Schema and
 * Postgres do. A check of ours names its code of the problem catalogue as the issue's message.
 */

const CONTROL_CHARACTER = /\p{Cc}/u;
const NOT_A_DIGIT_OR_SEPARATOR = /[^0-9 -]/;

const issue = (
  code: FieldCode,
): { readonly code: 'custom'; readonly message: FieldCode; readonly input: unknown } => ({
  code: 'custom',
  message: code,
  input: undefined,
});

/** At most twice as many UTF-16 units as code points: the cheap question first. */
const isLonger = (text: string, max: number): boolean =>
  text.length > max && (text.length > 2 * max || [...text].length > max);

/** One line of text in Unicode's composed form (NFC), 1 to `max` code points, no controls. */
export const line = (max: number): z.ZodType<string, string> =>
  z.string().check((context) => {
    const text = context.value;
    if (text === '') context.issues.push(issue('too_short'));
    else if (isLonger(text, max)) context.issues.push(issue('too_long'));
    else if (CONTROL_CHARACTER.test(text)) context.issues.push(issue('control_character'));
    else if (text !== text.normalize('NFC')) context.issues.push(issue('not_normalized'));
  });

export const amount = z
  .int()
  .min(Number(MIN_AMOUNT_MINOR))
  .max(Number(MAX_AMOUNT_MINOR))
  .meta({
    description:
      'Whole minor units of the currency (cents, yen, fils), written as digits only: no fraction, no exponent.',
    examples: [1999],
  });

/** The form alone; whether it is a currency we know is asked once all members are well formed. */
export const currency = z
  .string()
  .regex(/^[A-Z]{3}$/)
  .meta({ description: 'An active ISO 4217 code in upper case.', examples: ['EUR'] });

export const knownCurrency = z
  .enum(CURRENCY_CODES as readonly string[] as [string, ...string[]])
  .meta({ description: 'An active ISO 4217 code in upper case.', examples: ['EUR'] });

export const destination = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,128}$/)
  .meta({
    description: 'Where the money goes, in the words of the provider: 1 to 128 of A-Z a-z 0-9 . _ : -',
    examples: ['acct_1032D82eZvKYlo2C'],
  });

const INSTANT_PATTERN = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,6})?(Z|[+-]\\d{2}:\\d{2})$';

export const instant = z
  .string()
  .transform((text, context): Instant => {
    const at = parseInstant(text);
    if (at !== null) return at;
    context.issues.push(issue('malformed'));
    return z.NEVER;
  })
  .meta({
    pattern: INSTANT_PATTERN,
    description: 'RFC 3339 with seconds and an offset, up to 6 fraction digits.',
    examples: ['2026-12-24T09:00:00Z'],
  });

export const executeAt = z
  .string()
  .transform((text, context): Instant | 'now' => {
    const at = text === 'now' ? text : parseInstant(text);
    if (at !== null) return at;
    context.issues.push(issue('malformed'));
    return z.NEVER;
  })
  .meta({
    pattern: `${INSTANT_PATTERN}|^now$`,
    description:
      'When the payment may be sent, never before: RFC 3339 with seconds and an offset, up to 6 fraction digits, or the word "now".',
    examples: ['2026-12-24T09:00:00Z', 'now'],
  });

export const reference = line(64).meta({
  minLength: 1,
  maxLength: 64,
  description: 'Your own name for what is being paid. One line, Unicode NFC.',
  examples: ['invoice-2041'],
});

export const description = line(140).meta({
  minLength: 1,
  maxLength: 140,
  description: 'Text for the payee, as far as the provider carries it. One line, Unicode NFC.',
  examples: ['December payout'],
});

/** Names come from the release's providers; whether the tenant may use one is asked later. */
export const provider = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,31}$/)
  .meta({ description: 'The provider that pays; the default one when left out.', examples: ['stripe'] });

const MAX_PAIRS = 20;
const MAX_KEY = 40;
const MAX_VALUE = 200;

export const metadata = z
  .record(z.string(), z.string())
  .check((context) => {
    const fault = metadataFault(context.value);
    if (fault !== null) context.issues.push(issue(fault));
  })
  .meta({
    maxProperties: MAX_PAIRS,
    propertyNames: { type: 'string', minLength: 1, maxLength: MAX_KEY },
    additionalProperties: { type: 'string', maxLength: MAX_VALUE },
    description: 'Up to 20 pairs of your own, shown back as sent. A value that is a card number is refused.',
    examples: [{ team: 'north' }],
  });

function metadataFault(pairs: Readonly<Record<string, string>>): FieldCode | null {
  const entries = Object.entries(pairs);
  if (entries.length > MAX_PAIRS) return 'too_many';
  for (const [key, value] of entries) {
    if (key === '') return 'too_short';
    if (isLonger(key, MAX_KEY) || isLonger(value, MAX_VALUE)) return 'too_long';
    if (CONTROL_CHARACTER.test(key)) return 'control_character';
    if (isCardNumber(value)) return 'card_number';
  }
  return null;
}

/**
 * 13 to 19 digits, perhaps grouped by spaces or hyphens, whose check digit is right (Luhn, ISO/IEC
 * 7812-1). Card numbers must not come to rest in a field that is neither encrypted nor masked.
 */
function isCardNumber(value: string): boolean {
  if (value.length < 13 || NOT_A_DIGIT_OR_SEPARATOR.test(value)) return false;
  const digits = value.replace(/[ -]/g, '');
  if (digits.length < 13 || digits.length > 19) return false;
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 0x30;
    const doubled = digit * 2;
    sum += i % 2 === 0 ? digit : doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}
