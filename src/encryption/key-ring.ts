import { createSecretKey, type KeyObject } from 'node:crypto';
import type { KeySet } from '../config/key-file.js';
import { assert } from '../domain/assert.js';
import { UnknownKey } from './unreadable.js';

export interface RingKey {
  readonly id: string;
  readonly key: KeyObject;
}

/**
 * One purpose's keys of the key file: one active for new rows, older ones for the rows that name
 * them. Follows a key file that is read again. The keys live as KeyObjects, which do not show their
 * bytes when printed.
 */
export class KeyRing {
  readonly #set: KeySet;
  #builtFrom: KeySet['keys'] | null = null;
  #keys: ReadonlyMap<string, RingKey> = new Map();

  /** @throws Error when the active key is missing or a key is not 32 bytes; never shows a key. */
  constructor(set: KeySet) {
    this.#set = set;
    this.find(set.active);
  }

  /** The key of new rows. */
  get active(): RingKey {
    return this.find(this.#set.active);
  }

  /**
   * A row may name a key that another process took from the file a moment earlier: before giving up,
   * the file is read again.
   * @throws UnknownKey when there is none of this id.
   */
  find(id: string): RingKey {
    let found = this.#current().get(id);
    if (found === undefined) {
      this.refresh();
      found = this.#current().get(id);
    }
    if (found === undefined) throw new UnknownKey();
    return found;
  }

  /** Reads the file again if it was changed since. */
  refresh(): void {
    this.#set.refresh?.();
  }

  #current(): ReadonlyMap<string, RingKey> {
    const { keys } = this.#set;
    if (keys !== this.#builtFrom) {
      this.#keys = new Map(Object.entries(keys).map(([id, base64]) => [id, ringKey(id, base64)]));
      this.#builtFrom = keys;
    }
    return this.#keys;
  }
}

function ringKey(id: string, base64: string): RingKey {
  const bytes = Buffer.from(base64, 'base64');
  assert(bytes.length === 32, `key ${id} has 32 bytes`);
  return Object.freeze({ id, key: createSecretKey(bytes) });
}
