import pg from 'pg';
import { ADVISORY_LOCKS } from './advisory-locks.js';
import { createDataSource } from './data-source.js';

/**
 * Brings the schema to this release. Several processes may call at once: TypeORM has no lock of
 * its own, so a session advisory lock on a connection of its own lets one run and the others wait.
 * @param url a log-in that is `payments_owner` or a member of it, so that all it makes belongs to that
 * role; the first time one that may make roles.
 * @returns the names of the migrations that ran now, oldest first; empty when there was nothing.
 * @throws the error of Postgres when a migration fails; that migration is rolled back whole.
 */
export async function migrate(url: string): Promise<readonly string[]> {
  const source = createDataSource(url, await ownerRoleOf(url));
  await source.initialize();
  const runner = source.createQueryRunner();
  try {
    await runner.query('SET statement_timeout = 0');
    await runner.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.migration]);
    try {
      const done = await source.runMigrations({ transaction: 'each' });
      return done.map((m) => m.name);
    } finally {
      await runner.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.migration]);
    }
  } finally {
    await runner.release();
    await source.destroy();
  }
}

/** Members of the owner's role act as it: what a log-in of its own made would not be the owner's. */
async function ownerRoleOf(url: string): Promise<'payments_owner' | null> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query(
      `SELECT 1 FROM pg_roles r WHERE r.rolname = 'payments_owner' AND pg_has_role(current_user, r.oid, 'SET')
         AND has_schema_privilege(r.oid, 'public', 'CREATE')`,
    );
    return rows.length > 0 ? 'payments_owner' : null;
  } finally {
    await client.end();
  }
}
