import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../../src/persistence/database-errors.js';
import { Database, type Sql } from '../../src/persistence/database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Latch } from '../support/tapped-database.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';

/** What a real server's faults leave behind: in the caller's hands, and in the pool. */

let db: TestDatabase;
let proxy: TcpProxy;
let database: Database;
beforeAll(async () => {
  db = await createTestDatabase('empty');
  proxy = await startTcpProxy(db.urlOf('payments_worker'));
  await db.query('CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL)');
  await db.query('GRANT ALL ON counter TO payments_worker');
});
beforeEach(async () => {
  await db.query('TRUNCATE counter');
  await db.query('INSERT INTO counter VALUES (1, 0), (2, 0)');
});
afterEach(async () => {
  proxy.mode = 'open';
  vi.restoreAllMocks();
  await database.close();
});
afterAll(async () => {
  await proxy.close();
  await db.drop();
});

const ADD = { name: 'add', text: 'UPDATE counter SET n = n + 1 WHERE id = $1' };
const READ = { name: 'read', text: 'SELECT * FROM counter ORDER BY id' };
const PID = { name: 'pid', text: 'SELECT pg_backend_pid() AS pid' };

/** @param limitMs the driver's limit for an answer; the pool's own when absent. */
function connect(poolSize: number, limitMs?: number, url = db.urlOf('payments_worker')): Database {
  const limit = limitMs === undefined ? {} : { queryMs: limitMs };
  return new Database({ url, poolSize, applicationName: 'faults', ...limit });
}
const pidOf = async (sql: Sql): Promise<number> =>
  (await sql.query<{ pid: number }>(PID)).rows[0]?.pid ?? NaN;
const counts = async (): Promise<readonly number[]> =>
  (await db.query<{ n: number }>('SELECT n FROM counter ORDER BY id')).map((row) => row.n);
/** As many connections as the pool may have, all idle afterwards. */
async function fill(poolSize: number): Promise<readonly number[]> {
  const all = new Latch();
  const pids: number[] = [];
  const users = Array.from({ length: poolSize }, () =>
    database.transaction(async (tx) => {
      pids.push(await pidOf(tx));
      if (pids.length === poolSize) all.open();
      await all.wait();
    }),
  );
  await Promise.all(users);
  return pids;
}

