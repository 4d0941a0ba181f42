import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { createDataSource } from '../../src/persistence/data-source.js';
import { ENTITIES } from '../../src/persistence/entities/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let source: DataSource;
beforeAll(async () => {
  db = await createTestDatabase();
  source = await createDataSource(db.url).initialize();
});
afterAll(async () => {
  await source.destroy();
  await db.drop();
});

/** What TypeORM would run to make the schema look like the entities. */
async function differences(): Promise<readonly string[]> {
  const { upQueries } = await source.driver.createSchemaBuilder().log();
  return upQueries.map((query) => query.query);
}

/** Everything the catalogue knows of a kind, as `table: definition`. */
async function catalogue(text: string): Promise<readonly string[]> {
  const rows = await db.query<{ line: string }>(text);
  return rows.map((row) => row.line).sort();
}

const INDEXES = `SELECT tablename || ': ' || indexdef AS line
  FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'schema_migration'`;
const CHECKS = `SELECT conrelid::regclass || ': ' || conname || ' ' || pg_get_constraintdef(oid) AS line
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'u', 'p')
   AND conrelid::regclass::text <> 'schema_migration'`;

describe('the entities', () => {
  it('describe every table of the migrations, and TypeORM finds nothing to change', async () => {
    const tables = await db.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migration'`,
    );
    expect(source.entityMetadatas.map((m) => m.tableName).sort()).toEqual(tables.map((t) => t.name).sort());
    expect(ENTITIES).toHaveLength(tables.length);
    expect(await differences()).toEqual([]);
  });

  it('build the same indexes, checks and foreign keys on an empty database', async () => {
    const empty = await createTestDatabase('empty');
    const built = await createDataSource(empty.url).initialize();
    try {
      await built.synchronize();
      for (const text of [INDEXES, CHECKS]) {
        const rows = await empty.query<{ line: string }>(text);
        expect(rows.map((row) => row.line).sort()).toEqual(await catalogue(text));
      }
    } finally {
      await built.destroy();
      await empty.drop();
    }
  });

  it('would be noticed when a column, an index or a check is missing', async () => {
    await db.query('ALTER TABLE lane DROP COLUMN pause_reason');
    await db.query('DROP INDEX outbox_by_age');
    await db.query('ALTER TABLE payment DROP CONSTRAINT payment_amount_positive');
    const text = (await differences()).join('\n');
    expect(text).toContain('pause_reason');
    expect(text).toContain('outbox_by_age');
    expect(text).toContain('payment_amount_positive');
  });

  it('keep every time as timestamptz (TM-04)', async () => {
    const rows = await db.query(
      `SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name <> 'schema_migration'
          AND (data_type LIKE 'timestamp without%' OR data_type LIKE 'time %' OR data_type = 'date')`,
    );
    expect(rows).toEqual([]);
  });
});
