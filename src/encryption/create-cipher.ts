import type { KeysFile } from '../config/key-file.js';
import type { Sql } from '../persistence/database.js';
import type { Log } from '../platform/logger.js';
import { DataKeys } from './data-keys.js';
import { DestinationCipher } from './destination-cipher.js';
import { DestinationDigests } from './destination-digest.js';
import { KeyFileEncryption } from './key-encryption.js';
import { KeyRing } from './key-ring.js';

/**
 * The cipher of a process, with its keys in memory: one per process, so that each key is read once.
 * @param sqlOf the way to a tenant's data keys; see `DataKeysParts`.
 */
export function createCipher(parts: {
  readonly keys: Pick<KeysFile, 'encryption' | 'digest'>;
  readonly sqlOf: (tenant: string) => Sql;
  readonly log: Log;
}): DestinationCipher {
  const { keys, sqlOf, log } = parts;
  const ring = new KeyRing(keys.encryption);
  return new DestinationCipher({
    keys: new DataKeys({ kek: new KeyFileEncryption(ring), direct: ring, sqlOf }),
    digests: new DestinationDigests(keys.digest),
    onUnreadable: (paymentId, code) => log.error({ payment_id: paymentId, code }, 'decrypt_failed'),
  });
}
