import { createSecretKey, type KeyObject } from 'node:crypto';
import type { KeysFile } from '../config/config.js';
import { assert } from '../domain/assert.js';

export interface RingKey {
  readonly id: string;
  readonly key: KeyObject;
}

/** No key of this id: it was removed while rows still need it, or the row is not ours. */
export class UnknownKey extends Error {
  override readonly name = 'UnknownKey';
  constructor() {
    super('The key file holds no key of the id that the row names. Put the old key back.');
  }
}

/**
 * One purpose's keys of the key file: one active for new rows, older ones for the rows that name
 * them. The keys live as KeyObjects, which do not show their bytes when printed.
 */
export class KeyRing {
  private readonly keys: ReadonlyMap<string, RingKey>;
  readonly active: RingKey;

  /** @throws Error when the active key is missing or a key is not 32 bytes; never shows a key. */
  constructor(set: KeysFile['encryption']) {
    this.keys = new Map(
      Object.entries(set.keys).map(([id, base64]) => {
        const bytes = Buffer.from(base64, 'base64');
        assert(bytes.length === 32, `key ${id} has 32 bytes`);
        return [id, Object.freeze({ id, key: createSecretKey(bytes) })];
      }),
    );
    this.active = this.find(set.active);
  }

  /** @throws UnknownKey when there is none of this id. */
  find(id: string): RingKey {
    const found = this.keys.get(id);
    if (found === undefined) throw new UnknownKey();
    return found;
  }
}
