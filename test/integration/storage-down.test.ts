import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '../../src/persistence/database.js';
import { startTestApi, validCreate, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';

let db: TestDatabase;
let proxy: TcpProxy;
let database: Database;
let api: TestApi;
let client: Client;

beforeAll(async () => {
  db = await createTestDatabase();
  proxy = await startTcpProxy(db.urlOf('payments_api'));
  database = new Database({ url: proxy.url, poolSize: 4, applicationName: 'behind-proxy' });
  api = await startTestApi({ database, home: db });
  client = await api.client();
});
afterEach(() => {
  proxy.mode = 'open';
});
afterAll(async () => {
  await api.close();
  await database.close();
  await proxy.close();
  await db.drop();
});

const rowsOf = (key: string) =>
  db.query<{ id: string; state: string; version: number }>(
    'SELECT id, state, version FROM payment WHERE idempotency_key = $1',
    [key],
  );

/** What a client may conclude from a 503: nothing was promised, and when to come back. */
function expectUnavailable(answer: ApiAnswer, codes: readonly string[] = ['storage_unavailable']): void {
  expect(answer.status, answer.text).toBe(503);
  expect(codes).toContain(answer.body.code);
  expect(answer.body.retryable).toBe(true);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
}

describe('while Postgres cannot be reached', () => {
  it('a create is 503, stores nothing, and is 201 under the same key afterwards (ID-03)', async () => {
    const key = unique('order');
    const headers = { 'idempotency-key': key };
    const body = validCreate();
    // The credential is known, so the create itself meets the outage.
    expect((await client.create()).status).toBe(201);
    proxy.mode = 'cut';
    expectUnavailable(await client.post('/v1/payments', { headers, body }), [
      'storage_unavailable',
      'outcome_unknown',
    ]);
    expectUnavailable(await client.post('/v1/payments', { headers, body }));
    expect(await rowsOf(key)).toEqual([]);
    proxy.mode = 'open';
    const made = await client.post('/v1/payments', { headers, body });
    expect([made.status, made.headers['idempotency-replayed']]).toEqual([201, undefined]);
    expect(await rowsOf(key)).toHaveLength(1);
  });

  it('a cancel is 503 and never accepted; the repeat afterwards is 200', async () => {
    const { body } = await client.create();
    proxy.mode = 'cut';
    const path = `/v1/payments/${body.id}/cancel`;
    expectUnavailable(await client.post(path), ['storage_unavailable', 'outcome_unknown']);
    expectUnavailable(await client.post(path));
    proxy.mode = 'open';
    expect((await client.get(`/v1/payments/${body.id}`)).body.state).toBe('scheduled');
    expect((await client.post(path)).status).toBe(200);
  });

  it('reads are 503, and never tell that something may have changed', async () => {
    const { body } = await client.create();
    for (const path of [`/v1/payments/${body.id}`, `/v1/payments/${body.id}/history`, '/v1/payments']) {
      proxy.mode = 'cut';
      expectUnavailable(await client.get(path));
      proxy.mode = 'open';
      expect((await client.get(path)).status).toBe(200);
    }
  });

  it('a caller who has to be looked up is neither let in nor turned away: 503', async () => {
    const unseen = await api.client();
    proxy.mode = 'cut';
    expectUnavailable(await unseen.create());
    expect((await api.as(null).create()).status).toBe(401);
    proxy.mode = 'open';
    expect((await unseen.create()).status).toBe(201);
  });
});

describe('when the answer to a commit is lost', () => {
  it('a create is 503 outcome_unknown, and the repeat finds its payment', async () => {
    const key = unique('order');
    const headers = { 'idempotency-key': key };
    const body = validCreate();
    // Connections that are made: else it is the answer to the log-in that is lost.
    await Promise.all(Array.from({ length: 4 }, () => client.create()));
    proxy.mode = 'answers_lost';
    expectUnavailable(await client.post('/v1/payments', { headers, body }), ['outcome_unknown']);
    proxy.mode = 'open';
    await expect.poll(async () => (await rowsOf(key)).length).toBe(1);
    const again = await client.post('/v1/payments', { headers, body });
    expect([again.status, again.headers['idempotency-replayed']]).toEqual([200, 'true']);
    expect(await rowsOf(key)).toHaveLength(1);
  });

  it('a cancel is 503 outcome_unknown, and the repeat is 200 with one transition', async () => {
    const key = unique('order');
    const { body } = await client.create({}, key);
    proxy.mode = 'answers_lost';
    expectUnavailable(await client.post(`/v1/payments/${body.id}/cancel`), ['outcome_unknown']);
    proxy.mode = 'open';
    await expect.poll(async () => (await rowsOf(key))[0]?.state).toBe('cancelled');
    const again = await client.post(`/v1/payments/${body.id}/cancel`);
    expect([again.status, again.body.state, again.body.version]).toEqual([200, 'cancelled', 2]);
  });

  it('a read is only unavailable', async () => {
    const { body } = await client.create();
    proxy.mode = 'answers_lost';
    expectUnavailable(await client.get(`/v1/payments/${body.id}`));
  });
});

describe('while the way to Postgres is silent, its connections half-open', () => {
  it('writes and reads are 503 within their limit, and the first calls afterwards are well', async () => {
    const { body } = await client.create();
    // Four connections: two are met by the calls below, two stay dead in the pool.
    await Promise.all(Array.from({ length: 4 }, () => client.create()));
    const key = unique('order');
    const create = { headers: { 'idempotency-key': key }, body: validCreate() };
    proxy.mode = 'silent';
    const [write, read] = await Promise.all([
      client.post('/v1/payments', create),
      client.get(`/v1/payments/${body.id}`),
    ]);
    expectUnavailable(write, ['outcome_unknown']);
    expectUnavailable(read);
    proxy.mode = 'open';
    const afterwards = await Promise.all([
      client.post('/v1/payments', create),
      client.get(`/v1/payments/${body.id}`),
      client.post(`/v1/payments/${body.id}/cancel`),
    ]);
    expect(afterwards.map((answer) => answer.status)).toEqual([201, 200, 200]);
    expect(await rowsOf(key)).toHaveLength(1);
  });
});

describe('when the server ends every connection', () => {
  it('the process lives on and the next requests are well (PG-01)', async () => {
    await Promise.all(Array.from({ length: 4 }, () => client.create()));
    await db.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'behind-proxy'`,
    );
    await expect.poll(async () => (await client.create()).status).toBe(201);
  });
});

describe('with a pool of two connections', () => {
  it('20 creates and 20 cancels at once all end, and the pool is as before (PG-02)', async () => {
    const small = db.as('payments_api', 'small-pool', 2);
    const narrow = await startTestApi({ database: small, keys: api.keys });
    try {
      const at = narrow.as(client.key);
      const made = await Promise.all(Array.from({ length: 20 }, () => at.create()));
      expect(made.map((a) => a.status)).toEqual(made.map(() => 201));
      const cancelled = await Promise.all(made.map((a) => at.post(`/v1/payments/${a.body.id}/cancel`)));
      expect(cancelled.map((a) => a.status)).toEqual(made.map(() => 200));
      expect(small.connections()).toMatchObject({ waiting: 0 });
    } finally {
      await narrow.close();
    }
  });

  it('both of which wait for a lock, others get 503 or their turn, and nothing hangs (PG-02)', async () => {
    const small = db.as('payments_api', 'blocked-pool', 2);
    const narrow = await startTestApi({ database: small, keys: api.keys });
    try {
      const at = narrow.as(client.key);
      const ids = (await Promise.all([at.create(), at.create()])).map((a) => a.body.id as string);
      // A session of its own: the product's would end an idle transaction before the waits are over.
      const holder = new pg.Client({ connectionString: db.url });
      await holder.connect();
      try {
        await holder.query('BEGIN');
        await holder.query('SELECT 1 FROM payment WHERE id = ANY($1) FOR UPDATE', [ids]);
        const cancels = ids.map((id) => at.post(`/v1/payments/${id}/cancel`));
        await expect.poll(() => small.connections()).toMatchObject({ total: 2, idle: 0 });
        const others = await Promise.all([at.create(), at.create(), at.create()]);
        for (const other of others) if (other.status !== 201) expectUnavailable(other);
        for (const refused of await Promise.all(cancels)) expectUnavailable(refused);
      } finally {
        await holder.end();
      }
      for (const id of ids) expect((await at.post(`/v1/payments/${id}/cancel`)).status).toBe(200);
      expect(small.connections()).toMatchObject({ waiting: 0 });
    } finally {
      await narrow.close();
    }
  });
});

describe('before Postgres was ever there', () => {
  it('the API starts, answers 503, and serves its documentation', async () => {
    const nowhere = new Database({
      url: 'postgres://nobody:nothing@127.0.0.1:9/none',
      poolSize: 2,
      applicationName: 'nowhere',
    });
    const early = await startTestApi({ database: nowhere, keys: api.keys });
    try {
      expectUnavailable(await early.as(client.key).create());
      expect((await early.as(null).get('/openapi.json')).status).toBe(200);
    } finally {
      await early.close();
      await nowhere.close();
    }
  });
});
