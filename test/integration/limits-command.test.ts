import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seedTenant } from '../support/builders.js';
import { payments, type Ran } from '../support/command-line.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let tenant: string;

beforeAll(async () => {
  db = await createTestDatabase();
  tenant = await seedTenant(db.database);
});
afterAll(() => db.drop());

const limits = (...args: string[]): Promise<Ran> =>
  payments(['limits', ...args], { PAYMENTS_ADMIN_DATABASE_URL: db.urlOf('payments_admin') });

describe('payments limits', () => {
  it('sets, lists and resets a limit of a tenant, as payments_admin', async () => {
    const set = await limits(
      'set',
      '--tenant',
      tenant,
      '--subject',
      'client',
      '--rate',
      '0.5',
      '--burst',
      '3',
    );
    expect(set).toMatchObject({ exitCode: 0, err: '', out: `${tenant}: client 0.5/s, burst 3.\n` });
    await limits('set', '--tenant', tenant, '--subject', 'client', '--rate', '20', '--burst', '40');
    expect((await limits('--tenant', tenant, '--json')).json()).toMatchObject({
      limits: [{ tenant_id: tenant, subject: 'client', rate_per_second: 20, burst: 40 }],
    });
    const reset = ['reset', '--tenant', tenant, '--subject', 'client', '--json'];
    expect((await limits(...reset)).json()).toMatchObject({ was_set: true });
    expect((await limits(...reset)).json()).toMatchObject({ was_set: false });
    expect((await limits('list')).out).toContain('No tenant has a limit of its own');
  });

  it('writes each change into the audit log, and a repeat that changes nothing not', async () => {
    const of = await seedTenant(db.database);
    await limits('set', '--tenant', of, '--subject', 'tenant', '--rate', '7', '--burst', '9');
    await limits('reset', '--tenant', of, '--subject', 'tenant');
    await limits('reset', '--tenant', of, '--subject', 'tenant');
    const rows = await db.query<{ action: string; target: string }>(
      'SELECT action, target FROM audit_log WHERE tenant_id = $1',
      [of],
    );
    expect(rows).toEqual([
      { action: 'limits_changed', target: of },
      { action: 'limits_changed', target: of },
    ]);
  });

  it.each([
    [['--rate', '0', '--burst', '1'], 'above 0'],
    [['--rate', '1e3', '--burst', '1'], 'above 0'],
    [['--rate', '1', '--burst', '0'], 'whole number'],
    [['--rate', '1', '--burst', '1.5'], 'whole number'],
    [['--rate', '1'], '--burst'],
  ])('refuses %j as wrong usage', async (args, word) => {
    const { exitCode, err } = await limits('set', '--tenant', tenant, '--subject', 'client', ...args);
    expect([exitCode, err.includes(word)]).toEqual([2, true]);
  });

  it('refuses a tenant that does not exist with 1, and answers 2 when Postgres cannot be asked', async () => {
    const args = ['set', '--tenant', 'nobody', '--subject', 'client', '--rate', '1', '--burst', '1'];
    expect(await limits(...args)).toMatchObject({ exitCode: 1, err: 'There is no tenant nobody.\n' });
    const away = db.urlOf('payments_admin').replace(/:\d+\//, ':1/');
    expect((await payments(['limits', ...args], { PAYMENTS_ADMIN_DATABASE_URL: away })).exitCode).toBe(2);
  });
});
