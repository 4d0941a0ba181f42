import type { Config } from '../config/config.js';
import { KeyFile, type KeysFile } from '../config/key-file.js';
import type { Log } from '../platform/logger.js';

/**
 * The keys of a process that lives longer than a key: it follows its key file without a restart, and the
 * log says so. Nothing needs to be stopped: the timer keeps no process alive.
 * @throws Error as `readKeysFile` when the file cannot be used at the start.
 */
export function followKeyFile({ keysFile, mode }: Config, log: Log): KeysFile {
  const file = new KeyFile(keysFile, mode);
  file.watch({
    changed: () => log.warn({}, 'key_file_changed'),
    refused: (error) => log.error({ err: error }, 'key_file_refused'),
  });
  return file.keys;
}
