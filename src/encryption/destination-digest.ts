import { createHmac, timingSafeEqual } from 'node:crypto';
import type { KeySet } from '../config/key-file.js';
import { KeyRing, type RingKey } from './key-ring.js';

export interface KeyedDigest {
  readonly keyId: string;
  /** HMAC-SHA-256: 32 bytes. */
  readonly digest: Buffer;
}

/**
 * Digests of destinations: HMAC-SHA-256 under a key of their own, because a plain hash of an
 * account number is found by trying all of them. The request fingerprint covers the digest, so a
 * repeat is compared under the key of the stored row and digest keys outlive their rows.
 */
export class DestinationDigests {
  private readonly ring: KeyRing;

  constructor(set: KeySet) {
    this.ring = new KeyRing(set);
  }

  /** Under the active key: for new rows. Twice: the same bytes. */
  digest(destination: string): KeyedDigest {
    return hmac(this.ring.active, destination);
  }

  /**
   * Under the key that a stored row names.
   * @throws UnknownKey when the key file no longer holds it.
   */
  digestWith(keyId: string, destination: string): KeyedDigest {
    return hmac(this.ring.find(keyId), destination);
  }

  /** True when `stored` is the digest of this destination. @throws UnknownKey as `digestWith`. */
  matches(stored: KeyedDigest, destination: string): boolean {
    const { digest } = this.digestWith(stored.keyId, destination);
    return stored.digest.length === digest.length && timingSafeEqual(stored.digest, digest);
  }
}

function hmac({ id, key }: RingKey, destination: string): KeyedDigest {
  return { keyId: id, digest: createHmac('sha256', key).update(destination, 'utf8').digest() };
}
