import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findPayment } from '../../src/payments/payment.store.js';
import { startTestServer } from '../support/embedded-postgres.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { databaseTime, insertScheduled, seedLane, seedTenant, testCipher } from '../support/builders.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(async () => {
  await db.drop();
});

describe('the database of a test file', () => {
  it('is cloned from the migrated template and holds no rows', async () => {
    expect(await db.query('SELECT name FROM schema_migration')).not.toHaveLength(0);
    expect(await db.query('SELECT id FROM payment')).toEqual([]);
  });

  it('takes payments through the insert of the product', async () => {
    const tenant = await seedTenant(db.database);
    const lane = await seedLane(db.database);
    const executeAt = await databaseTime(db.database, 60);
    const { id } = await insertScheduled(db.database, { tenant, lane, executeAt });
    const found = await findPayment(db.database, tenant, id);
    expect(found).toMatchObject({
      id,
      state: 'scheduled',
      version: 1,
      execute_at: executeAt,
      amount: 1_999n,
    });
    expect(found && (await testCipher.openDestination(found))).toBe('acct_test');
    expect(await db.query('SELECT kind FROM outbox WHERE payment_id = $1', [id])).toEqual([
      { kind: 'start' },
    ]);
  });

  it('comes from a server that leaves the exit code of the run alone, and no folder behind', async () => {
    const atEnd = () => [process.listeners('beforeExit'), process.listeners('exit')];
    const before = atEnd();
    const folders = (): string[] =>
      readdirSync(tmpdir()).filter((name) => name.startsWith(`payments-test-postgres-${process.pid}-`));
    const server = await startTestServer();
    expect(atEnd()).toEqual(before);
    expect(folders()).toHaveLength(1);
    await server.stop();
    await server.stop();
    expect(folders()).toEqual([]);
  });

  it('reports a connection that nobody closed when it is dropped', async () => {
    const other = await createTestDatabase('empty');
    const left = new (await import('pg')).default.Client({
      connectionString: other.url,
      application_name: 'left-open',
    });
    left.on('error', () => undefined);
    await left.connect();
    await expect(other.drop()).rejects.toThrow(/left-open/);
    await left.end().catch(() => undefined);
  });

  it('reports a client of the pool that is still checked out when it is dropped', async () => {
    const other = await createTestDatabase('empty');
    let enter = () => undefined as void;
    const entered = new Promise<void>((resolve) => (enter = resolve));
    let leave = () => undefined as void;
    const left = new Promise<void>((resolve) => (leave = resolve));
    const open = other.database.transaction(async (tx) => {
      await tx.query({ name: 'one', text: 'SELECT 1' });
      enter();
      await left;
    });
    await entered;
    await expect(other.drop()).rejects.toThrow(/were not released/);
    leave();
    await expect(open).rejects.toThrow();
    await other.database.close();
  });
});
