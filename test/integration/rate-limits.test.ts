import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/persistence/database.js';
import { blockOf } from '../../src/rate-limits/leased-bucket.js';
import { leaseTokens } from '../../src/rate-limits/lease.store.js';
import { RateLimiter, type LimitedCaller } from '../../src/rate-limits/rate-limiter.js';
import type { LimitedCall, RateLimits } from '../../src/rate-limits/rate-limit.js';
import { setRateLimit } from '../../src/rate-limits/rate-limit-settings.js';
import { startTestApi, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { seedTenant, unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

/** So slow that nothing comes back while a test runs. */
const STILL = 0.001;
const WIDE = { ratePerSecond: 100_000, burst: 100_000 };

let db: TestDatabase;
const apis: TestApi[] = [];

beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(async () => {
  for (const api of apis) await api.close();
  await db.drop();
});

/** A process with a pool of its own under the API's role. */
function limiter(database: Database, byDefault: RateLimits, nowMs = () => performance.now()): RateLimiter {
  return new RateLimiter({
    lease: (request) => leaseTokens(database.ofTenant(request.tenantId), request),
    byDefault,
    nowMs,
    events: { alone: (_name, error) => expect.fail(`Postgres was not asked: ${String(error)}`) },
  });
}

async function admitted(
  of: RateLimiter,
  caller: LimitedCaller,
  times: number,
  call: LimitedCall = 'request',
) {
  const answers = await Promise.all(Array.from({ length: times }, () => of.take(caller, call)));
  return answers.filter(({ kind }) => kind === 'admitted').length;
}

const caller = async (): Promise<LimitedCaller> => ({
  tenantId: await seedTenant(db.database),
  client: unique('api_key:k'),
});

async function start(client: string, tenant: string, env: Record<string, string> = {}): Promise<TestApi> {
  const limits = { PAYMENTS_RATE_LIMIT_CLIENT: client, PAYMENTS_RATE_LIMIT_TENANT: tenant };
  const api = await startTestApi({ database: db.database, env: { ...limits, ...env } });
  apis.push(api);
  return api;
}
const many = (times: number, ask: () => Promise<ApiAnswer>): Promise<ApiAnswer[]> =>
  Promise.all(Array.from({ length: times }, ask));
const count = (answers: readonly ApiAnswer[], status: number): number =>
  answers.filter((answer) => answer.status === status).length;

describe('two processes', () => {
  it('together admit exactly the burst of a client, whoever takes it', async () => {
    const limits = { client: { ratePerSecond: STILL, burst: 50 }, tenant: WIDE };
    const one = limiter(db.as('payments_api', 'one'), limits);
    const two = limiter(db.as('payments_api', 'two'), limits);
    const who = await caller();
    let sum = 0;
    for (let round = 0; round < 10; round++) {
      const [a, b] = await Promise.all([admitted(one, who, 7), admitted(two, who, 7)]);
      sum += a + b;
    }
    expect(sum).toBeLessThanOrEqual(50);
    expect(sum).toBeGreaterThanOrEqual(50 - 2 * blockOf(limits.client));
  });

  it('exceed burst + rate × time by a left-over block each at most (SE-01)', async () => {
    const limits = { client: { ratePerSecond: 100, burst: 100 }, tenant: WIDE };
    const block = blockOf(limits.client);
    const frozen = (): number => 0;
    const one = limiter(db.as('payments_api', 'one'), limits, frozen);
    const two = limiter(db.as('payments_api', 'two'), limits, frozen);
    const who = await caller();
    // Each holds a block; then the bucket rests until it is full.
    expect([await admitted(one, who, 1), await admitted(two, who, 1)]).toEqual([1, 1]);
    await db.query(
      `UPDATE rate_limit_bucket SET tokens = 100, refilled_at = clock_timestamp() + interval '5 seconds'
        WHERE tenant_id = $1 AND bucket LIKE 'client%'`,
      [who.tenantId],
    );
    const sum = (await admitted(one, who, 200)) + (await admitted(two, who, 200));
    expect(sum).toBeGreaterThan(100);
    expect(sum).toBeLessThanOrEqual(100 + 2 * block);
  });

  it('share the limit of a tenant among its clients, and give back what the tenant refused', async () => {
    const client = { ratePerSecond: STILL, burst: 20 };
    const limits = { client, tenant: { ratePerSecond: STILL, burst: 30 } };
    const one = limiter(db.as('payments_api', 'one'), limits);
    const who = await caller();
    const other = { ...who, client: unique('api_key:k') };
    expect(await admitted(one, who, 20)).toBe(20);
    expect(await admitted(one, other, 40)).toBe(10);
    const refused = await one.take(other, 'request');
    expect(refused.states.map(({ name, remaining }) => [name, remaining])).toEqual([
      ['client', 9],
      ['tenant', 0],
    ]);
    expect((await one.take(other, 'request')).states[0]?.remaining).toBe(9);
  });
});

describe('a bucket in Postgres', () => {
  it('fills at its rate on the database’s clock, up to the burst, and not backwards', async () => {
    const tenantId = await seedTenant(db.database);
    const lease = (wanted: number) =>
      leaseTokens(db.as('payments_api').ofTenant(tenantId), {
        tenantId,
        subject: 'client',
        bucket: 'client:x',
        byDefault: { ratePerSecond: 2, burst: 10 },
        wanted,
      });
    const pass = (time: string) =>
      db.query(`UPDATE rate_limit_bucket SET refilled_at = refilled_at - $2::interval WHERE tenant_id = $1`, [
        tenantId,
        time,
      ]);
    expect(await lease(4)).toMatchObject({ granted: 4, left: 6 });
    expect((await lease(20)).granted).toBe(6);
    await pass('3 seconds');
    expect((await lease(20)).granted).toBe(6);
    await pass('1 hour');
    expect((await lease(20)).granted).toBe(10);
    // Whoever comes with an older time than the row holds refills nothing.
    await pass('-5 seconds');
    expect((await lease(20)).granted).toBe(0);
    // A clock that was set back by far starts anew.
    await pass('-1 day');
    expect((await lease(20)).granted).toBe(0);
    await pass('2 seconds');
    expect((await lease(20)).granted).toBe(4);
  });

  it('belongs to one tenant: the API sees and changes no other’s (net 2)', async () => {
    const [mine, theirs] = [await seedTenant(db.database), await seedTenant(db.database)];
    const api = db.as('payments_api');
    const request = { subject: 'client', bucket: 'client:x', byDefault: WIDE, wanted: 1 } as const;
    await leaseTokens(api.ofTenant(theirs), { ...request, tenantId: theirs });
    await expect(leaseTokens(api.ofTenant(mine), { ...request, tenantId: theirs })).rejects.toThrow(
      /row-level/,
    );
    const seen = await api
      .ofTenant(mine)
      .query({ name: 'look', text: 'SELECT 1 FROM rate_limit_bucket WHERE tenant_id = $1' }, [theirs]);
    expect(seen.rowCount).toBe(0);
  });

  it('follows the tenant’s own limit from the next lease on', async () => {
    const limits = { client: WIDE, tenant: WIDE };
    const one = limiter(db.as('payments_api'), limits);
    const who = await caller();
    expect(await admitted(one, who, 10)).toBe(10);
    const own = { tenantId: who.tenantId, subject: 'client', ratePerSecond: STILL, burst: 3 } as const;
    expect(await setRateLimit(db.as('payments_admin'), own)).toBe(true);
    const fresh = limiter(db.as('payments_api'), limits);
    expect(await admitted(fresh, { ...who, client: unique('k') }, 10)).toBe(3);
  });

  it('can be limited by an administrator only, and not for a tenant that does not exist', async () => {
    const own = { tenantId: 'nobody', subject: 'client', ratePerSecond: 1, burst: 3 } as const;
    expect(await setRateLimit(db.as('payments_admin'), own)).toBe(false);
    for (const role of ['payments_api', 'payments_worker', 'payments_read'] as const) {
      await expect(setRateLimit(db.as(role), own)).rejects.toThrow(/permission denied/);
    }
  });
});

describe('the API', () => {
  it('says what is left, and answers 429 with Retry-After when nothing is', async () => {
    const api = await start(`${STILL}/3`, '300/600');
    const client = await api.client();
    const answers: ApiAnswer[] = [];
    for (let i = 0; i < 5; i++) answers.push(await client.get('/v1/payments'));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429]);
    expect(answers[0]?.headers['ratelimit-policy']).toBe('"client";q=3;w=3000, "tenant";q=600;w=2');
    expect(answers[0]?.headers['ratelimit']).toMatch(/^"client";r=2;t=1000, "tenant";r=\d+;t=1$/);
    const refused = answers[3]!;
    expect(refused.headers['ratelimit-policy']).toBe('"client";q=3;w=3000');
    const t = Number(/^"client";r=0;t=(\d+)$/.exec(String(refused.headers['ratelimit']))?.[1]);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(t);
    expect(refused.headers['retry-after']).toMatch(/^\d+$/);
    expect(refused.body).toMatchObject({ code: 'rate_limited', status: 429, retryable: true });
    expect(refused.headers['content-type']).toBe('application/problem+json');
  });

  it('uses up no idempotency key by a 429: the repeat is a create', async () => {
    const api = await start(`${STILL}/1`, '300/600');
    const poor = await api.client();
    await poor.get('/v1/payments');
    const key = unique('order');
    expect((await poor.create({}, key)).status).toBe(429);
    const rich = (await api.client({ tenant: poor.tenant })) satisfies Client;
    const answer = await rich.create({}, key);
    expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([201, undefined]);
  });

  it('lets a client that used up its requests still cancel', async () => {
    const api = await start(`${STILL}/2`, '300/600');
    const client = await api.client();
    const { body } = await client.create();
    const path = `/v1/payments/${body.id}`;
    expect((await client.get(path)).status).toBe(200);
    expect((await client.get(path)).status).toBe(429);
    const cancelled = await client.post(`${path}/cancel`);
    expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelled']);
    expect(cancelled.headers['ratelimit-policy']).toMatch(/^"client-cancel";/);
  });

  it('counts requests that are refused later, and none of those it does not know', async () => {
    const api = await start(`${STILL}/3`, '300/600');
    const client = await api.client({ scopes: ['payments:read', 'payments:create'] });
    const nobody = api.as(null);
    const stranger = await nobody.get('/v1/payments');
    expect([stranger.status, stranger.headers['ratelimit']]).toEqual([401, undefined]);
    for (const body of ['{', '[]', '{"a":1}']) {
      const answer = await client.post('/v1/payments', { body, headers: { 'idempotency-key': unique('k') } });
      expect([answer.status, answer.headers['ratelimit'] !== undefined]).toEqual([400, true]);
    }
    expect((await client.post('/v1/payments', { body: '{' })).status).toBe(429);
  });

  it('counts a client whatever address it claims to come from (SE-01)', async () => {
    for (const proxies of ['', '127.0.0.0/8']) {
      const api = await start(`${STILL}/10`, '300/600', { PAYMENTS_TRUSTED_PROXIES: proxies });
      const client = await api.client();
      let next = 0;
      const plain = await many(10, () => client.get('/v1/payments'));
      const forged = await many(15, () =>
        client.get('/v1/payments', { 'x-forwarded-for': `198.51.100.${next++}` }),
      );
      expect([count(plain, 200), count(forged, 429)]).toEqual([10, 15]);
    }
  });

  it('counts credentials of one tenant together, at every process (SE-01)', async () => {
    const apis = [await start('300/600', `${STILL}/20`), await start('300/600', `${STILL}/20`)];
    const first = await apis[0]!.client();
    const keys = [first, ...(await Promise.all([1, 2].map(() => apis[0]!.client({ tenant: first.tenant }))))];
    const answers = await many(60, () => keys[Math.floor(Math.random() * 3)]!.get('/v1/payments'));
    expect(count(answers, 200)).toBe(20);
    expect(count(answers, 429)).toBe(40);
  });

  it('goes on by its own count when the buckets cannot be asked, and says so in its log', async () => {
    const api = await start(`${STILL}/5`, '300/600');
    const client = await api.client();
    await db.query('ALTER TABLE rate_limit_bucket RENAME TO rate_limit_bucket_away');
    try {
      const answers = await many(12, () => client.get('/v1/payments'));
      expect([count(answers, 200), count(answers, 429)]).toEqual([5, 7]);
      expect(api.logLines.filter((line) => line.includes('rate_limit_alone'))).not.toEqual([]);
    } finally {
      await db.query('ALTER TABLE rate_limit_bucket_away RENAME TO rate_limit_bucket');
    }
  });
});
