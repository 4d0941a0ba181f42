import { StorageUnavailable } from '../persistence/database-errors.js';

/**
 * This host's key file lacks what a rotation put in force: its active key is retired, or the tenant's data
 * key is wrapped with a key that the file does not hold. Nothing was sealed or stored. Whoever meets it tries
 * again later, as with a database that is away: no payment is refused or lost because one host is behind.
 */
export class KeyFileBehind extends StorageUnavailable {
  constructor(
    readonly reason: 'retired' | 'missing',
    /** The key-encryption key that is retired, or missing in the file. */
    readonly kekId: string,
    options?: ErrorOptions,
  ) {
    const what =
      reason === 'retired'
        ? `its active key-encryption key ${kekId} is retired: make the new one active`
        : `it lacks the key-encryption key ${kekId}: add it`;
    super(`The key file of this host is behind: ${what}.`, options);
  }
}
