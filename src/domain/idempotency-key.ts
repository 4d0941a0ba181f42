declare const idempotencyKeyBrand: unique symbol;

/**
 * The caller's own key for one intended payment: 1 to 255 visible ASCII characters, unquoted,
 * case-sensitive, scoped to the tenant, never expiring. Never in a log, a metric or a workflow id.
 */
export type IdempotencyKey = string & { readonly [idempotencyKeyBrand]: true };

/** missing: no header at all. invalid: two headers, or a value outside the form. */
export type IdempotencyKeyParsed =
  | { readonly kind: 'key'; readonly key: IdempotencyKey }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid' };

const MISSING: IdempotencyKeyParsed = Object.freeze({ kind: 'missing' });
const INVALID: IdempotencyKeyParsed = Object.freeze({ kind: 'invalid' });

/** Around a field's value RFC 9110 allows spaces and tabs; they are no part of it. */
const OUTER_WHITE_SPACE = /^[ \t]+|[ \t]+$/g;
const VISIBLE_ASCII = /^[!-~]{1,255}$/;
/** An RFC 9651 string: a quote or a backslash inside is written with a backslash before it. */
const QUOTED = /^"((?:[!#-[\]-~]|\\["\\])*)"$/;

/**
 * Reads the key from every `Idempotency-Key` header of one request.
 * @param values one entry per header line as it came (Latin-1 text, as Node hands it over), not
 * joined: a joined list would hide the second header. Empty when the header is absent.
 * @returns the key as it is compared and stored: bare `k`, quoted `"k"` and `k` with spaces
 * around it are one key; leading zeros and letter case count. Length is counted on the unquoted
 * key, where characters equal bytes.
 */
export function parseIdempotencyKey(values: readonly string[]): IdempotencyKeyParsed {
  if (values.length === 0) return MISSING;
  const [value] = values;
  if (values.length > 1 || value === undefined) return INVALID;
  const bare = unquote(value.replace(OUTER_WHITE_SPACE, ''));
  if (bare === null || !VISIBLE_ASCII.test(bare)) return INVALID;
  return { kind: 'key', key: bare as IdempotencyKey };
}

/** A value that only looks quoted is refused: whether it means `k` or `"k` is anyone's guess. */
function unquote(value: string): string | null {
  if (!value.startsWith('"') && !value.endsWith('"')) return value;
  const quoted = QUOTED.exec(value);
  return quoted ? (quoted[1] ?? '').replace(/\\(["\\])/g, '$1') : null;
}
