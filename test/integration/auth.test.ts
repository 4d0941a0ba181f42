import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiKey, revokeApiKey, type NewApiKey } from '../../src/auth/api-key.store.js';
import { Authenticator } from '../../src/auth/authenticator.js';
import { newApiKey } from '../../src/auth/api-key.js';
import { isScopeOfKeys, SCOPES, type Scope } from '../../src/auth/scopes.js';
import type { Database } from '../../src/persistence/database.js';
import { startTestApi, testKeys, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { seedTenant, unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { productionSettings } from '../support/production.js';
import { rawRequest } from '../support/raw-http.js';

let db: TestDatabase;
let api: TestApi;
let admin: Database;
let client: Client;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  admin = db.as('payments_admin', 'keys');
  client = await api.client();
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const make = (key: Partial<NewApiKey> & { tenantId: string }) =>
  createApiKey(admin, api.keys, {
    name: unique('key'),
    scopes: ['payments:read'],
    mode: 'test',
    ...key,
  });

/** What a refused caller learns, byte by byte but for the request: nothing that depends on why. */
function shown({ status, headers: all, text }: ApiAnswer): unknown {
  const { date: _date, 'request-id': requestId, ...headers } = all;
  return { status, headers, text: text.replaceAll(String(requestId), '<request>') };
}

describe('a caller who is not known', () => {
  it('gets one and the same 401, whatever is wrong', async () => {
    const other = newApiKey('test').text;
    const live = newApiKey('live').text;
    const typo = client.key.slice(0, -1) + (client.key.endsWith('a') ? 'b' : 'a');
    const expired = await make({ tenantId: client.tenant, lifeDays: 1 });
    await db.query(`UPDATE api_key SET expires_at = clock_timestamp() WHERE id = $1`, [expired.id]);
    const revoked = await make({ tenantId: client.tenant });
    await revokeApiKey(admin, revoked.id);
    // The id of a key that exists, with a secret of our own and a right check.
    const forged = await make({ tenantId: client.tenant });
    await db.query(`UPDATE api_key SET digest = decode(repeat('00', 32), 'hex') WHERE id = $1`, [forged.id]);
    const answers = [
      await api.as(null).get('/v1/payments'),
      ...(await Promise.all(
        [
          other,
          live,
          typo,
          expired.text,
          revoked.text,
          forged.text,
          'x',
          'ps_test_',
          client.key.toUpperCase(),
        ].map((key) => api.as(key).get('/v1/payments')),
      )),
      await api.as(null).get('/v1/payments', { authorization: `Basic ${client.key}` }),
      await api.as(null).get('/v1/payments', { authorization: client.key }),
      await api.as(null).get('/v1/payments', { authorization: 'Bearer' }),
      await api.as(null).get('/v1/payments', { authorization: `Bearer ${client.key} ${client.key}` }),
    ];
    const first = shown(answers[0] as ApiAnswer) as { headers: Record<string, string> };
    expect(first).toMatchObject({ status: 401, text: expect.stringContaining('"code":"unauthenticated"') });
    expect(first.headers['www-authenticate']).toBe('Bearer');
    for (const answer of answers) expect(shown(answer)).toEqual(first);
  });

  it('is refused before anything else of the request is looked at', async () => {
    for (const body of ['{', '[]', 'x'.repeat(100_000)]) {
      const answer = await api.as(null).post('/v1/payments', { body });
      expect(answer.status).toBe(401);
    }
    const bad = await rawRequest(api.url, ['GET /v1/payments?limit=nonsense HTTP/1.1']);
    expect(bad.status).toBe(401);
  });

  it('leaves a line in the log that names the reason and the request, and no secret', async () => {
    const from = api.logLines.length;
    const key = newApiKey('test').text;
    const answer = await api.as(key).get('/v1/payments');
    const lines = api.logLines.slice(from).join('');
    expect(lines).toContain('"event":"login_failed"');
    expect(lines).toContain('"code":"unknown"');
    expect(lines).toContain(String(answer.headers['request-id']));
    expect(lines).not.toContain(key.slice(21, 73));
  });
});

describe('a key', () => {
  it('works with the scheme in any case and spaces before it', async () => {
    for (const authorization of [`bearer ${client.key}`, `BEARER   ${client.key}`]) {
      expect((await api.as(null).get('/v1/payments', { authorization })).status).toBe(200);
    }
  });

  it('is stored as a digest only', async () => {
    const made = await make({ tenantId: client.tenant });
    const [row] = await db.query<{ text: string; digest: Buffer }>(
      `SELECT api_key::text AS text, digest FROM api_key WHERE id = $1`,
      [made.id],
    );
    expect(row?.digest).toHaveLength(32);
    expect(row?.text).not.toContain(made.text.slice(21, 60));
  });

  it('that was revoked stops at every process within 5 s, counted on a clock of the test', async () => {
    const made = await make({ tenantId: client.tenant });
    let nowMs = 1_000;
    const authenticator = new Authenticator(db.as('payments_api'), api.keys.pepper, 'test', () => nowMs);
    const kind = async () => (await authenticator.authenticate(`Bearer ${made.text}`)).kind;
    expect(await kind()).toBe('authenticated');
    await revokeApiKey(admin, made.id);
    nowMs += 4_999;
    expect(await kind()).toBe('authenticated');
    nowMs += 1;
    expect(await kind()).toBe('refused');
  });

  it('that expires stops when it does, not when its cached copy is old', async () => {
    const made = await make({ tenantId: client.tenant });
    await db.query(`UPDATE api_key SET expires_at = clock_timestamp() + interval '2 seconds' WHERE id = $1`, [
      made.id,
    ]);
    let nowMs = 1_000;
    const authenticator = new Authenticator(db.as('payments_api'), api.keys.pepper, 'test', () => nowMs);
    const kind = async () => (await authenticator.authenticate(`Bearer ${made.text}`)).kind;
    expect(await kind()).toBe('authenticated');
    nowMs += 2_000;
    await db.query(`UPDATE api_key SET expires_at = clock_timestamp() WHERE id = $1`, [made.id]);
    expect(await kind()).toBe('refused');
  });

  it('under an old pepper works until that pepper is gone', async () => {
    const old = await make({ tenantId: client.tenant });
    const rotated = testKeys();
    const pepper = {
      active: 'new',
      keys: { ...api.keys.pepper.keys, new: rotated.pepper.keys['test-1'] ?? '' },
    };
    const both = new Authenticator(db.as('payments_api'), pepper, 'test');
    expect((await both.authenticate(`Bearer ${old.text}`)).kind).toBe('authenticated');
    const onlyNew = new Authenticator(
      db.as('payments_api'),
      { active: 'new', keys: { new: pepper.keys.new } },
      'test',
    );
    expect(await onlyNew.authenticate(`Bearer ${old.text}`)).toMatchObject({ reason: 'pepper_missing' });
  });

  it('for tests opens nothing in production, and a live one nothing elsewhere', async () => {
    const live = await make({ tenantId: client.tenant, mode: 'live' });
    const settings = await productionSettings();
    const env = { ...settings.env, PAYMENTS_DATABASE_URL: 'postgres://127.0.0.1/never-used' };
    const production = await startTestApi({ database: db.database, keys: api.keys, env });
    try {
      expect((await production.as(client.key).get('/v1/payments')).status).toBe(401);
      expect((await production.as(live.text).get('/v1/payments')).status).toBe(200);
      expect((await api.as(live.text).get('/v1/payments')).status).toBe(401);
    } finally {
      await production.close();
      settings.remove();
    }
  });

  it('cannot be made without a tenant, for more than a year, or with what only people may do', async () => {
    const refused = (key: Partial<NewApiKey> & { tenantId: string }, why: RegExp) =>
      expect(make(key)).rejects.toThrow(why);
    await refused({ tenantId: 'nobody' }, /no tenant nobody/);
    await refused({ tenantId: client.tenant, lifeDays: 366 }, /at most 365 days/);
    await refused({ tenantId: client.tenant, lifeDays: 0 }, /more than 0/);
    await refused({ tenantId: client.tenant, lifeDays: Number.NaN }, /more than 0/);
    await refused({ tenantId: client.tenant, scopes: [] }, /without a scope/);
    for (const scope of ['payments:operate', 'payments:resolve', 'lanes:operate'] as const) {
      await refused({ tenantId: client.tenant, scopes: [scope] }, /no person/);
    }
    await refused({ tenantId: client.tenant, scopes: ['payments:all' as Scope] }, /no scope payments:all/);
  });

  it('has at most one sibling of its name, also when many are made at once', async () => {
    const tenantId = await seedTenant(db.database);
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => make({ tenantId, name: 'rotated' })),
    );
    expect(results.filter((r) => r.status === 'fulfilled')).toHaveLength(2);
    const [row] = await db.query<{ id: string }>(`SELECT id FROM api_key WHERE tenant_id = $1 LIMIT 1`, [
      tenantId,
    ]);
    await revokeApiKey(admin, row?.id ?? '');
    await expect(make({ tenantId, name: 'rotated' })).resolves.toMatchObject({ text: expect.any(String) });
    await expect(make({ tenantId, name: 'another' })).resolves.toMatchObject({ text: expect.any(String) });
  });
});

