import type { KeySet } from '../config/key-file.js';
import { associatedData, open, seal } from './authenticated-encryption.js';
import { KeyRing } from './key-ring.js';
import { NotAuthentic } from './unreadable.js';

/** Whose data key it is; part of what authenticates a wrapped key, so that none stands for another. */
export interface DataKeyPlace {
  readonly id: string;
  readonly tenant: string;
  /** `YYYY-MM`, UTC. */
  readonly month: string;
}

export interface WrappedKey {
  /** The key-encryption key that opens it. */
  readonly kekId: string;
  readonly wrapped: Buffer;
}

/**
 * Wraps data keys under a key that the database never sees. Asynchronous, because a key management
 * service answers over the network; the implementation below keeps its keys in the key file.
 */
export interface KeyEncryption {
  /** The id of the key that wraps now; others only unwrap. */
  readonly activeId: string;
  /** Looks at once whether another key is active by now: the database refused this one. */
  refresh(): Promise<void>;
  /** Twice: other bytes, both open. */
  wrap(place: DataKeyPlace, key: Buffer): Promise<WrappedKey>;
  /**
   * @returns the 32 bytes of the data key.
   * @throws UnknownKey when the key-encryption key is gone; NotAuthentic for bytes that were changed or
   * moved to another tenant, month or id.
   */
  unwrap(place: DataKeyPlace, of: WrappedKey): Promise<Buffer>;
}

/** Key-encryption keys of the key file's `encryption` set; follows a file that is read again. */
export class KeyFileEncryption implements KeyEncryption {
  constructor(private readonly ring: KeyRing) {}

  static of(set: KeySet): KeyFileEncryption {
    return new KeyFileEncryption(new KeyRing(set));
  }

  get activeId(): string {
    return this.ring.active.id;
  }

  async refresh(): Promise<void> {
    this.ring.refresh();
  }

  async wrap(place: DataKeyPlace, key: Buffer): Promise<WrappedKey> {
    const kek = this.ring.active;
    return { kekId: kek.id, wrapped: seal(kek.key, placeOf(place, kek.id), key) };
  }

  async unwrap(place: DataKeyPlace, { kekId, wrapped }: WrappedKey): Promise<Buffer> {
    const { key } = this.ring.find(kekId);
    try {
      return open(key, placeOf(place, kekId), wrapped);
    } catch (error) {
      throw new NotAuthentic(`(none; data key ${place.id})`, { cause: error });
    }
  }
}

function placeOf({ id, tenant, month }: DataKeyPlace, kekId: string): Buffer {
  return associatedData('data_key', tenant, month, id, kekId);
}
