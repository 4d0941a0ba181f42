import { createCipheriv, createDecipheriv, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { KeysFile } from '../config/config.js';
import { DestinationDigests } from './destination-digest.js';
import { KeyRing } from './key-ring.js';

/** What is stored encrypted; part of what authenticates a ciphertext, so none can stand for another. */
export type EncryptedField = 'destination' | 'submission_parameters' | 'foreign_body';

/** The row and the column that a ciphertext belongs to. */
export interface Place {
  readonly tenant: string;
  readonly paymentId: string;
  readonly field: EncryptedField;
}

export interface Sealed {
  readonly keyId: string;
  /** Version (1 byte), nonce (12), tag (16), ciphertext (as long as the text's UTF-8). */
  readonly ciphertext: Buffer;
}

/** A destination as its row stores it. */
export interface StoredDestination {
  readonly id: string;
  readonly tenant_id: string;
  readonly destination: Buffer;
  readonly destination_key_id: string;
  readonly destination_digest: Buffer;
  readonly digest_key_id: string;
}

/** The stored bytes are not what was sealed at this place: damaged, moved, or under another key. */
export class NotAuthentic extends Error {
  override readonly name = 'NotAuthentic';
  constructor(paymentId: string, options?: ErrorOptions) {
    super(`Stored data of payment ${paymentId} does not open. Do not send it; look for moved rows.`, options);
  }
}

const ALGORITHM = 'aes-256-gcm';
/** The layout of `Sealed.ciphertext`; authenticated, so that an old layout cannot be forced. */
const SCHEMA_VERSION = 1;
const NONCE_BYTES = 12;
/** Node accepts tags of 4 bytes unless told otherwise; a short tag can be guessed. */
const TAG_BYTES = 16;
const TAG_AT = 1 + NONCE_BYTES;
const TEXT_AT = TAG_AT + TAG_BYTES;

/**
 * AES-256-GCM for what must not rest in clear. Done here and not in SQL, where keys would reach the
 * server's logs. Nonces are random: one key may seal at most 2^32 texts, so the active key is
 * replaced long before.
 */
export class DestinationCipher {
  private readonly ring: KeyRing;
  readonly digests: DestinationDigests;

  constructor(keys: Pick<KeysFile, 'encryption' | 'digest'>) {
    this.ring = new KeyRing(keys.encryption);
    this.digests = new DestinationDigests(keys.digest);
  }

  /** Seals under the active key, for this place only. Twice: other bytes, both open. */
  encrypt({ plaintext, ...place }: Place & { readonly plaintext: string }): Sealed {
    const { id, key } = this.ring.active;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associatedData(place, id));
    const text = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
    return {
      keyId: id,
      ciphertext: Buffer.concat([Buffer.of(SCHEMA_VERSION), nonce, cipher.getAuthTag(), text]),
    };
  }

  /**
   * Opens what `encrypt` sealed at the same place.
   * @throws UnknownKey when the key file no longer holds the key; NotAuthentic for a short, changed
   * or moved ciphertext and for the id of another key.
   */
  decrypt({ keyId, ciphertext, ...place }: Place & Sealed): string {
    const { key } = this.ring.find(keyId);
    if (ciphertext.length < TEXT_AT || ciphertext[0] !== SCHEMA_VERSION)
      throw new NotAuthentic(place.paymentId);
    const nonce = ciphertext.subarray(1, TAG_AT);
    const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(associatedData(place, keyId));
    decipher.setAuthTag(ciphertext.subarray(TAG_AT, TEXT_AT));
    try {
      return decipher.update(ciphertext.subarray(TEXT_AT), undefined, 'utf8') + decipher.final('utf8');
    } catch (error) {
      throw new NotAuthentic(place.paymentId, { cause: error });
    }
  }

  /**
   * The destination of a stored payment, checked against its digest: money goes nowhere on the word
   * of a ciphertext alone.
   * @throws UnknownKey, NotAuthentic as `decrypt`; NotAuthentic when the digest is of another text.
   */
  openDestination(row: StoredDestination): string {
    const destination = this.decrypt({
      tenant: row.tenant_id,
      paymentId: row.id,
      field: 'destination',
      keyId: row.destination_key_id,
      ciphertext: row.destination,
    });
    const stored = { keyId: row.digest_key_id, digest: row.destination_digest };
    if (!this.digests.matches(stored, destination)) throw new NotAuthentic(row.id);
    return destination;
  }

  /** Seals the canonical parameters of a submission, which hold the destination. */
  sealParameters(of: {
    readonly tenantId: string;
    readonly paymentId: string;
    readonly text: string;
  }): Sealed {
    return this.encrypt({
      tenant: of.tenantId,
      paymentId: of.paymentId,
      field: 'submission_parameters',
      plaintext: of.text,
    });
  }

  /**
   * The parameters of a stored submission. Generations of one payment share a place; their SHA-256
   * tells them apart.
   * @throws UnknownKey, NotAuthentic as `decrypt`; NotAuthentic when the SHA-256 is of another text.
   */
  openParameters(
    of: Sealed & { readonly tenantId: string; readonly paymentId: string; readonly sha256: Buffer },
  ): string {
    const text = this.decrypt({
      tenant: of.tenantId,
      paymentId: of.paymentId,
      field: 'submission_parameters',
      keyId: of.keyId,
      ciphertext: of.ciphertext,
    });
    const sha256 = hash('sha256', text, 'buffer');
    if (of.sha256.length !== sha256.length || !timingSafeEqual(of.sha256, sha256)) {
      throw new NotAuthentic(of.paymentId);
    }
    return text;
  }
}

/** JSON quotes each part, so that no two places share their bytes. */
function associatedData(place: Place, keyId: string): Buffer {
  return Buffer.from(
    JSON.stringify([place.tenant, place.paymentId, place.field, keyId, SCHEMA_VERSION]),
    'utf8',
  );
}
