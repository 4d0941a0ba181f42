import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import type { AnchorKeySet } from '../config/key-file.js';
import { anchorText, type Anchor, type AnchorSignature } from './anchor.js';

/** Key id to public key. */
export type AnchorPublicKeys = ReadonlyMap<string, KeyObject>;

/** RFC 8410: what stands before the 32 bytes of an Ed25519 key in its DER form. */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const KEY_BYTES = 32;

function privateKey(seed: string): KeyObject {
  const der = Buffer.concat([PRIVATE_PREFIX, Buffer.from(seed, 'base64')]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

/** The public halves of all keys of the set. */
export function publicKeysOf(set: AnchorKeySet): AnchorPublicKeys {
  return new Map(Object.entries(set.keys).map(([id, seed]) => [id, createPublicKey(privateKey(seed))]));
}

/** Public keys as JSON members: key id to 32 bytes in base64. */
export function writePublicKeys(keys: AnchorPublicKeys): Record<string, string> {
  return Object.fromEntries(
    [...keys].map(([id, key]) => [
      id,
      key.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_PREFIX.length).toString('base64'),
    ]),
  );
}

/** @throws Error when it is no such object or a key is not 32 bytes. */
export function readPublicKeys(json: unknown): AnchorPublicKeys {
  if (typeof json !== 'object' || json === null || Object.keys(json).length === 0) {
    throw new Error('Public anchor keys are an object of key id to 32 bytes in base64.');
  }
  return new Map(
    Object.entries(json).map(([id, text]) => {
      const raw = Buffer.from(String(text), 'base64');
      if (raw.length !== KEY_BYTES) throw new Error(`The public anchor key ${id} is not 32 bytes.`);
      return [id, createPublicKey({ key: Buffer.concat([PUBLIC_PREFIX, raw]), format: 'der', type: 'spki' })];
    }),
  );
}

/** One signature of each of these keys of the set. @throws Error when the set lacks one. */
export function signAnchor(
  anchor: Anchor,
  set: AnchorKeySet,
  keyIds: readonly string[] = set.active,
): readonly AnchorSignature[] {
  const text = Buffer.from(anchorText(anchor), 'utf8');
  return keyIds.map((keyId) => {
    const seed = set.keys[keyId];
    if (seed === undefined) throw new Error(`The anchor set lacks its active key ${keyId}.`);
    return { keyId, signature: sign(null, text, privateKey(seed)).toString('base64') };
  });
}

/** Whether the signature is this anchor's; null when the key is not among these. */
export function isSignedBy(
  anchor: Anchor,
  { keyId, signature }: AnchorSignature,
  keys: AnchorPublicKeys,
): boolean | null {
  const key = keys.get(keyId);
  if (key === undefined) return null;
  return verify(null, Buffer.from(anchorText(anchor), 'utf8'), key, Buffer.from(signature, 'base64'));
}