describe('a fault that Postgres tells', () => {
  it('deadlock: one of two was undone and may call again, the other stands, both connections go on', async () => {
    database = connect(2);
    const pids = await fill(2);
    const firsts = [new Latch(), new Latch()];
    const lock = (mine: number, other: number) =>
      database.transaction(async (tx) => {
        await tx.query(ADD, [mine]);
        firsts[mine - 1]?.open();
        await firsts[other - 1]?.wait();
        await tx.query(ADD, [other]);
      });
    const ends = await Promise.allSettled([lock(1, 2), lock(2, 1)]);
    const lost = ends.filter((end) => end.status === 'rejected');
    expect(lost.map((end) => end.reason as unknown)).toEqual([expect.any(StorageUnavailable)]);
    expect(await counts()).toEqual([1, 1]);
    expect((await fill(2)).toSorted()).toEqual(pids.toSorted());
  });

  it('serialization failure: undone, and the connection goes on', async () => {
    database = connect(1);
    const pid = await pidOf(database);
    const lost = database.transaction(async (tx) => {
      await tx.query({ name: 'level', text: 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ' });
      await tx.query(READ);
      await db.query('UPDATE counter SET n = 7 WHERE id = 1');
      await tx.query(ADD, [1]);
    });
    await expect(lost).rejects.toBeInstanceOf(StorageUnavailable);
    expect(await counts()).toEqual([7, 0]);
    expect(await pidOf(database)).toBe(pid);
  });

  it('a server that only reads, as after a failover: every connection is replaced, the next write works', async () => {
    const name = new URL(db.url).pathname.slice(1);
    await db.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    database = connect(2);
    const before = await fill(2);
    await db.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
    await expect(database.query(ADD, [1])).rejects.toBeInstanceOf(StorageUnavailable);
    await database.query(ADD, [1]);
    await database.query(ADD, [1]);
    expect(await counts()).toEqual([2, 0]);
    for (const pid of await fill(2)) expect(before).not.toContain(pid);
  });

  it('a migration under prepared statements: they were not run, and the next call is well', async () => {
    database = connect(2);
    await fill(2);
    await Promise.all([database.query(READ), database.query(READ)]);
    await db.query('ALTER TABLE counter ADD COLUMN note text');
    try {
      await expect(database.query(READ)).rejects.toBeInstanceOf(StorageUnavailable);
      for (let i = 0; i < 2; i++) expect((await database.query(READ)).rows[0]).toHaveProperty('note');
    } finally {
      await db.query('ALTER TABLE counter DROP COLUMN note');
    }
  });

  it('no slot left on the server: unavailable, and well as soon as there is one', async () => {
    const name = new URL(db.url).pathname.slice(1);
    const role = `${name}_role`;
    await db.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x' CONNECTION LIMIT 1`);
    const url = new URL(db.url);
    url.username = role;
    url.password = 'x';
    const other = new pg.Client({ connectionString: url.href });
    await other.connect();
    database = connect(2, undefined, url.href);
    try {
      await expect(pidOf(database)).rejects.toBeInstanceOf(StorageUnavailable);
      await other.end();
      await expect.poll(() => pidOf(database).catch(() => 0)).toBeGreaterThan(0);
    } finally {
      await database.close();
      await db.query(`DROP ROLE ${role}`);
    }
  });

  it('a transaction that swallowed the error of a statement is never taken for a commit', async () => {
    database = connect(1);
    const swallowing = database.transaction(async (tx) => {
      await tx.query(ADD, [1]);
      await tx.query({ name: 'twin', text: 'INSERT INTO counter VALUES (1, 0)' }).catch(() => undefined);
    });
    await expect(swallowing).rejects.toThrow('COMMIT undid all of it');
    expect(await counts()).toEqual([0, 0]);
    await database.query(ADD, [1]);
    expect(await counts()).toEqual([1, 0]);
  });
});

describe('a half-open connection', () => {
  it('idle in the pool: one caller waits for its limit, every later one gets a new connection', async () => {
    database = connect(3, 300, proxy.url);
    const before = await fill(3);
    proxy.mode = 'silent';
    await expect(pidOf(database)).rejects.toBeInstanceOf(OutcomeUnknown);
    proxy.mode = 'open';
    // At the first go: its two neighbours are as dead, and nobody runs into them.
    for (const pid of await fill(3)) expect(before).not.toContain(pid);
    expect(database.connections()).toEqual({ total: 3, idle: 3, waiting: 0 });
  });

  it('in a transaction: unknown, nothing stands, and no ROLLBACK waits on it for the limit again', async () => {
    database = connect(1, 300, proxy.url);
    const sent = vi.spyOn(pg.Client.prototype, 'query');
    const lost = database.transaction(async (tx) => {
      await tx.query(ADD, [1]);
      proxy.mode = 'silent';
      await tx.query(ADD, [2]);
    });
    await expect(lost).rejects.toBeInstanceOf(OutcomeUnknown);
    const names = sent.mock.calls.map(([statement]) => (statement as unknown as { name: string }).name);
    expect(names).toEqual(['begin', 'add', 'add']);
    // Its lock goes with its session, which the server ends as idle in a transaction.
    const other = db.connect('waits-for-it');
    await expect(other.query(ADD, [1])).rejects.toBeInstanceOf(LockTimeout);
    await other.query(ADD, [1]);
    expect(await counts()).toEqual([1, 0]);
  });

  it('that cannot even be made is unavailable within the limit for connecting', async () => {
    database = connect(1, undefined, proxy.url);
    proxy.mode = 'silent';
    await expect(pidOf(database)).rejects.toBeInstanceOf(StorageUnavailable);
    proxy.mode = 'open';
    expect(await pidOf(database)).toBeGreaterThan(0);
  });
});

describe('a pool of two under twenty callers', () => {
  it('that each ask for a second connection inside a transaction starves, but nobody hangs (PG-02)', async () => {
    database = connect(2);
    const nested = () => database.transaction(() => pidOf(database));
    const ends = await Promise.allSettled(Array.from({ length: 20 }, nested));
    // Not one may hang; whoever got nothing was told so.
    for (const end of ends) {
      if (end.status === 'rejected') expect(end.reason).toBeInstanceOf(StorageUnavailable);
    }
    expect(ends.some((end) => end.status === 'rejected')).toBe(true);
    expect(database.connections()).toMatchObject({ waiting: 0 });
    expect(await pidOf(database)).toBeGreaterThan(0);
  });
});
