import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PrepareRefused } from '../../src/providers/payment-provider.js';
import { registryOf } from '../../src/providers/provider-registry.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import {
  FAR_HORIZON,
  ALL_SCOPES,
  inHours,
  startTestApi,
  validCreate,
  type Client,
  type TestApi,
} from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { bringTo } from '../support/payment-states.js';

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

const countRows = async (tenant: string): Promise<number> => {
  const rows = await db.query<{ n: number }>(
    'SELECT count(*)::integer AS n FROM payment WHERE tenant_id = $1',
    [tenant],
  );
  return rows[0]?.n ?? -1;
};

describe('a create', () => {
  it('answers 201 with the whole payment, its Location and its entity tag', async () => {
    const body = validCreate({
      execute_at: '2090-03-01T10:00:00+02:00',
      not_after: '2090-03-02T10:00:00.5Z',
      reference: 'invoice-2041',
      description: 'Décembre',
      metadata: { team: 'north', empty: '' },
    });
    const answer = await client.post('/v1/payments', {
      headers: { 'idempotency-key': unique('order') },
      body,
    });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.headers).toMatchObject({
      location: `/v1/payments/${answer.body.id}`,
      etag: '"v1"',
      'cache-control': 'no-store',
      'content-type': 'application/json; charset=utf-8',
    });
    expect(answer.headers['idempotency-replayed']).toBeUndefined();
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^pay_[a-z2-7]{32}$/),
      state: 'scheduled',
      version: 1,
      amount: 1999,
      currency: 'EUR',
      destination: 'acct_1032D82eZvKYlo2C',
      provider: 'simulated',
      reference: 'invoice-2041',
      description: 'Décembre',
      metadata: { team: 'north', empty: '' },
      execute_at: '2090-03-01T08:00:00.000000Z',
      not_after: '2090-03-02T10:00:00.500000Z',
      submission_started_at: null,
      first_call_at: null,
      lateness_ms: null,
      provider_ref: null,
      next_action_at: null,
      created_at: expect.stringMatching(/\.\d{6}Z$/),
      updated_at: expect.stringMatching(/\.\d{6}Z$/),
    });
    const read = await client.get(answer.headers['location'] as string);
    expect([read.status, read.body, read.headers['etag']]).toEqual([200, answer.body, '"v1"']);
  });

  it('stores the payment, its first transition and the request to start it in one commit', async () => {
    const before = api.nudges();
    const { body } = await client.create();
    const [row] = await db.query<{
      destination: Buffer;
      lane: string;
      created_by: string;
      known_lane: boolean;
    }>(
      `SELECT p.destination, p.lane, p.created_by, EXISTS (SELECT 1 FROM lane l WHERE l.lane = p.lane) AS known_lane
         FROM payment p WHERE id = $1`,
      [body.id],
    );
    expect(row).toMatchObject({ lane: 'simulated/default', known_lane: true });
    expect(row?.created_by).toMatch(/^api_key:[a-z2-7]{12}$/);
    expect(row?.destination.toString('latin1')).not.toContain('acct_1032D82eZvKYlo2C');
    expect(await db.query('SELECT kind FROM outbox WHERE payment_id = $1', [body.id])).toEqual([
      { kind: 'start' },
    ]);
    expect(
      await db.query(
        'SELECT seq, from_state, to_state, cause FROM payment_transition WHERE payment_id = $1',
        [body.id],
      ),
    ).toEqual([{ seq: 1, from_state: null, to_state: 'scheduled', cause: 'create' }]);
    expect(api.nudges()).toBe(before + 1);
  });

  it('takes the word now, and the tenant’s own lateness limit for the deadline', async () => {
    const hasty = await api.client({ tenant: { latenessLimitSeconds: 90 } });
    const { status, body } = await hasty.create({ execute_at: 'now' });
    expect(status).toBe(201);
    expect(Date.parse(body.not_after) - Date.parse(body.execute_at)).toBe(90_000);
    const [row] = await db.query<{ on_time: boolean }>(
      'SELECT execute_at <= created_at AS on_time FROM payment WHERE id = $1',
      [body.id],
    );
    expect(row?.on_time).toBe(true);
  });

  it('needs exactly one key', async () => {
    const answer = await client.post('/v1/payments', { body: validCreate() });
    expect([answer.status, answer.body.code]).toEqual([400, 'idempotency_key_missing']);
  });

  it.each([
    [{ provider: 'nobody' }, 'provider_unknown'],
    [{ currency: 'ZWL' }, 'currency_unsupported'],
    [{ execute_at: '2020-01-01T00:00:00Z' }, 'execute_at_in_past'],
    [{ execute_at: inHours(24 * 36_600) }, 'beyond_horizon'],
    [{ execute_at: inHours(24), not_after: inHours(23) }, 'not_after_before_execute_at'],
  ])('refuses %j with 422 %s and stores nothing', async (members, code) => {
    const tenant = await api.client();
    const answer = await tenant.create(members);
    expect([answer.status, answer.body.code]).toEqual([422, code]);
    expect(await countRows(tenant.tenant)).toBe(0);
  });
});

