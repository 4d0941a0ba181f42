import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../../src/persistence/database-errors.js';
import { Database } from '../../src/persistence/database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let database: Database;
beforeAll(async () => {
  db = await createTestDatabase();
  database = new Database({
    url: db.urlOf('payments_worker'),
    poolSize: 2,
    applicationName: 'database-test',
  });
  await db.query('CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL)');
  await db.query('INSERT INTO counter VALUES (1, 0)');
  await db.query('GRANT ALL ON counter TO payments_worker');
});
afterAll(async () => {
  await database.close();
  await db.drop();
});

const ONE = { name: 'one', text: 'SELECT 1 AS one' };
const ADD = { name: 'add', text: 'UPDATE counter SET n = n + 1 WHERE id = 1' };
const PID = { name: 'pid', text: 'SELECT pg_backend_pid() AS pid' };

async function terminate(pid: number): Promise<void> {
  await db.query('SELECT pg_terminate_backend($1)', [pid]);
}

describe('a connection that the server ends', () => {
  it('idle: is replaced, and the next statement works (PG-01)', async () => {
    const { rows } = await database.query<{ pid: number }>(PID);
    await terminate(rows[0]?.pid ?? 0);
    await expect
      .poll(async () => (await database.query(ONE).catch(() => ({ rowCount: 0 }))).rowCount)
      .toBe(1);
  });

  it('in a transaction: the outcome is unknown, nothing of it stands, and the next one works (PG-01)', async () => {
    const lost = database.transaction(async (tx) => {
      await tx.query(ADD);
      const { rows } = await tx.query<{ pid: number }>(PID);
      await terminate(rows[0]?.pid ?? 0);
      await tx.query(ADD);
    });
    await expect(lost).rejects.toBeInstanceOf(OutcomeUnknown);
    const [row] = await db.query<{ n: number }>('SELECT n FROM counter');
    expect(row?.n).toBe(0);
    expect((await database.query(ONE)).rowCount).toBe(1);
  });
});

describe('limits', () => {
  it('a row that somebody holds for too long is a LockTimeout', async () => {
    const other = new Database({
      url: db.urlOf('payments_worker'),
      poolSize: 1,
      applicationName: 'database-test-holder',
    });
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let locked: () => void = () => undefined;
    const isLocked = new Promise<void>((resolve) => (locked = resolve));
    const holder = other.transaction(async (tx) => {
      await tx.query(ADD);
      locked();
      await held;
      throw new Error('undo');
    });
    await isLocked;
    await expect(database.query(ADD)).rejects.toBeInstanceOf(LockTimeout);
    release();
    await expect(holder).rejects.toThrow('undo');
    await other.close();
  });

  it('a statement past its time limit was undone: StorageUnavailable, nothing is unknown', async () => {
    const slow = { name: 'slow', text: `SELECT set_config('statement_timeout', '50', true), pg_sleep(0)` };
    const sleep = { name: 'sleep', text: 'SELECT pg_sleep(5)' };
    const stopped = database.transaction(async (tx) => {
      await tx.query(slow);
      await tx.query(sleep);
    });
    await expect(stopped).rejects.toBeInstanceOf(StorageUnavailable);
  });

  it('a caller that gets no connection in time is told so, and the pool recovers (PG-02)', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const hold = (): Promise<void> => database.transaction(async () => held);
    const holders = [hold(), hold()];
    await expect(database.query(ONE)).rejects.toBeInstanceOf(StorageUnavailable);
    release();
    await Promise.all(holders);
    expect((await database.query(ONE)).rowCount).toBe(1);
  });

  it('a process frozen inside a transaction is ended by the server, and its COMMIT fails', async () => {
    const idle = {
      name: 'idle',
      text: `SELECT set_config('idle_in_transaction_session_timeout', '50', true)`,
    };
    const zombie = database.transaction(async (tx) => {
      await tx.query(ADD);
      await tx.query(idle);
      const { rows } = await tx.query<{ pid: number }>(PID);
      await expect
        .poll(
          async () =>
            (await db.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [rows[0]?.pid])).length,
        )
        .toBe(0);
    });
    await expect(zombie).rejects.toBeInstanceOf(OutcomeUnknown);
    const [row] = await db.query<{ n: number }>('SELECT n FROM counter');
    expect(row?.n).toBe(0);
  });
});
