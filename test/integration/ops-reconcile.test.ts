import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { insertScheduled, seedLane, seedTenant, unique } from '../support/builders.js';
import { payments, type Ran } from '../support/command-line.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { bringTo } from '../support/payment-states.js';
import { importRig, settlementCsv, type ImportRig, type LineSeed } from '../support/settlement-world.js';

let db: TestDatabase;
let rig: ImportRig;
let tenant: string;
let lane: string;
let provider: string;
beforeAll(async () => {
  db = await createTestDatabase();
  rig = importRig(db);
  tenant = await seedTenant(db.database);
});
afterAll(async () => {
  rig.close();
  await db.drop();
});
beforeEach(async () => {
  provider = unique('provider');
  lane = await seedLane(db.database, { provider });
});

async function paid(): Promise<string> {
  const { id } = await insertScheduled(db.database, { tenant, lane, provider });
  await bringTo('succeeded', db.database, id);
  return id;
}

async function reconcile(lines: readonly LineSeed[], ...more: readonly string[]): Promise<Ran> {
  const path = rig.write(settlementCsv(lines));
  return payments(['reconcile', '--file', path, '--provider', provider, ...more], {
    PAYMENTS_DATABASE_URL: db.urlOf('payments_worker'),
  });
}

describe('payments reconcile', () => {
  it('prints the buckets and ends with 0 when every row has its payment', async () => {
    const ran = await reconcile([
      { txn: unique('txn'), paymentId: await paid() },
      { txn: unique('txn'), kind: 'fee' },
    ]);
    expect(ran.exitCode).toBe(0);
    expect(ran.out).toMatch(/matched\s+│ 1 /);
    expect(ran.out).toContain('No discrepancies.');
    expect(ran.err).toBe('');
  });

  it('prints rows of trouble with their numbers and ends with 1', async () => {
    const [id, txn] = [await paid(), unique('txn')];
    const lines = [
      { txn: unique('txn'), paymentId: id },
      { txn, paymentId: `pay_${'q'.repeat(32)}` },
    ];
    const ran = await reconcile(lines);
    expect(ran.exitCode).toBe(1);
    expect(ran.out).toMatch(new RegExp(`│ 2 +│ unexpected_at_provider +│ no_payment +│ ${txn}`));
    expect(ran.out).toContain('UNEXPECTED AT PROVIDER: possible double payment');
    expect(ran.out).toContain('1 discrepancies.');
  });

  it('gives machines the same with --json, and the same again for a file that was imported before', async () => {
    const path = rig.write(settlementCsv([{ txn: unique('txn'), paymentId: await paid(), gross: '-1.00' }]));
    const args = ['reconcile', '--file', path, '--provider', provider, '--json'];
    const env = { PAYMENTS_DATABASE_URL: db.urlOf('payments_worker') };
    const [first, again] = [await payments(args, env), await payments(args, env)];
    expect([first.exitCode, again.exitCode]).toEqual([1, 1]);
    expect(first.json()).toMatchObject({
      imported_before: false,
      rows: 1,
      buckets: { amount_differs: 1, matched: 0 },
    });
    expect(again.json()).toEqual({
      ...first.json(),
      imported_before: true,
      lines: { contradicted: 0, waiting: 0, failed: 0 },
    });
  });

  it('refuses a provider that no payment goes through: every row would be unexpected', async () => {
    const path = rig.write(settlementCsv([{ txn: unique('txn'), paymentId: await paid() }]));
    const ran = await payments(['reconcile', '--file', path, '--provider', 'simulatde'], {
      PAYMENTS_DATABASE_URL: db.urlOf('payments_worker'),
    });
    expect(ran.exitCode).toBe(2);
    expect(ran.err).toContain('No payment goes through a provider simulatde.');
    expect(await db.query(`SELECT 1 FROM settlement_file WHERE provider = 'simulatde'`)).toEqual([]);
  });

  it('refuses a file of another form with a sentence, exit code 2', async () => {
    const path = rig.write('name,amount\nx,1\n');
    const ran = await payments(['reconcile', '--file', path, '--provider', provider], {
      PAYMENTS_DATABASE_URL: db.urlOf('payments_worker'),
    });
    expect([ran.exitCode, ran.out]).toEqual([2, '']);
    expect(ran.err).toContain('The header is none of a known settlement report');
  });
});
