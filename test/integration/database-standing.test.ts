import { chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startHealthServer } from '../../src/http/health-server.js';
import { READINESS_CHECK_MS, readiness } from '../../src/http/readiness.js';
import { databaseStanding } from '../../src/persistence/database-standing.js';
import { Database } from '../../src/persistence/database.js';
import { MIGRATIONS } from '../../src/persistence/migrations/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startOwnPostgres } from '../support/own-postgres.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';

let db: TestDatabase;
let proxy: TcpProxy;
let probe: Database;
beforeAll(async () => {
  db = await createTestDatabase();
  proxy = await startTcpProxy(db.urlOf('payments_api'));
  probe = new Database({
    url: proxy.url,
    poolSize: 1,
    applicationName: 'ready',
    queryMs: READINESS_CHECK_MS,
  });
});
afterEach(() => {
  proxy.mode = 'open';
});
afterAll(async () => {
  await probe.close();
  await proxy.close();
  await db.drop();
});

const check = { postgres: { required: true, run: () => databaseStanding(probe) } };

describe('the schema', () => {
  it('of this release is ok, as the API sees it with its own role', async () => {
    expect(await databaseStanding(probe)).toBe('ok');
  });

  it('with a migration of this release missing, whichever it is, is older: not ready', async () => {
    for (const { name } of [MIGRATIONS[0], MIGRATIONS.at(-1)] as { name: string }[]) {
      await db.query(`UPDATE schema_migration SET name = 'away' WHERE name = $1`, [name]);
      try {
        expect(await readiness(check)()).toEqual({ ok: false, checks: { postgres: 'schema_older' } });
      } finally {
        await db.query(`UPDATE schema_migration SET name = $1 WHERE name = 'away'`, [name]);
      }
    }
  });

  it('with a migration of a later release is newer: said, and ready, since that release migrates first', async () => {
    await db.query(`INSERT INTO schema_migration (timestamp, name) VALUES (1, 'OfALaterRelease')`);
    try {
      expect(await readiness(check)()).toEqual({ ok: true, checks: { postgres: 'schema_newer' } });
    } finally {
      await db.query(`DELETE FROM schema_migration WHERE name = 'OfALaterRelease'`);
    }
  });

  it('of an empty database is older', async () => {
    const empty = await createTestDatabase('empty');
    try {
      expect(await databaseStanding(empty.database)).toBe('schema_older');
    } finally {
      await empty.drop();
    }
  });
});

describe('readiness over HTTP', () => {
  it('is 503 while Postgres is cut off or silent, 200 again afterwards, and /livez is 200 throughout', async () => {
    const health = await startHealthServer({
      host: '127.0.0.1',
      port: 0,
      live: () => true,
      ready: readiness(check),
      metrics: () => Promise.resolve(''),
    });
    const at = (path: string) => fetch(`http://127.0.0.1:${health.port}${path}`).then((answer) => answer.status);
    try {
      for (const mode of ['cut', 'silent'] as const) {
        expect(await at('/readyz')).toBe(200);
        proxy.mode = mode;
        expect(await at('/readyz')).toBe(503);
        expect(await at('/livez')).toBe(200);
        proxy.mode = 'open';
        await expect.poll(() => at('/readyz'), { timeout: 10_000 }).toBe(200);
      }
    } finally {
      await health.stop();
    }
  }); // prettier-ignore
});

describe('a standby', () => {
  it('that answers every read is not ready, and its primary is', async () => {
    const own = await startOwnPostgres();
    const admin = async (text: string): Promise<void> => {
      const client = new pg.Client({ connectionString: own.url('postgres') });
      await client.connect();
      await client.query(text);
      await client.end();
    };
    const database = new Database({ url: own.url('postgres'), poolSize: 1, applicationName: 'standby' });
    try {
      await admin('CREATE TABLE schema_migration (name text)');
      for (const { name } of MIGRATIONS) await admin(`INSERT INTO schema_migration VALUES ('${name}')`);
      expect(await databaseStanding(database)).toBe('ok');
      await own.stop();
      const signal = join(own.data, 'standby.signal');
      const { uid, gid } = statSync(own.data);
      writeFileSync(signal, '');
      chownSync(signal, uid, gid);
      await own.start();
      await expect
        .poll(() => databaseStanding(database).catch(() => 'away'), { timeout: 20_000 })
        .toBe('standby');
    } finally {
      await database.close();
      await own.remove();
    }
  });
});
