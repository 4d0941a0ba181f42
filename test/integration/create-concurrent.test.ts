import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import pg from 'pg';
import { parseIdempotencyKey } from '../../src/domain/idempotency-key.js';
import { paymentId } from '../../src/domain/payment-id.js';
import { sha256 } from '../../src/platform/sha256.js';
import { startTestApi, validCreate, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;
const held: pg.Client[] = [];

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
});
afterEach(async () => {
  for (const session of held.splice(0)) await session.end();
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const statuses = (answers: readonly ApiAnswer[]): Record<number, number> => {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

const rowsOf = async (key: string): Promise<{ payments: number; starts: number }> => {
  const [row] = await db.query<{ payments: number; starts: number }>(
    `SELECT count(*)::integer AS payments, (SELECT count(*)::integer FROM outbox o JOIN payment q ON q.id = o.payment_id
        WHERE q.idempotency_key = $1 AND o.kind = 'start') AS starts FROM payment WHERE idempotency_key = $1`,
    [key],
  );
  return row ?? { payments: -1, starts: -1 };
};

/** Another process that has inserted a payment of this key and not committed yet. */
async function insertInFlight(key: string): Promise<pg.Client> {
  const session = new pg.Client({ connectionString: db.url });
  session.on('error', () => undefined);
  await session.connect();
  held.push(session);
  const parsed = parseIdempotencyKey([key]);
  if (parsed.kind !== 'key') throw new Error('the key of the test is refused');
  const id = paymentId({ tenant: client.tenant, key: parsed.key, sha256 });
  await session.query('BEGIN');
  await session.query(
    `INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency,
       destination, destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at, not_after,
       state, created_by)
     VALUES ($1, $2, $3, '\\x00', 1, 1, 'EUR', '\\x00', 'test-1', '\\x00', 'test-1', 'simulated', 'simulated/default',
       now() + interval '1 day', now() + interval '2 days', 'scheduled', 'api_key:other')`,
    [id, client.tenant, key],
  );
  return session;
}

describe('50 parallel creates of one key', () => {
  it('with one body make one payment: one 201, 49 replays of it (ID-01)', async () => {
    const key = unique('order');
    const body = validCreate();
    const send = () => client.post('/v1/payments', { headers: { 'idempotency-key': key }, body });
    const answers = await Promise.all(Array.from({ length: 50 }, send));
    expect(statuses(answers)).toEqual({ 200: 49, 201: 1 });
    expect(new Set(answers.map((a) => a.body.id)).size).toBe(1);
    expect(await rowsOf(key)).toEqual({ payments: 1, starts: 1 });
  });

  it('with two bodies make one payment: the other body is 422 every time (ID-01)', async () => {
    const key = unique('order');
    const bodies = [validCreate({ amount: 1 }), validCreate({ amount: 2 })];
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        client.post('/v1/payments', { headers: { 'idempotency-key': key }, body: bodies[i % 2] }),
      ),
    );
    expect(statuses(answers)).toEqual({ 200: 24, 201: 1, 422: 25 });
    const winner = answers.find((a) => a.status === 201)?.body;
    for (const { status, body } of answers) {
      if (status === 422) expect(body.code).toBe('idempotency_key_reused');
      else expect([body.id, body.amount]).toEqual([winner.id, winner.amount]);
    }
    expect(await rowsOf(key)).toEqual({ payments: 1, starts: 1 });
  });

  it('at two processes make one payment (ID-01, DC-03)', async () => {
    const other = await startTestApi({ database: db.connect('other-api'), keys: api.keys });
    try {
      const key = unique('order');
      const body = validCreate();
      const ways = [client, other.as(client.key)];
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          (ways[i % 2] ?? client).post('/v1/payments', { headers: { 'idempotency-key': key }, body }),
        ),
      );
      expect(statuses(answers)).toEqual({ 200: 49, 201: 1 });
      expect(await rowsOf(key)).toEqual({ payments: 1, starts: 1 });
    } finally {
      await other.close();
    }
  });
});

describe('a create that meets an insert in flight', () => {
  it('waits, and after the limit answers 409 idempotency_key_in_use with Retry-After (ID-01)', async () => {
    const key = unique('order');
    const session = await insertInFlight(key);
    const body = validCreate();
    const send = () => client.post('/v1/payments', { headers: { 'idempotency-key': key }, body });
    // Another key must get through although 50 requests wait for this one.
    const [answers, unrelated] = await Promise.all([
      Promise.all(Array.from({ length: 50 }, send)),
      client.create(),
    ]);
    expect(unrelated.status).toBe(201);
    expect(statuses(answers)).toEqual({ 409: 50 });
    for (const { body: problem, headers } of answers) {
      expect(problem).toMatchObject({ code: 'idempotency_key_in_use', retryable: true });
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
    }
    await session.query('ROLLBACK');
    const made = await send();
    expect(made.status, made.text).toBe(201);
  });

  it('takes its place when the other one gives up', async () => {
    const key = unique('order');
    const session = await insertInFlight(key);
    const sent = client.create({}, key);
    await expect
      .poll(async () => (await db.query(`SELECT 1 FROM pg_locks WHERE NOT granted`)).length)
      .toBeGreaterThan(0);
    await session.query('ROLLBACK');
    const answer = await sent;
    expect(answer.status, answer.text).toBe(201);
    expect(await rowsOf(key)).toEqual({ payments: 1, starts: 1 });
  });

  it('compares with the other one when that commits', async () => {
    const key = unique('order');
    const session = await insertInFlight(key);
    const sent = client.create({}, key);
    await expect
      .poll(async () => (await db.query(`SELECT 1 FROM pg_locks WHERE NOT granted`)).length)
      .toBeGreaterThan(0);
    await session.query('COMMIT');
    const answer = await sent;
    expect([answer.status, answer.body.code]).toEqual([422, 'idempotency_key_reused']);
  });
});
