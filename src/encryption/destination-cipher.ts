import { hash, timingSafeEqual } from 'node:crypto';
import { associatedData, open, seal } from './authenticated-encryption.js';
import type { SealingKeys } from './data-keys.js';
import type { DestinationDigests } from './destination-digest.js';
import { NotAuthentic, unreadableCode, type UnreadableCode } from './unreadable.js';

/** What is stored encrypted; part of what authenticates a ciphertext, so none can stand for another. */
export type EncryptedField = 'destination' | 'submission_parameters' | 'foreign_body' | 'webhook_secret';

/** The row and the column that a ciphertext belongs to. */
export interface Place {
  readonly tenant: string;
  readonly paymentId: string;
  readonly field: EncryptedField;
}

export interface Sealed {
  readonly keyId: string;
  /** As `seal` of authenticated-encryption.ts answers it. */
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

export interface CipherParts {
  readonly keys: SealingKeys;
  readonly digests: DestinationDigests;
  /** Something stored did not open: a security event. Must not throw. */
  readonly onUnreadable?: (paymentId: string, code: UnreadableCode) => void;
}

/**
 * AES-256-GCM for what must not rest in clear. Done here and not in SQL, where keys would reach the
 * server's logs. Seals under the data key of the tenant's month; opens with the key that the row names.
 * Waits only for a key that is not in memory yet.
 */
export class DestinationCipher {
  constructor(private readonly parts: CipherParts) {}

  get digests(): DestinationDigests {
    return this.parts.digests;
  }

  /**
   * Reads keys that will be needed, for callers that must not wait for them later, such as inside a
   * transaction. A key that does not open is told where it is used, not here.
   * @throws faults of storage.
   */
  async warm(tenant: string, keyIds: readonly string[] = []): Promise<void> {
    const { keys } = this.parts;
    const loads = [keys.current(tenant), ...keyIds.map((id) => keys.find(tenant, id))];
    for (const result of await Promise.allSettled(loads)) {
      if (result.status === 'rejected' && unreadableCode(result.reason) === null) throw result.reason;
    }
  }

  /**
   * Seals under the tenant's key of this month, for this place only. Twice: other bytes, both open.
   * @throws faults of storage when the key has to be read or made; UnknownKey.
   */
  async encrypt({ plaintext, ...place }: Place & { readonly plaintext: string }): Promise<Sealed> {
    const { keyId, ciphertexts } = await this.encryptAll({ ...place, plaintexts: [plaintext] });
    const [ciphertext] = ciphertexts as readonly [Buffer];
    return { keyId, ciphertext };
  }

  /** As `encrypt`, for several texts of one row that stores one key id. In the order of `plaintexts`. */
  async encryptAll({ plaintexts, ...place }: Place & { readonly plaintexts: readonly string[] }): Promise<{
    readonly keyId: string;
    readonly ciphertexts: readonly Buffer[];
  }> {
    const { id, key } = await this.parts.keys.current(place.tenant);
    const associated = placeOf(place, id);
    return {
      keyId: id,
      ciphertexts: plaintexts.map((text) => seal(key, associated, Buffer.from(text, 'utf8'))),
    };
  }

  /**
   * Opens what `encrypt` sealed at the same place.
   * @throws UnknownKey when the key file no longer holds the key; DataKeyDeleted when the tenant's key is
   * gone; NotAuthentic for a short, changed or moved ciphertext and for the id of another key; faults of
   * storage when the key has to be read.
   */
  decrypt(of: Place & Sealed): Promise<string> {
    return this.told(of.paymentId, () => this.opened(of));
  }

  /**
   * The destination of a stored payment, checked against its digest: money goes nowhere on the word
   * of a ciphertext alone.
   * @throws as `decrypt`; NotAuthentic when the digest is of another text.
   */
  openDestination(row: StoredDestination): Promise<string> {
    return this.told(row.id, async () => {
      const destination = await this.opened({
        tenant: row.tenant_id,
        paymentId: row.id,
        field: 'destination',
        keyId: row.destination_key_id,
        ciphertext: row.destination,
      });
      const stored = { keyId: row.digest_key_id, digest: row.destination_digest };
      if (!this.digests.matches(stored, destination)) throw new NotAuthentic(row.id);
      return destination;
    });
  }

  /** Seals the canonical parameters of a submission, which hold the destination. @throws as `encrypt`. */
  sealParameters(of: {
    readonly tenantId: string;
    readonly paymentId: string;
    readonly text: string;
  }): Promise<Sealed> {
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
   * @throws as `decrypt`; NotAuthentic when the SHA-256 is of another text.
   */
  openParameters(
    of: Sealed & { readonly tenantId: string; readonly paymentId: string; readonly sha256: Buffer },
  ): Promise<string> {
    return this.told(of.paymentId, async () => {
      const text = await this.opened({
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
    });
  }

  private async opened({ keyId, ciphertext, ...place }: Place & Sealed): Promise<string> {
    const { key } = await this.parts.keys.find(place.tenant, keyId);
    try {
      return open(key, placeOf(place, keyId), ciphertext).toString('utf8');
    } catch (error) {
      throw new NotAuthentic(place.paymentId, { cause: error });
    }
  }

  private async told<T>(paymentId: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const code = unreadableCode(error);
      if (code !== null) this.parts.onUnreadable?.(paymentId, code);
      throw error;
    }
  }
}

function placeOf({ tenant, paymentId, field }: Place, keyId: string): Buffer {
  return associatedData(tenant, paymentId, field, keyId);
}