describe('a scope', () => {
  const id = `pay_${'a'.repeat(32)}`;
  const ROUTES: readonly (readonly [Scope, (as: Client) => Promise<ApiAnswer>])[] = [
    ['payments:create', (as) => as.create()],
    ['payments:read', (as) => as.get('/v1/payments')],
    ['payments:read', (as) => as.get(`/v1/payments/${id}`)],
    ['payments:read', (as) => as.get(`/v1/payments/${id}/history`)],
    ['payments:cancel', (as) => as.post(`/v1/payments/${id}/cancel`)],
    [
      'payments:update',
      (as) =>
        as.post(`/v1/payments/${id}/reschedule`, {
          headers: { 'if-match': '"v1"' },
          body: { execute_at: 'now' },
        }),
    ],
    ['payments:operate', (as) => as.post(`/v1/payments/${id}/hold`)],
    ['payments:operate', (as) => as.post(`/v1/payments/${id}/release`)],
    ['payments:operate', (as) => as.post(`/v1/payments/${id}/escalate`)],
    ['payments:read', (as) => as.get('/v1/reviews')],
    ['payments:read', (as) => as.get(`/v1/reviews/${id}`)],
    ['payments:resolve', (as) => as.post(`/v1/reviews/${id}/own`)],
    ['payments:resolve', (as) => as.post(`/v1/payments/${id}/resolutions`)],
  ];

  it('opens its own routes and no others: 403 for each of them', async () => {
    for (const scope of SCOPES.filter(isScopeOfKeys)) {
      const holder = await api.client({ tenant: client.tenant, scopes: [scope] });
      for (const [needed, call] of ROUTES) {
        const answer = await call(holder);
        if (needed === scope) expect([201, 200, 404]).toContain(answer.status);
        else expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
      }
    }
  });
});

