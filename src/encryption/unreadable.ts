/** Why stored bytes do not open, as a code for logs and for the payment's history. */
export type UnreadableCode = 'destination_unreadable' | 'destination_key_missing' | 'destination_key_deleted';

/** The stored bytes are not what was sealed at this place: damaged, moved, or under another key. */
export class NotAuthentic extends Error {
  override readonly name = 'NotAuthentic';
  constructor(paymentId: string, options?: ErrorOptions) {
    super(`Stored data of payment ${paymentId} does not open. Do not send it; look for moved rows.`, options);
  }
}

/** No key of this id: it was removed while rows still need it, or the row is not ours. */
export class UnknownKey extends Error {
  override readonly name = 'UnknownKey';
  constructor() {
    super('The key file holds no key of the id that the row names. Put the old key back.');
  }
}

/** The tenant has no data key of this id: it was deleted on purpose, and nothing brings it back. */
export class DataKeyDeleted extends Error {
  override readonly name = 'DataKeyDeleted';
  constructor() {
    super("The data key that the row names is not among its tenant's. What it sealed cannot be opened.");
  }
}

/**
 * The code of an error of opening; null for every other error, such as storage that is away, where trying
 * again helps and nothing may be concluded about the row.
 */
export function unreadableCode(error: unknown): UnreadableCode | null {
  if (error instanceof NotAuthentic) return 'destination_unreadable';
  if (error instanceof UnknownKey) return 'destination_key_missing';
  if (error instanceof DataKeyDeleted) return 'destination_key_deleted';
  return null;
}
