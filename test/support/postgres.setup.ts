import 'reflect-metadata';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/persistence/migrate.js';
import { DATABASE_ROLES, type DatabaseRole } from '../../src/persistence/roles.js';
import { startTestServer } from './embedded-postgres.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection URL of the run's Postgres without a database name, ending in a slash; superuser. */
    postgresUrl: string;
  }
}

/** The migrated database that every test file's own database is cloned from. */
export const TEMPLATE = 'payments_template';

/** The roles' log-ins on the run's server. */
const ROLE_PASSWORD = 'role';

/** The same database as another role. */
export function urlAs(url: string, role: DatabaseRole): string {
  const of = new URL(url);
  of.username = role;
  of.password = ROLE_PASSWORD;
  return of.href;
}

/**
 * Creates a database and brings it to this release, as an operator does it: by the owner, who may make
 * roles and is no superuser. Gives the roles their log-ins (`urlAs`).
 * @param admin a session of the superuser on the same server. @param url of the database to be made.
 */
export async function createMigrated(admin: pg.Client, url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  await admin.query(`CREATE ROLE payments_owner LOGIN CREATEROLE PASSWORD '${ROLE_PASSWORD}'`);
  await admin.query(`CREATE DATABASE ${name} OWNER payments_owner`);
  await migrate(urlAs(url, 'payments_owner'));
  for (const role of DATABASE_ROLES) {
    await admin.query(`ALTER ROLE ${role} LOGIN PASSWORD '${ROLE_PASSWORD}'`);
  }
}

/** Makes the migrated template on a server that has nothing yet. @param serverUrl as `postgresUrl`. */
export async function makeTemplate(serverUrl: string): Promise<void> {
  const admin = new pg.Client({ connectionString: `${serverUrl}postgres` });
  await admin.connect();
  try {
    await createMigrated(admin, `${serverUrl}${TEMPLATE}`);
    // A session in the template would make each clone fail.
    await admin.query(`ALTER DATABASE ${TEMPLATE} WITH ALLOW_CONNECTIONS false IS_TEMPLATE true`);
  } finally {
    await admin.end();
  }
}

/** One Postgres per run of the tier. Its URL reaches the tests by `inject('postgresUrl')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer();
  try {
    await makeTemplate(server.url);
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide('postgresUrl', server.url);
  return () => server.stop();
}
