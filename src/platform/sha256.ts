import { hash } from 'node:crypto';

/** SHA-256 of the text's UTF-8 bytes: 32 bytes. */
export function sha256(text: string): Uint8Array {
  return hash('sha256', text, 'buffer');
}

/** SHA-256 of the text's UTF-8 bytes, or of the bytes, as 64 characters of lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** SHA-1 of the bytes: 20 bytes. For names (UUID version 5) only, never where collisions matter. */
export function sha1(bytes: Uint8Array): Uint8Array {
  return hash('sha1', bytes, 'buffer');
}
