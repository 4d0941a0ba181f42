import { createCipheriv, createDecipheriv, randomBytes, type KeyObject } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
/** The layout of sealed bytes; part of every AAD, so that an old layout cannot be forced. */
export const SCHEMA_VERSION = 1;
/** NIST SP 800-38D: 96 bits, random; at most 2^32 texts under one key. */
const NONCE_BYTES = 12;
/** Node accepts tags of 4 bytes unless told otherwise; a short tag can be guessed. */
const TAG_BYTES = 16;
const TAG_AT = 1 + NONCE_BYTES;
const TEXT_AT = TAG_AT + TAG_BYTES;

/**
 * AES-256-GCM over `plaintext`, authenticated together with `associated`.
 * @returns version (1 byte), nonce (12), tag (16), ciphertext (as long as the plaintext). Twice: other
 * bytes, both open.
 */
export function seal(key: KeyObject, associated: Buffer, plaintext: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associated);
  const text = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return Buffer.concat([Buffer.of(SCHEMA_VERSION), nonce, cipher.getAuthTag(), text]);
}

/**
 * Opens what `seal` sealed with the same key and the same associated data.
 * @throws Error for anything else: short, changed, moved, or of another layout. Shows neither text nor key.
 */
export function open(key: KeyObject, associated: Buffer, sealed: Buffer): Buffer {
  if (sealed.length < TEXT_AT || sealed[0] !== SCHEMA_VERSION) throw new Error('no sealed bytes of ours');
  const nonce = sealed.subarray(1, TAG_AT);
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associated);
  decipher.setAuthTag(sealed.subarray(TAG_AT, TEXT_AT));
  return Buffer.concat([decipher.update(sealed.subarray(TEXT_AT)), decipher.final()]);
}

/** JSON quotes each part, so that no two lists of parts share their bytes. */
export function associatedData(...parts: readonly string[]): Buffer {
  return Buffer.from(JSON.stringify([...parts, SCHEMA_VERSION]), 'utf8');
}
