import { LockTimeout, OutcomeUnknown, StorageUnavailable } from './database-errors.js';

/** What an error of one statement means for its caller and for the connection it came over. */
export interface StatementFault {
  /** What the caller gets: one of the three faults, or Postgres's own error when it judged the input. */
  readonly thrown: unknown;
  /** The connection may give a late answer, is gone, or leads to a server that cannot help: never use it again. */
  readonly isSpent: boolean;
  /** Its neighbours of the pool went the same way: each is replaced before its next use. */
  readonly suspectsAll: boolean;
}

/**
 * undone: Postgres said that nothing of the statement stands; call again. spent: the same, and this
 * connection would say so for ever. locked: somebody holds the row. unknown: it may have run.
 */
type Meaning = 'undone' | 'spent' | 'locked' | 'unknown';

/** First match counts. A state that is not here was said about the input and passes through as it is. */
const MEANINGS: readonly (readonly [RegExp, Meaning])[] = [
  // lock_not_available: the lock limit.
  [/^55P03$/, 'locked'],
  // query_canceled: the statement's own time limit.
  [/^57014$/, 'undone'],
  // statement_completion_unknown.
  [/^40003$/, 'unknown'],
  // serialization_failure, deadlock_detected: Postgres chose this transaction to be undone.
  [/^40/, 'undone'],
  // disk_full, out_of_memory, too many connections or open files.
  [/^53/, 'undone'],
  // io_error and files that are missing on the server.
  [/^58/, 'undone'],
  // read_only_sql_transaction: a server that was the primary and is a standby now.
  [/^25006$/, 'spent'],
  // invalid_sql_statement_name: something between us and the server forgot our prepared statements.
  [/^26000$/, 'spent'],
  // Connection lost; sessions ended by an administrator, a crash, a dropped database, a time limit.
  [/^(08|57P0|25P03|25P04)/, 'unknown'],
];

/** A table got other columns: what this connection has prepared can never run again. */
const STALE_PLAN = { code: '0A000', routine: 'RevalidateCachedQuery' } as const;

/** Errors of the socket by Node's names, and those of the driver, which have none. */
const SOCKET_CODE = /^(E[A-Z]+|ERR_(SOCKET|STREAM|SSL)_[A-Z_]+)$/;
const DRIVER_MESSAGE = /Connection terminated|connection timeout|timeout expired|Client has encountered/i;
const DRIVER_TIME_OUT = /Query read timeout/i;

interface ErrorFields {
  readonly code?: unknown;
  readonly severity?: unknown;
  readonly routine?: unknown;
}

/** What a state means when it came with this severity. Only a plain ERROR proves that the server went on. */
function meaningOf({ code, severity, routine }: ErrorFields): Meaning | null {
  if (typeof code !== 'string') return null;
  if (code === STALE_PLAN.code && routine === STALE_PLAN.routine) return 'spent';
  const meaning = MEANINGS.find(([states]) => states.test(code))?.[1] ?? null;
  const ended = severity === 'FATAL' || severity === 'PANIC';
  return ended ? 'unknown' : meaning;
}

/**
 * The one table from errors of the driver and of Postgres to the three faults.
 * @returns what to throw and whether the connection can go on; never throws itself.
 */
export function statementFault(error: unknown, statement: string): StatementFault {
  const fields = (error ?? {}) as ErrorFields;
  const options = { cause: error };
  switch (meaningOf(fields)) {
    case 'locked':
      return keep(new LockTimeout(`statement ${statement} waited too long for a lock`, options));
    case 'undone':
      return keep(new StorageUnavailable(`statement ${statement} was undone`, options));
    case 'spent': {
      const thrown = new StorageUnavailable(`statement ${statement} cannot run on this connection`, options);
      return { thrown, isSpent: true, suspectsAll: true };
    }
    case 'unknown':
      return spend(new OutcomeUnknown(`the answer to statement ${statement} was lost`, options), false);
    case null:
  }
  const message = error instanceof Error ? error.message : '';
  if (DRIVER_TIME_OUT.test(message)) {
    return spend(new OutcomeUnknown(`the answer to statement ${statement} did not come`, options), true);
  }
  if (SOCKET_CODE.test(String(fields.code)) || DRIVER_MESSAGE.test(message)) {
    return spend(new OutcomeUnknown(`the answer to statement ${statement} was lost`, options), false);
  }
  return keep(error);
}

function keep(thrown: unknown): StatementFault {
  return { thrown, isSpent: false, suspectsAll: false };
}

function spend(thrown: Error, suspectsAll: boolean): StatementFault {
  return { thrown, isSpent: true, suspectsAll };
}
