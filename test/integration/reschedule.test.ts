import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAR_HORIZON, startTestApi, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database, env: FAR_HORIZON });
  client = await api.client();
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const TIMES = { execute_at: '2090-03-01T10:00:00Z', not_after: '2090-03-01T16:00:00Z' };
const create = async (): Promise<string> => (await client.create(TIMES)).body.id as string;
const reschedule = (id: string, body: unknown, tag = '"v1"'): Promise<ApiAnswer> =>
  client.post(`/v1/payments/${id}/reschedule`, { headers: { 'if-match': tag }, body });

describe('a reschedule', () => {
  it('shifts the deadline by the same distance when none is given', async () => {
    const id = await create();
    const answer = await reschedule(id, { execute_at: '2090-02-27T09:30:00.000001Z' });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.headers['etag']).toBe('"v2"');
    expect(answer.body).toMatchObject({
      state: 'scheduled',
      version: 2,
      execute_at: '2090-02-27T09:30:00.000001Z',
      not_after: '2090-02-27T15:30:00.000001Z',
    });
  });

  it('takes a deadline anew when one is given', async () => {
    const id = await create();
    const answer = await reschedule(id, {
      execute_at: '2090-03-02T10:00:00Z',
      not_after: '2090-03-02T10:00:01Z',
    });
    expect(answer.body).toMatchObject({
      execute_at: '2090-03-02T10:00:00.000000Z',
      not_after: '2090-03-02T10:00:01.000000Z',
    });
  });

  it('to now makes the payment due, never before the moment it was asked', async () => {
    const id = await create();
    const [before] = await db.query<{ at: string }>('SELECT clock_timestamp() AS at');
    const answer = await reschedule(id, { execute_at: 'now' });
    expect(answer.status, answer.text).toBe(200);
    const [row] = await db.query<{ later: boolean; soon: boolean }>(
      `SELECT execute_at >= $2 AS later, execute_at < $2::timestamptz + interval '10 seconds' AS soon
         FROM payment WHERE id = $1`,
      [id, before?.at],
    );
    expect(row).toEqual({ later: true, soon: true });
  });

  it('wakes the workflow that sleeps until the old time', async () => {
    const id = await create();
    const nudges = api.nudges();
    await reschedule(id, { execute_at: '2090-03-02T10:00:00Z' });
    expect(
      await db.query(`SELECT kind FROM outbox WHERE payment_id = $1 AND kind = 'wake'`, [id]),
    ).toHaveLength(1);
    expect(api.nudges()).toBe(nudges + 1);
  });

  it('needs If-Match: 428 without, 400 for anything but one strong tag, 412 when stale', async () => {
    const id = await create();
    const body = { execute_at: '2090-03-02T10:00:00Z' };
    const without = await client.post(`/v1/payments/${id}/reschedule`, { body });
    expect([without.status, without.body.code]).toEqual([428, 'if_match_required']);
    for (const tag of ['*', 'W/"v1"', 'v1', '"v1", "v2"', '"v0"', '"v01"', '"v9999999999"', '"v-1"', '']) {
      const answer = await reschedule(id, body, tag);
      expect([tag, answer.status, answer.body.code]).toEqual([tag, 400, 'if_match_invalid']);
    }
    for (const tag of ['"v2"', '"v2147483647"']) {
      const answer = await reschedule(id, body, tag);
      expect([answer.status, answer.body.code]).toEqual([412, 'version_mismatch']);
    }
    expect((await client.get(`/v1/payments/${id}`)).body).toMatchObject({
      version: 1,
      execute_at: '2090-03-01T10:00:00.000000Z',
    });
  });

  it.each([
    [{ execute_at: '2020-01-01T00:00:00Z' }, 422, 'execute_at_in_past'],
    [{ execute_at: '2020-01-01T00:00:00Z', not_after: '2090-01-01T00:00:00Z' }, 422, 'execute_at_in_past'],
    [{ execute_at: '9999-12-31T23:59:59Z' }, 422, 'beyond_horizon'],
    [
      { execute_at: '2090-03-02T10:00:00Z', not_after: '2090-03-02T10:00:00Z' },
      422,
      'not_after_before_execute_at',
    ],
    [
      { execute_at: '2090-03-02T10:00:00Z', not_after: '2020-03-02T10:00:00Z' },
      422,
      'not_after_before_execute_at',
    ],
    [{ execute_at: '2090-02-30T10:00:00Z' }, 400, 'validation_failed'],
    [{ not_after: '2090-03-02T10:00:00Z' }, 400, 'validation_failed'],
    [{}, 400, 'validation_failed'],
    [undefined, 400, 'body_missing'],
  ])('with %j is %d %s and moves nothing', async (body, status, code) => {
    const id = await create();
    const answer = await reschedule(id, body);
    expect([answer.status, answer.body.code], answer.text).toEqual([status, code]);
    expect((await client.get(`/v1/payments/${id}`)).body.version).toBe(1);
  });

  it('twice at once is done once: the other one has a stale version', async () => {
    const id = await create();
    const answers = await Promise.all([
      reschedule(id, { execute_at: '2090-03-02T10:00:00Z' }),
      reschedule(id, { execute_at: '2090-03-03T10:00:00Z' }),
    ]);
    expect(answers.map((a) => a.status).sort()).toEqual([200, 412]);
    const winner = answers.find((a) => a.status === 200);
    expect((await client.get(`/v1/payments/${id}`)).body.execute_at).toBe(winner?.body.execute_at);
  });
});
