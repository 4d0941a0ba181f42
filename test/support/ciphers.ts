import { randomBytes } from 'node:crypto';
import type { KeySet, KeysFile } from '../../src/config/key-file.js';
import { createCipher } from '../../src/encryption/create-cipher.js';
import type { SealingKeys } from '../../src/encryption/data-keys.js';
import { DestinationCipher } from '../../src/encryption/destination-cipher.js';
import { DestinationDigests } from '../../src/encryption/destination-digest.js';
import { KeyRing } from '../../src/encryption/key-ring.js';
import type { Sql } from '../../src/persistence/database.js';
import { createLogger } from '../../src/platform/logger.js';

/** A set of one new key. */
export function newKeySet(id: string): KeySet {
  return { active: id, keys: { [id]: randomBytes(32).toString('base64') } };
}

/** Keys without a database: those of the set, for every tenant, as rows of before data keys name them. */
export function keysOfSet(set: KeySet): SealingKeys {
  const ring = new KeyRing(set);
  return {
    current: async () => ring.active,
    find: async (_tenant, id) => ring.find(id),
  };
}

/** As a process of the product seals and opens: data keys from the database. */
export function databaseCipher(keys: Pick<KeysFile, 'encryption' | 'digest'>, sql: Sql): DestinationCipher {
  return createCipher({ keys, sqlOf: () => sql, log: createLogger({ level: 'silent', name: 'test' }) });
}

/** Seals under the keys of the file themselves: needs no database, and the product opens it. */
export function directCipher(keys: Pick<KeysFile, 'encryption' | 'digest'>): DestinationCipher {
  return new DestinationCipher({
    keys: keysOfSet(keys.encryption),
    digests: new DestinationDigests(keys.digest),
  });
}
