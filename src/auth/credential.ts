import { parseApiKey, type ApiKeyParts } from './api-key.js';

/** What a request shows, by its form alone: nothing was read or verified. */
export type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'api_key'; readonly parts: ApiKeyParts; readonly text: string }
  | { readonly kind: 'token'; readonly text: string };

/** A token in compact form (RFC 7515): three parts in base64url. No API key has a dot. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const BEARER = /^Bearer +(\S+) *$/i;
/** A key has 83 characters and a token one or two thousand; longer text is not even looked at. */
const LONGEST_HEADER = 8_192;

const MALFORMED: Credential = Object.freeze({ kind: 'malformed' });
const NONE: Credential = Object.freeze({ kind: 'none' });

/**
 * Reads the Authorization header (RFC 6750, section 2.1; the scheme in any case).
 * @param lines every Authorization line of the request as it came, or undefined without one. Two
 * lines are malformed: a proxy might have judged the one and we the other.
 * @returns `api_key` only when form and check fit, which finds typing errors without a read.
 */
export function readCredential(lines: readonly string[] | string | undefined): Credential {
  const all = typeof lines === 'string' ? [lines] : (lines ?? []);
  const [header] = all;
  if (header === undefined) return NONE;
  if (all.length > 1 || header.length > LONGEST_HEADER) return MALFORMED;
  const text = BEARER.exec(header)?.[1] ?? '';
  if (TOKEN.test(text)) return { kind: 'token', text };
  const parts = parseApiKey(text);
  return parts === null ? MALFORMED : { kind: 'api_key', parts, text };
}
