import 'reflect-metadata';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/persistence/migrate.js';
import { startTestServer } from './embedded-postgres.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection URL of the run's Postgres without a database name, ending in a slash; superuser. */
    postgresUrl: string;
  }
}

/** The migrated database that every test file's own database is cloned from. */
export const TEMPLATE = 'payments_template';

/** One Postgres per run of the tier. Its URL reaches the tests by `inject('postgresUrl')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer();
  try {
    const admin = new pg.Client({ connectionString: `${server.url}postgres` });
    await admin.connect();
    try {
      await admin.query(`CREATE DATABASE ${TEMPLATE}`);
      await migrate(`${server.url}${TEMPLATE}`);
      // A session in the template would make each clone fail.
      await admin.query(`ALTER DATABASE ${TEMPLATE} WITH ALLOW_CONNECTIONS false IS_TEMPLATE true`);
    } finally {
      await admin.end();
    }
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide('postgresUrl', server.url);
  return () => server.stop();
}
