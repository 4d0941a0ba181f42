import { MIGRATIONS } from './migrations/index.js';
import type { Sql, Statement } from './database.js';

/**
 * ok: the primary, with the schema of this release. standby: a server that only reads, whose rows may
 * be old. schema_older: migrations of this release have not run. schema_newer: some of a later one
 * have; they are written to be safe beside this release.
 */
export type DatabaseStanding = 'ok' | 'standby' | 'schema_older' | 'schema_newer';

const NAMES = MIGRATIONS.map((migration) => migration.name);

const STANDING: Statement = {
  name: 'database-standing',
  text: `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS only_reads,
         count(*) FILTER (WHERE name = ANY ($1::text[]))::integer AS ours,
         count(*) FILTER (WHERE name <> ALL ($1::text[]))::integer AS others
    FROM schema_migration`,
};
/** undefined_table: the database is empty. */
const NO_TABLE = '42P01';

/**
 * Whether the database that answers is the one this process can work with.
 * @throws StorageUnavailable, OutcomeUnknown when nobody answers. Twice changes nothing.
 */
export async function databaseStanding(sql: Sql): Promise<DatabaseStanding> {
  try {
    const { rows } = await sql.query<{ only_reads: boolean; ours: number; others: number }>(STANDING, [
      NAMES,
    ]);
    const [row] = rows;
    if (row?.only_reads !== false) return 'standby';
    if (row.ours < NAMES.length) return 'schema_older';
    return row.others > 0 ? 'schema_newer' : 'ok';
  } catch (error) {
    if ((error as { code?: unknown }).code === NO_TABLE) return 'schema_older';
    throw error;
  }
}
