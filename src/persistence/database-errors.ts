/** Postgres could not be reached: nothing ran. Call again. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';
}

/** A statement or a COMMIT was sent and its answer was lost: it may have run. Read again by id. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
}

/** Somebody else holds the row for longer than the lock limit: nothing ran. Call again. */
export class LockTimeout extends Error {
  override readonly name = 'LockTimeout';
}