describe('the limits of a provider', () => {
  it('are refused by code, and what prepare cannot express never gets a row', async () => {
    const simulated = new SimulatedProvider({ baseUrl: 'http://127.0.0.1:9', apiKey: 'sk_test' });
    const picky = Object.create(simulated, {
      capabilities: {
        value: () => ({
          ...simulated.capabilities(),
          amount: { minMinor: 100n, maxMinor: 5_000n, exponents: {} },
        }),
      },
      prepare: {
        value: (payment: { destination: string; currency: string }) => {
          if (payment.destination.startsWith('bank_')) throw new PrepareRefused('destination_unusable');
          if (payment.currency === 'JPY') throw new PrepareRefused('currency_unusable');
          return simulated.prepare(payment as never);
        },
      },
    }) as typeof simulated;
    const strict = await startTestApi({
      database: db.database,
      env: FAR_HORIZON,
      keys: api.keys,
      providers: registryOf([picky]),
    });
    try {
      const tenant = await strict.client();
      const codeOf = async (members: Record<string, unknown>) => {
        const answer = await tenant.create(members);
        return [answer.status, answer.body.code];
      };
      expect(await codeOf({ amount: 99 })).toEqual([422, 'amount_below_limit']);
      expect(await codeOf({ amount: 5001 })).toEqual([422, 'amount_above_limit']);
      expect(await codeOf({ destination: 'bank_1' })).toEqual([422, 'destination_unsupported']);
      expect(await codeOf({ currency: 'JPY' })).toEqual([422, 'currency_unsupported']);
      expect(await countRows(tenant.tenant)).toBe(0);

      // The other API has wider limits: what it accepted stays a replay here.
      const key = unique('order');
      const wide = api.as(tenant.key, tenant.tenant);
      const made = await wide.create({ amount: 9_000, execute_at: '2090-03-01T00:00:00Z' }, key);
      const again = await tenant.create({ amount: 9_000, execute_at: '2090-03-01T00:00:00Z' }, key);
      expect([made.status, again.status, again.body.id]).toEqual([201, 200, made.body.id]);
    } finally {
      await strict.close();
    }
  });
});

