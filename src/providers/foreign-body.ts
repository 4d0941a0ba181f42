/** Longest part of a foreign answer that is kept, in bytes of UTF-8. */
export const FOREIGN_BODY_BYTES = 4096;

/**
 * The beginning of an answer that was not understood, as evidence for people: at most
 * `FOREIGN_BODY_BYTES`, no half character at the cut, and `?` for NUL, which Postgres refuses in text.
 */
export function foreignBodyOf(body: string): string {
  const bytes = Buffer.from(body.slice(0, FOREIGN_BODY_BYTES).replaceAll('\0', '?'), 'utf8');
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, FOREIGN_BODY_BYTES), {
    stream: true,
  });
}
