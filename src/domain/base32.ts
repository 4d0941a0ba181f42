const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Lower-case base32 without padding (RFC 4648, section 6): 5 bits per character, the last
 * character filled with zero bits. Pure; the same bytes always give the same text.
 */
export function base32(bytes: Uint8Array): string {
  let text = '';
  let pending = 0;
  let pendingBits = 0;
  for (const byte of bytes) {
    pending = (pending << 8) | byte;
    pendingBits += 8;
    while (pendingBits >= 5) {
      pendingBits -= 5;
      text += ALPHABET.charAt((pending >> pendingBits) & 31);
    }
    pending &= (1 << pendingBits) - 1;
  }
  if (pendingBits > 0) text += ALPHABET.charAt((pending << (5 - pendingBits)) & 31);
  return text;
}