describe('who guesses', () => {
  /** An API of its own behind a proxy that is believed, so that a test may come from any address. */
  async function behindProxy(): Promise<TestApi> {
    return startTestApi({
      database: db.database,
      keys: api.keys,
      env: { PAYMENTS_TRUSTED_PROXIES: '127.0.0.1' },
    });
  }
  const from = (address: string) => ({ 'x-forwarded-for': address });

  it('is held back at his address with 429 and Retry-After, and nobody else is (SE-01)', async () => {
    const guarded = await behindProxy();
    try {
      const guess = () => guarded.as(newApiKey('test').text).get('/v1/payments', from('192.0.2.1'));
      const statuses = new Set<number>();
      for (let i = 0; i < 60; i++) statuses.add((await guess()).status);
      expect([...statuses]).toEqual([401]);
      const held = await guess();
      expect([held.status, held.body.code]).toEqual([429, 'rate_limited']);
      expect(Number(held.headers['retry-after'])).toBeGreaterThan(0);
      expect((await guarded.as(client.key).get('/v1/payments', from('198.51.100.7'))).status).toBe(200);
      // The same credential at the address of the guesses: it was good a moment ago.
      expect((await guarded.as(client.key).get('/v1/payments', from('192.0.2.1'))).status).toBe(200);
      expect(guarded.logLines.join('')).toContain('"event":"login_limited"');
    } finally {
      await guarded.close();
    }
  });

  it('does not lock the owner of a key out by its id', async () => {
    const guarded = await behindProxy();
    try {
      // The id and a right check, and a secret that is wrong: the digest is another's for a moment.
      const { id, text } = await make({ tenantId: client.tenant });
      const [row] = await db.query<{ digest: Buffer }>(`SELECT digest FROM api_key WHERE id = $1`, [id]);
      await db.query(`UPDATE api_key SET digest = decode(repeat('00', 32), 'hex') WHERE id = $1`, [id]);
      const answers: number[] = [];
      for (let i = 0; i < 12; i++) {
        answers.push((await guarded.as(text).get('/v1/payments', from('192.0.2.1'))).status);
      }
      expect(answers).toEqual([...Array<number>(10).fill(401), 429, 429]);
      await db.query(`UPDATE api_key SET digest = $2 WHERE id = $1`, [id, row?.digest]);
      const seen = new Set<number>();
      const owner = async (): Promise<number> => {
        const { status } = await guarded.as(text).get('/v1/payments', from('198.51.100.7'));
        seen.add(status);
        return status;
      };
      // The digest that was wrong is remembered for up to 5 s.
      await expect.poll(owner, { interval: 1_000, timeout: 10_000 }).toBe(200);
      expect(seen).not.toContain(429);
    } finally {
      await guarded.close();
    }
  });

  it('gets no more tries by naming other addresses when no proxy is believed (SE-01)', async () => {
    const direct = await startTestApi({ database: db.database, keys: api.keys });
    try {
      const statuses: number[] = [];
      for (let i = 0; i < 70; i++) {
        statuses.push(
          (await direct.as(newApiKey('test').text).get('/v1/payments', from(`192.0.2.${i}`))).status,
        );
      }
      expect(statuses.slice(0, 60).every((status) => status === 401)).toBe(true);
      expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
    } finally {
      await direct.close();
    }
  });
});
