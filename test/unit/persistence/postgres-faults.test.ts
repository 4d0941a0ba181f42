import { describe, expect, it } from 'vitest';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../../../src/persistence/database-errors.js';
import { statementFault } from '../../../src/persistence/postgres-faults.js';

/** An error as Postgres sends it. */
const said = (code: string, severity: string, routine?: string): Error =>
  Object.assign(new Error('from the server'), { code, severity, routine });
const ofSocket = (code: string): Error => Object.assign(new Error(code), { code });

describe('an error of Postgres', () => {
  it.each([
    ['55P03', 'lock_not_available', LockTimeout],
    ['57014', 'query_canceled', StorageUnavailable],
    ['40001', 'serialization_failure', StorageUnavailable],
    ['40P01', 'deadlock_detected', StorageUnavailable],
    ['53000', 'insufficient_resources', StorageUnavailable],
    ['53100', 'disk_full', StorageUnavailable],
    ['53200', 'out_of_memory', StorageUnavailable],
    ['53300', 'too_many_connections', StorageUnavailable],
    ['58030', 'io_error', StorageUnavailable],
  ])('%s %s: nothing of the statement stands, and its connection goes on', (code, _name, kind) => {
    const fault = statementFault(said(code, 'ERROR'), 'insert');
    expect(fault.thrown).toBeInstanceOf(kind);
    expect(fault).toMatchObject({ isSpent: false, suspectsAll: false });
  });

  it.each([
    ['25006', 'read_only_sql_transaction', undefined],
    ['26000', 'invalid_sql_statement_name', undefined],
    ['0A000', 'a plan made before a migration', 'RevalidateCachedQuery'],
  ])('%s %s: nothing stands, and no connection made before now is used again', (code, _name, routine) => {
    const fault = statementFault(said(code, 'ERROR', routine), 'insert');
    expect(fault.thrown).toBeInstanceOf(StorageUnavailable);
    expect(fault).toMatchObject({ isSpent: true, suspectsAll: true });
  });

  it.each([
    ['57P01', 'admin_shutdown', 'FATAL'],
    ['57P02', 'crash_shutdown', 'WARNING'],
    ['57P03', 'cannot_connect_now', 'FATAL'],
    ['57P04', 'database_dropped', 'FATAL'],
    ['57P05', 'idle_session_timeout', 'FATAL'],
    ['25P03', 'idle_in_transaction_session_timeout', 'FATAL'],
    ['25P04', 'transaction_timeout', 'FATAL'],
    ['08006', 'connection_failure of a pooler', 'FATAL'],
    ['08P01', 'protocol_violation of a pooler', 'ERROR'],
    ['40003', 'statement_completion_unknown', 'ERROR'],
    ['53100', 'disk_full while the commit was written', 'PANIC'],
    ['53200', 'out_of_memory that ended the session', 'FATAL'],
    ['XX000', 'internal_error that ended the session', 'FATAL'],
  ])('%s %s: it may have run, and its connection is not used again', (code, _name, severity) => {
    const fault = statementFault(said(code, severity), 'insert');
    expect(fault.thrown).toBeInstanceOf(OutcomeUnknown);
    expect(fault).toMatchObject({ isSpent: true, suspectsAll: false });
  });

  it.each([
    ['23505', 'unique_violation'],
    ['22003', 'numeric_value_out_of_range'],
    ['42501', 'insufficient_privilege'],
    ['42P01', 'undefined_table'],
    ['25P02', 'in_failed_sql_transaction'],
    ['54000', 'program_limit_exceeded'],
    ['0A000', 'feature_not_supported'],
    ['XX001', 'data_corrupted'],
  ])('%s %s was said about the input or the schema and passes through', (code) => {
    const error = said(code, 'ERROR');
    expect(statementFault(error, 'insert')).toEqual({ thrown: error, isSpent: false, suspectsAll: false });
  });
});

describe('an error of the connection', () => {
  it.each([
    ofSocket('ECONNRESET'),
    ofSocket('EPIPE'),
    ofSocket('ETIMEDOUT'),
    ofSocket('ERR_SOCKET_CLOSED'),
    ofSocket('ERR_STREAM_DESTROYED'),
    new Error('Connection terminated unexpectedly'),
    new Error('Client has encountered a connection error and is not queryable'),
  ])('%s: the statement may have run', (error) => {
    const fault = statementFault(error, 'insert');
    expect(fault.thrown).toBeInstanceOf(OutcomeUnknown);
    expect((fault.thrown as Error).cause).toBe(error);
    expect(fault).toMatchObject({ isSpent: true, suspectsAll: false });
  });

  it('that is silent for too long makes its neighbours suspect too', () => {
    const fault = statementFault(new Error('Query read timeout'), 'insert');
    expect(fault.thrown).toBeInstanceOf(OutcomeUnknown);
    expect(fault).toMatchObject({ isSpent: true, suspectsAll: true });
  });

  it('is not seen in an error of our own code', () => {
    const error = Object.assign(new TypeError('no such member'), { code: 'ERR_INVALID_ARG_TYPE' });
    expect(statementFault(error, 'insert').thrown).toBe(error);
    expect(statementFault(undefined, 'insert').thrown).toBeUndefined();
  });
});