describe('a repeat', () => {
  it('is the payment as it is now, found by meaning and not by bytes', async () => {
    const key = unique('order');
    const made = await client.create(
      { execute_at: '2090-03-01T10:00:00Z', metadata: { a: '1', b: '2' } },
      key,
    );
    const { id } = made.body;
    await (await api.person(client.tenant)).post(`/v1/payments/${id}/hold`);
    const again = await client.post('/v1/payments', {
      headers: { 'idempotency-key': `"${key}"` },
      body: ` { "metadata":{"b":"2","a":"1"}, "execute_at":"2090-03-01T12:00:00.000+02:00",
        "destination":"acct_1032D82eZvKYlo2C", "currency":"EUR", "amount":1999 } `,
    });
    expect(again.status, again.text).toBe(200);
    expect(again.headers).toMatchObject({ 'idempotency-replayed': 'true', etag: '"v2"' });
    expect(again.body).toMatchObject({ id, state: 'held', version: 2 });
  });

  it.each([
    ['amount', { amount: 2000 }],
    ['currency', { currency: 'USD' }],
    ['destination', { destination: 'acct_other' }],
    ['execute_at', { execute_at: '2090-03-01T10:00:00.000001Z' }],
    ['not_after', { not_after: '2090-03-02T10:00:00Z' }],
    ['reference', { reference: 'r' }],
    ['description', { description: 'd' }],
    ['metadata', { metadata: { a: '2' } }],
    ['provider, even if it names the default', { provider: 'simulated' }],
  ])('with another %s is 422 idempotency_key_reused', async (_name, members) => {
    const key = unique('order');
    const base = { execute_at: '2090-03-01T10:00:00Z', metadata: { a: '1' } };
    expect((await client.create(base, key)).status).toBe(201);
    const other = await client.create({ ...base, ...members }, key);
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
  });

  it('after execute_at has passed is a replay and no refusal', async () => {
    const key = unique('order');
    const body = validCreate({ execute_at: new Date(Date.now() + 700).toISOString() });
    const headers = { 'idempotency-key': key };
    const made = await client.post('/v1/payments', { headers, body });
    expect(made.status, made.text).toBe(201);
    await expect
      .poll(
        async () =>
          (
            await db.query<{ due: boolean }>(
              'SELECT execute_at < clock_timestamp() AS due FROM payment WHERE id = $1',
              [made.body.id],
            )
          )[0]?.due,
        { timeout: 10_000 },
      )
      .toBe(true);
    const again = await client.post('/v1/payments', { headers, body });
    expect([again.status, again.body.id]).toEqual([200, made.body.id]);
    const other = await client.post('/v1/payments', { headers, body: { ...body, amount: 1 } });
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
  });

  it('of now stays a replay, however late', async () => {
    const key = unique('order');
    const made = await client.create({ execute_at: 'now' }, key);
    await bringTo('succeeded', db.database, made.body.id);
    const again = await client.create({ execute_at: 'now' }, key);
    expect([again.status, again.body.id, again.body.state]).toEqual([200, made.body.id, 'succeeded']);
  });

  it('whose first answer was lost finds the payment and its wait to be started (ID-02)', async () => {
    const key = unique('order');
    const body = validCreate();
    const first = await client.post('/v1/payments', { headers: { 'idempotency-key': key }, body });
    // The process that answered is gone; another one of the same keys takes the repeat.
    const other = await startTestApi({ database: db.database, env: FAR_HORIZON, keys: api.keys });
    try {
      const again = await other
        .as(client.key)
        .post('/v1/payments', { headers: { 'idempotency-key': key }, body });
      expect([again.status, again.body.id]).toEqual([200, first.body.id]);
      expect(await db.query('SELECT kind FROM outbox WHERE payment_id = $1', [first.body.id])).toEqual([
        { kind: 'start' },
      ]);
    } finally {
      await other.close();
    }
  });
});

describe('a refusal', () => {
  it.each([
    ['an unknown member', { surprise: 1 }, 400],
    ['a wrong amount', { amount: '1999' }, 400],
    ['a time in the past', { execute_at: '2020-01-01T00:00:00Z' }, 422],
    ['a currency outside the table', { currency: 'XXX' }, 422],
  ])('for %s uses up no key: the corrected request is 201 (ID-03)', async (_name, members, status) => {
    const key = unique('order');
    expect((await client.create(members, key)).status).toBe(status);
    const corrected = await client.create({}, key);
    expect([corrected.status, corrected.headers['idempotency-replayed']]).toEqual([201, undefined]);
  });

  it('for a missing scope or credential uses up no key', async () => {
    const reader = await api.client({ tenant: client.tenant, scopes: ['payments:read'] });
    const key = unique('order');
    expect((await reader.create({}, key)).status).toBe(403);
    expect((await api.as(null).create({}, key)).status).toBe(401);
    expect((await client.create({}, key)).status).toBe(201);
  });
});

describe('two tenants', () => {
  it('may use one key, for equal and for different payments, and never meet (ID-04)', async () => {
    const [a, b] = [await api.client(), await api.client({ scopes: ALL_SCOPES })];
    const same = { execute_at: '2090-03-01T10:00:00Z' };
    const mine = await a.create(same, '1');
    const theirs = await b.create(same, '1');
    const third = await (await api.client()).create({ ...same, amount: 5 }, '1');
    expect([mine.status, theirs.status, third.status]).toEqual([201, 201, 201]);
    expect(new Set([mine.body.id, theirs.body.id, third.body.id]).size).toBe(3);
    expect((await b.get(`/v1/payments/${mine.body.id}`)).status).toBe(404);
    expect((await b.post(`/v1/payments/${mine.body.id}/cancel`)).status).toBe(404);
    expect((await a.get(`/v1/payments/${mine.body.id}`)).body.state).toBe('scheduled');
  });
});
