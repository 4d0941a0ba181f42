import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { Database } from '../../src/persistence/database.js';
import type { DatabaseRole } from '../../src/persistence/roles.js';
import { urlAs } from './postgres.setup.js';

const INT8 = 20;
const TIMESTAMPTZ = 1184;
/** As `Database` reads them: bigint as BigInt, a time as Postgres writes it. */
const types = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') => {
    if (oid === INT8) return (text: string) => BigInt(text);
    if (oid === TIMESTAMPTZ) return (text: string) => text;
    return pg.types.getTypeParser(oid, format as 'text');
  }) as typeof pg.types.getTypeParser,
};

export interface TestDatabase {
  /** Connection URL of this database; superuser. */
  readonly url: string;
  /** The product's own way to it, with a pool of its own, as the worker: it serves every tenant. */
  readonly database: Database;
  /** Any SQL as superuser, beside the product's pool. Errors are those of the driver. */
  query<R = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** Another pool of the worker on the same database; closed by `drop`. */
  connect(applicationName: string, poolSize?: number): Database;
  /** A pool of the product under a role; closed by `drop`. */
  as(role: DatabaseRole, applicationName?: string, poolSize?: number): Database;
  /** Connection URL of this database under a role. */
  urlOf(role: DatabaseRole): string;
  /**
   * Closes all pools and drops the database.
   * @throws Error naming connections that are checked out or that nobody closed: a leak.
   */
  drop(): Promise<void>;
}

const homes = new WeakMap<object, TestDatabase>();

/** The test database that made this pool; undefined for others. */
export function homeOf(sql: object): TestDatabase | undefined {
  return homes.get(sql);
}

const workers = new WeakSet<object>();

/** True for `database` and what `connect` made: they work as `payments_worker`. */
export function isWorkers(sql: object): boolean {
  return workers.has(sql);
}

async function asAdmin<T>(serverUrl: string, work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: `${serverUrl}postgres`, types });
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}

/** Sessions that are still in the database although every pool was closed. */
async function sessionsIn(admin: pg.Client, name: string): Promise<readonly string[]> {
  const { rows } = await admin.query<{ session: string }>(
    `SELECT application_name || ': ' || left(query, 80) AS session FROM pg_stat_activity WHERE datname = $1`,
    [name],
  );
  return rows.map((row) => row.session);
}

/** A closed connection leaves pg_stat_activity when its server process has ended. */
const SESSION_END_POLLS = 100;
const SESSION_END_POLL_MS = 20;

async function leakedSessions(admin: pg.Client, name: string): Promise<readonly string[]> {
  let sessions = await sessionsIn(admin, name);
  for (let poll = 0; sessions.length > 0 && poll < SESSION_END_POLLS; poll++) {
    await new Promise((resolve) => setTimeout(resolve, SESSION_END_POLL_MS));
    sessions = await sessionsIn(admin, name);
  }
  return sessions;
}

/** How a test file gets its database: `template` is migrated, `empty` has nothing in it. */
export type DatabaseStart = 'template' | 'empty';

/**
 * Creates a database for one test file, cloned from the migrated template of the run.
 * @param serverUrl another server that has the template (`makeTemplate`).
 */
export async function createTestDatabase(
  start: DatabaseStart = 'template',
  serverUrl: string = inject('postgresUrl'),
): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const template = start === 'template' ? 'payments_template' : 'template0';
  await asAdmin(serverUrl, (admin) =>
    admin.query(`CREATE DATABASE ${name} TEMPLATE ${template} OWNER payments_owner`),
  );
  const url = `${serverUrl}${name}`;
  const admin = new pg.Pool({ connectionString: url, max: 4, application_name: 'test-query', types });
  admin.on('error', () => undefined);
  const pools: { name: string; database: Database }[] = [];
  let own: Database | null = null;
  const as = (role: DatabaseRole, applicationName: string = role, poolSize = 10): Database => {
    const database = new Database({ url: urlAs(url, role), poolSize, applicationName });
    pools.push({ name: applicationName, database });
    homes.set(database, home);
    return database;
  };
  const connect = (applicationName: string, poolSize?: number): Database => {
    const database = as('payments_worker', applicationName, poolSize);
    workers.add(database);
    return database;
  };
  const home: TestDatabase = {
    url,
    get database() {
      return (own ??= connect('test'));
    },
    connect,
    as,
    urlOf: (role) => urlAs(url, role),
    query: async <R>(text: string, values: readonly unknown[] = []) =>
      (await admin.query(text, [...values])).rows as R[],
    drop: async () => {
      const busy = pools.filter(({ database }) => {
        const { total, idle, waiting } = database.connections();
        return total > idle || waiting > 0;
      });
      // A pool with a client checked out never finishes closing: report it and cut it off below.
      for (const pool of pools) if (!busy.includes(pool)) await pool.database.close();
      await admin.end();
      const leaked = await asAdmin(serverUrl, async (session) => {
        const sessions = busy.length > 0 ? [] : await leakedSessions(session, name);
        await session.query(`DROP DATABASE ${name} WITH (FORCE)`);
        return sessions;
      });
      if (busy.length > 0)
        throw new Error(`clients of ${busy.map((p) => p.name).join(', ')} were not released`);
      if (leaked.length > 0) throw new Error(`connections were not closed: ${leaked.join('; ')}`);
    },
  };
  return home;
}
