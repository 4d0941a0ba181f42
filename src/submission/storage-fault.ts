import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../persistence/database-errors.js';

/**
 * True when the way to Postgres or a lock is at fault. Anything else was said by Postgres about the
 * statement's own input, which it undid as a whole: one bad row of a batch, for example.
 */
export function isStorageFault(error: unknown): boolean {
  return (
    error instanceof StorageUnavailable || error instanceof OutcomeUnknown || error instanceof LockTimeout
  );
}
