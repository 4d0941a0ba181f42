import type { MigrationInterface, QueryRunner } from 'typeorm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { MIGRATIONS } from '../../src/persistence/migrations/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

/** Three APIs and two workers. */
const STARTERS = 5;
/** This release's own, in the order in which they run. */
const RELEASED = MIGRATIONS.map((migration) => new migration().name);

class Pending1900000000000 implements MigrationInterface {
  name = 'Pending1900000000000';
  async up(runner: QueryRunner): Promise<void> {
    // Long enough that all others are waiting meanwhile.
    await runner.query('SELECT pg_sleep(0.3)');
    await runner.query('CREATE TABLE pending (id integer)');
  }
  async down(): Promise<void> {
    throw new Error('forward only');
  }
}
class Broken1900000000001 extends Pending1900000000000 {
  override name = 'Broken1900000000001';
  override async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE half (id integer)');
    await runner.query('SELECT 1 / 0');
  }
}

const databases: TestDatabase[] = [];
afterEach(async () => {
  vi.doUnmock('../../src/persistence/migrations/index.js');
  vi.resetModules();
  for (const db of databases.splice(0)) await db.drop();
});

async function emptyDatabase(): Promise<TestDatabase> {
  const db = await createTestDatabase('empty');
  databases.push(db);
  return db;
}

/** The migrate function of a release that also has these migrations. */
async function migrateOf(more: readonly (new () => MigrationInterface)[] = []) {
  vi.resetModules();
  vi.doUnmock('../../src/persistence/migrations/index.js');
  if (more.length > 0) {
    vi.doMock('../../src/persistence/migrations/index.js', async (original) => {
      const { MIGRATIONS } = await original<{ MIGRATIONS: readonly unknown[] }>();
      return { MIGRATIONS: [...MIGRATIONS, ...more] };
    });
  }
  return (await import('../../src/persistence/migrate.js')).migrate;
}

const recorded = async (db: TestDatabase): Promise<string[]> =>
  (await db.query<{ name: string }>(`SELECT name FROM schema_migration ORDER BY id`)).map((row) => row.name);
const heldLocks = (db: TestDatabase): Promise<unknown[]> =>
  db.query(`SELECT pid FROM pg_locks WHERE locktype = 'advisory'
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`);

describe('migrations that start together (PG-03)', () => {
  it('run once on an empty database, while the others wait and find nothing to do', async () => {
    const db = await emptyDatabase();
    const migrate = await migrateOf();
    const ran = await Promise.all(
      Array.from({ length: STARTERS }, () => migrate(db.urlOf('payments_owner'))),
    );
    expect(ran.filter((names) => names.length > 0)).toEqual([RELEASED]);
    expect(await recorded(db)).toEqual(RELEASED);
    expect(await heldLocks(db)).toEqual([]);
  });

  it('run a pending one once', async () => {
    const db = await emptyDatabase();
    await (
      await migrateOf()
    )(db.urlOf('payments_owner'));
    const migrate = await migrateOf([Pending1900000000000]);
    const ran = await Promise.all(
      Array.from({ length: STARTERS }, () => migrate(db.urlOf('payments_owner'))),
    );
    expect(ran.filter((names) => names.length > 0)).toEqual([['Pending1900000000000']]);
    expect(await recorded(db)).toEqual([...RELEASED, 'Pending1900000000000']);
  });

  it('roll back one that fails, keep those before it, and let go of the lock', async () => {
    const db = await emptyDatabase();
    const migrate = await migrateOf([Broken1900000000001]);
    const ran = await Promise.allSettled(
      Array.from({ length: STARTERS }, () => migrate(db.urlOf('payments_owner'))),
    );
    expect(ran.every((each) => each.status === 'rejected')).toBe(true);
    expect(await recorded(db)).toEqual(RELEASED);
    expect(await db.query(`SELECT to_regclass('half') AS half`)).toEqual([{ half: null }]);
    expect(await heldLocks(db)).toEqual([]);
    expect(await (await migrateOf())(db.urlOf('payments_owner'))).toEqual([]);
  });
});
