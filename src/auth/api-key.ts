import { createHmac, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { base32 } from '../domain/base32.js';

/** live keys are taken in production mode only, test keys everywhere else: neither opens the other. */
export type ApiKeyMode = 'live' | 'test';

export interface ApiKeyParts {
  readonly mode: ApiKeyMode;
  /** 12 characters; names the key in logs and transitions. No secret. */
  readonly id: string;
  /** The whole text of the key without its check: what the digest covers. */
  readonly signed: string;
}

const ID_LENGTH = 12;
const ID_BYTES = 8;
const SECRET_BYTES = 32;
const CHECK_LENGTH = 7;
/** `ps_<live|test>_<id 12>_<secret 52><check 7>` in lower-case base32: one pattern for secret scanners. */
const FORM = /^(ps_(live|test)_([a-z2-7]{12})_[a-z2-7]{52})([a-z2-7]{7})$/;

/** CRC-32 as 7 characters: finds typing errors, guards nothing. */
function checkOf(text: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return base32(bytes).slice(0, CHECK_LENGTH);
}

/**
 * A new key from 60 random bits of id and 32 random bytes of secret.
 * @returns its parts and the text that the owner is shown once and that is stored nowhere.
 */
export function newApiKey(mode: ApiKeyMode): { readonly parts: ApiKeyParts; readonly text: string } {
  const id = base32(randomBytes(ID_BYTES)).slice(0, ID_LENGTH);
  const signed = `ps_${mode}_${id}_${base32(randomBytes(SECRET_BYTES))}`;
  return { parts: { mode, id, signed }, text: signed + checkOf(signed) };
}

/** The parts of a key's text, or null for every text whose form or check does not fit: no read is worth it. */
export function parseApiKey(text: string): ApiKeyParts | null {
  const m = FORM.exec(text);
  if (!m) return null;
  const signed = m[1] ?? '';
  if (checkOf(signed) !== m[4]) return null;
  return { mode: m[2] as ApiKeyMode, id: m[3] ?? '', signed };
}

/**
 * What is stored of a key: HMAC-SHA-256 under a server-side pepper, 32 bytes. The secret has 256
 * random bits, so a slow password hash would add nothing.
 */
export function apiKeyDigest(parts: ApiKeyParts, pepper: Uint8Array): Buffer {
  return createHmac('sha256', pepper).update(parts.signed).digest();
}
