import type { KeysFile } from '../config/key-file.js';
import type { Sql } from '../persistence/database.js';
import { monotonicMs } from '../platform/clock.js';
import type { Log } from '../platform/logger.js';
import { DataKeys } from './data-keys.js';
import { DestinationCipher } from './destination-cipher.js';
import { DestinationDigests } from './destination-digest.js';
import type { KeyFileBehind } from './key-file-behind.js';
import { KeyFileEncryption } from './key-encryption.js';
import { KeyRing } from './key-ring.js';

/** Under load every request would say the same again (ms). */
const SAME_KEY_MS = 10_000;

/** Says of each key which one it is and what is wrong with it: `retired` or `missing`. */
function tellBehind(log: Log): (fault: KeyFileBehind) => void {
  const last = new Map<string, number>();
  return (fault) => {
    const operation = `key ${fault.reason}`;
    const now = monotonicMs();
    if (now - (last.get(`${operation} ${fault.kekId}`) ?? -Infinity) < SAME_KEY_MS) return;
    last.set(`${operation} ${fault.kekId}`, now);
    log.error({ operation, code: fault.kekId, err: fault }, 'key_file_behind');
  };
}

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
    keys: new DataKeys({
      kek: new KeyFileEncryption(ring),
      direct: ring,
      sqlOf,
      onKeyFileBehind: tellBehind(log),
    }),
    digests: new DestinationDigests(keys.digest),
    onUnreadable: (paymentId, code) => log.error({ payment_id: paymentId, code }, 'decrypt_failed'),
  });
}
