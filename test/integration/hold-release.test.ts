import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;
let operator: Client;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
  operator = await api.person(client.tenant);
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const create = async (members = {}): Promise<string> => (await client.create(members)).body.id as string;
const hold = (id: string): Promise<ApiAnswer> => operator.post(`/v1/payments/${id}/hold`);
const release = (id: string): Promise<ApiAnswer> => operator.post(`/v1/payments/${id}/release`);
const causesOf = async (id: string): Promise<readonly string[]> =>
  (
    await db.query<{ cause: string }>(
      'SELECT cause FROM payment_transition WHERE payment_id = $1 ORDER BY seq',
      [id],
    )
  ).map((t) => t.cause);

/** A payment that was held and whose deadline has passed meanwhile. */
async function heldPastDeadline(): Promise<string> {
  const id = await create({ execute_at: 'now', not_after: new Date(Date.now() + 500).toISOString() });
  expect((await hold(id)).status).toBe(200);
  await expect
    .poll(
      async () =>
        (await db.query('SELECT 1 FROM payment WHERE id = $1 AND not_after < clock_timestamp()', [id]))
          .length,
      { interval: 20, timeout: 10_000 },
    )
    .toBe(1);
  return id;
}

describe('hold and release', () => {
  it('each wake the workflow once, and a repeat changes nothing', async () => {
    const id = await create();
    const answers = [await hold(id), await hold(id), await release(id), await release(id)];
    expect(answers.map((a) => [a.status, a.body.state, a.body.version])).toEqual([
      [200, 'held', 2],
      [200, 'held', 2],
      [200, 'scheduled', 3],
      [200, 'scheduled', 3],
    ]);
    expect(await causesOf(id)).toEqual(['create', 'hold', 'release']);
    expect(await db.query(`SELECT kind FROM outbox WHERE payment_id = $1 ORDER BY id`, [id])).toEqual([
      { kind: 'start' },
      { kind: 'wake' },
      { kind: 'wake' },
    ]);
  });

  it('a release of a payment that nobody held is 409, also after it was rescheduled since', async () => {
    const id = await create();
    expect([(await release(id)).status, (await release(id)).body.code]).toEqual([409, 'not_applicable']);
    await hold(id);
    await release(id);
    await client.post(`/v1/payments/${id}/reschedule`, {
      headers: { 'if-match': '"v3"' },
      body: { execute_at: new Date(Date.now() + 7_200_000).toISOString() },
    });
    const late = await release(id);
    expect([late.status, late.body.code, late.body.state]).toEqual([409, 'not_applicable', 'scheduled']);
  });

  it('twins at once make one transition each', async () => {
    const id = await create();
    const holds = await Promise.all([hold(id), hold(id), hold(id)]);
    expect(holds.map((a) => a.status)).toEqual([200, 200, 200]);
    const releases = await Promise.all([release(id), release(id), release(id)]);
    expect(releases.map((a) => a.status)).toEqual([200, 200, 200]);
    expect(await causesOf(id)).toEqual(['create', 'hold', 'release']);
  });

  it('respect an If-Match that is sent', async () => {
    const id = await create();
    const stale = { headers: { 'if-match': '"v7"' } };
    expect((await operator.post(`/v1/payments/${id}/hold`, stale)).status).toBe(412);
    await hold(id);
    expect((await operator.post(`/v1/payments/${id}/release`, stale)).status).toBe(412);
    expect(await causesOf(id)).toEqual(['create', 'hold']);
  });
});

describe('a release past the deadline', () => {
  it('expires the payment and says so, and a repeat says the same', async () => {
    const id = await heldPastDeadline();
    for (const answer of [await release(id), await release(id)]) {
      expect([answer.status, answer.body.code, answer.body.state, answer.body.version]).toEqual([
        409,
        'payment_final',
        'expired',
        3,
      ]);
    }
    expect(await causesOf(id)).toEqual(['create', 'hold', 'expire']);
  });

  it('in a recovery hold neither releases nor expires: 503', async () => {
    const id = await heldPastDeadline();
    await db.query(`INSERT INTO setting (name, value) VALUES ('recovery_hold', 'on')`);
    try {
      const answer = await release(id);
      expect([answer.status, answer.body.code, answer.body.state]).toEqual([503, 'recovery_hold', 'held']);
    } finally {
      await db.query(`DELETE FROM setting WHERE name = 'recovery_hold'`);
    }
    expect(await causesOf(id)).toEqual(['create', 'hold']);
  });
});
