import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database, Statement } from '../../src/persistence/database.js';
import { insertScheduled, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

const CALLS = 10_000;
const TENANTS = 5;

const SEEN: Statement = { name: 'hygiene-seen', text: 'SELECT DISTINCT tenant_id FROM payment' };
const BACKEND: Statement = { name: 'hygiene-backend', text: 'SELECT pg_backend_pid() AS pid' };
const SETTING: Statement = {
  name: 'hygiene-setting',
  text: `SELECT nullif(current_setting('payments.tenant', true), '') AS tenant`,
};
const DIVIDE: Statement = { name: 'hygiene-divide', text: 'SELECT 1 / $1::integer AS ratio' };
const BROKEN: Statement = { name: 'hygiene-broken', text: 'SELECT FROM nothing_of_this_name' };
const NOT_A_NUMBER: Statement = { name: 'hygiene-number', text: 'SELECT $1::integer AS number' };

let db: TestDatabase;
let one: Database;
const tenants: string[] = [];
const tenantAt = (i: number): string => tenants[i % TENANTS] ?? '';

beforeAll(async () => {
  db = await createTestDatabase();
  for (let i = 0; i < TENANTS; i++) {
    const tenant = await seedTenant(db.database);
    tenants.push(tenant);
    await insertScheduled(db.database, { tenant, lane: 'simulated/test' });
  }
  one = db.as('payments_api', 'hygiene', 1);
});
afterAll(() => db.drop());

/** What the connection shows when nobody named a tenant, and whether it is still the same one. */
async function rest(): Promise<{
  readonly tenant: string | null;
  readonly rows: number;
  readonly pid: number;
}> {
  const { rows } = await one.query<{ tenant: string | null }>(SETTING);
  const seen = await one.query(SEEN);
  const backend = await one.query<{ pid: number }>(BACKEND);
  return { tenant: rows[0]?.tenant ?? null, rows: seen.rowCount, pid: backend.rows[0]?.pid ?? 0 };
}

describe('one connection and many tenants (AU-01)', () => {
  it(`shows each of ${CALLS} calls its own tenant and nobody else's, and none between them`, async () => {
    const { pid } = await rest();
    let leaks = 0;
    for (let i = 0; i < CALLS; i++) {
      const tenant = tenantAt(i);
      const of = one.ofTenant(tenant);
      const { rows } =
        i % 3 === 0
          ? await of.transaction((tx) => tx.query<{ tenant_id: string }>(SEEN))
          : await of.query<{ tenant_id: string }>(SEEN);
      if (rows.length !== 1 || rows[0]?.tenant_id !== tenant) leaks++;
      if (i % 7 === 0 && (await one.query(SEEN)).rowCount > 0) leaks++;
    }
    expect(leaks).toBe(0);
    expect(await rest()).toEqual({ tenant: null, rows: 0, pid });
  });

  it('leaves no tenant behind after statements that failed, whenever they failed', async () => {
    const { pid } = await rest();
    for (let i = 0; i < 50; i++) {
      const of = one.ofTenant(tenantAt(i));
      await expect(of.query(DIVIDE, [0])).rejects.toThrow(/division by zero/);
      await expect(of.query({ ...BROKEN, name: `hygiene-broken-${i}` })).rejects.toThrow(/does not exist/);
      await expect(of.query(NOT_A_NUMBER, ['none'])).rejects.toThrow(/invalid input syntax/);
      expect(await rest()).toEqual({ tenant: null, rows: 0, pid });
      expect((await of.query(SEEN)).rows).toEqual([{ tenant_id: tenantAt(i) }]);
    }
  });

  it('leaves no tenant behind after transactions that were given up, by the caller or by Postgres', async () => {
    const { pid } = await rest();
    for (let i = 0; i < 50; i++) {
      const of = one.ofTenant(tenantAt(i));
      await expect(of.transaction(() => Promise.reject(new Error('changed my mind')))).rejects.toThrow(
        'changed',
      );
      await expect(of.transaction((tx) => tx.query(DIVIDE, [0]))).rejects.toThrow(/division by zero/);
      await expect(of.transaction((tx) => tx.query(DIVIDE, [0]).catch(() => undefined))).rejects.toThrow(
        /COMMIT undid/,
      );
      expect(await rest()).toEqual({ tenant: null, rows: 0, pid });
    }
  });

  it('keeps the tenant for all statements of a transaction, and commits what they wrote', async () => {
    const tenant = tenantAt(0);
    const id = await one.ofTenant(tenant).transaction(async (tx) => {
      const row = await insertScheduled(tx, { tenant, lane: 'simulated/test' });
      expect((await tx.query(SEEN)).rows).toEqual([{ tenant_id: tenant }]);
      expect((await tx.query<{ tenant: string }>(SETTING)).rows[0]?.tenant).toBe(tenant);
      return row.id;
    });
    expect(await db.query('SELECT tenant_id FROM payment WHERE id = $1', [id])).toEqual([
      { tenant_id: tenant },
    ]);
  });

  it('is one transaction with the setting: a statement is undone whole when it fails', async () => {
    const tenant = tenantAt(1);
    const before = await db.query('SELECT count(*) FROM payment');
    await expect(
      one.ofTenant(tenant).transaction(async (tx) => {
        await insertScheduled(tx, { tenant, lane: 'simulated/test' });
        throw new Error('undone');
      }),
    ).rejects.toThrow('undone');
    expect(await db.query('SELECT count(*) FROM payment')).toEqual(before);
  });

  it('takes every text as a tenant id, and none as SQL', async () => {
    const hostile = `x'; SET payments.tenant = '${tenantAt(0)}`;
    expect((await one.ofTenant(hostile).query(SEEN)).rowCount).toBe(0);
    expect((await one.ofTenant(randomUUID()).query(SEEN)).rowCount).toBe(0);
    expect(() => one.ofTenant('')).toThrow('A tenant has an id.');
  });

  it('may be shared by calls at the same time: none sees the other', async () => {
    const answers = await Promise.all(
      Array.from({ length: 500 }, async (_, i) => {
        const { rows } = await one.ofTenant(tenantAt(i)).query<{ tenant_id: string }>(SEEN);
        return rows.length === 1 && rows[0]?.tenant_id === tenantAt(i);
      }),
    );
    expect(answers.every(Boolean)).toBe(true);
  });
});
