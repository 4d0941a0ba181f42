import { createDataSource } from './data-source.js';

/** Any number that only this lock uses. */
const MIGRATION_LOCK = 7_314_001;

/**
 * Brings the schema to this release. Several processes may call at once: TypeORM has no lock of
 * its own, so a session advisory lock on a connection of its own lets one run and the others wait.
 * @returns the names of the migrations that ran now, oldest first; empty when there was nothing.
 * @throws the error of Postgres when a migration fails; that migration is rolled back whole.
 */
export async function migrate(url: string): Promise<readonly string[]> {
  const source = createDataSource(url);
  await source.initialize();
  const runner = source.createQueryRunner();
  try {
    await runner.query('SET statement_timeout = 0');
    await runner.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    try {
      const done = await source.runMigrations({ transaction: 'each' });
      return done.map((m) => m.name);
    } finally {
      await runner.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]);
    }
  } finally {
    await runner.release();
    await source.destroy();
  }
}
