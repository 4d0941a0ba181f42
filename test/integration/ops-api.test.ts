import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { payments, type Ran } from '../support/command-line.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { findBreaches } from '../support/invariants.js';
import { seedTenant } from '../support/builders.js';

let db: TestDatabase;
let api: TestApi;
let client: string;
let operator: string;
beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  const tenant = await seedTenant(db.database);
  client = (await api.client({ tenant })).key;
  operator = (await api.person(tenant)).key;
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const as = (key: string, ...args: string[]): Promise<Ran> =>
  payments(args, { PAYMENTS_API_URL: api.url, PAYMENTS_API_KEY: key });
const create = (key: string): string[] => [
  ...['create', '--idempotency-key', key, '--amount', '1999', '--currency', 'EUR'],
  ...['--destination', 'acct_1', '--execute-at', '2026-01-01T00:00:00Z', '--json'],
];

describe('the command line against the API', () => {
  it('leads one payment through its life, and each change is seen by the next command', async () => {
    const made = await as(client, 'create', ...['--idempotency-key', 'life', '--amount', '1999', '--currency', 'EUR'],
      ...['--destination', 'acct_1', '--in', '2h', '--reference', 'invoice-1', '--json']); // prettier-ignore
    expect(made).toMatchObject({ exitCode: 0, err: '' });
    const { id, execute_at: executeAt } = made.json() as { id: string; execute_at: string };
    const repeat = ['create', '--idempotency-key', 'life', '--amount', '1999', '--currency', 'EUR'];
    const replay = await as(client, ...repeat, ...['--destination', 'acct_1', '--execute-at', executeAt, '--reference', 'invoice-1']); // prettier-ignore
    expect(replay.out).toContain('nothing new was scheduled');
    const moved = await as(client, 'reschedule', id, '--if-version', '1', '--in', '3h', '--json');
    expect(moved.json()).toMatchObject({ state: 'scheduled', version: 2 });
    expect((await as(operator, 'hold', id)).out).toContain(`${id} is held.`);
    expect((await as(operator, 'release', id, '--if-version', '3')).out).toContain(`${id} is scheduled.`);
    expect((await as(client, 'get', id)).out).toContain('19.99 EUR');
    expect((await as(client, 'cancel', id)).out).toContain(`${id} is cancelled.`);
    expect((await as(client, 'cancel', id)).exitCode).toBe(0);
    const history = (await as(client, 'history', id)).out;
    for (const cause of ['create', 'reschedule', 'hold', 'release', 'cancel']) {
      expect(history).toContain(`by ${cause}`);
    }
    const list = await as(client, 'list', '--state', 'cancelled', '--reference', 'invoice-1', '--json');
    expect((list.json() as { data: { id: string }[] }).data.map((p) => p.id)).toEqual([id]);
    expect(await findBreaches((text) => db.query(text))).toEqual([]);
  });

  it('answers 1 with the code of the problem for what the API refuses', async () => {
    const refused: [string, Ran][] = [
      ['execute_at_in_past', await as(client, ...create('late'))],
      ['not_found', await as(client, 'get', `pay_${'a'.repeat(32)}`, '--json')],
      ['forbidden', await as(client, 'hold', `pay_${'a'.repeat(32)}`, '--json')],
      ['unauthenticated', await as('ps_test_wrong', 'list', '--json')],
    ];
    for (const [code, ran] of refused) {
      expect(ran.exitCode).toBe(1);
      expect(ran.json()).toMatchObject({ code });
    }
  });

  it('refuses a reschedule of a version that is gone', async () => {
    const made = await as(client, 'create', ...['--idempotency-key', 'stale', '--amount', '1', '--currency', 'EUR'],
      ...['--destination', 'acct_1', '--in', '2h', '--json']); // prettier-ignore
    const { id } = made.json() as { id: string };
    await as(client, 'reschedule', id, '--if-version', '1', '--in', '3h');
    const stale = await as(client, 'reschedule', id, '--if-version', '1', '--in', '4h');
    expect(stale.exitCode).toBe(1);
    expect(stale.err).toContain('version_mismatch');
  });
});
