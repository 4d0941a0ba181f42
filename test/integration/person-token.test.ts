import { createHmac, createPublicKey } from 'node:crypto';
import { generateKeyPair, type CryptoKey } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type ApiAnswer, type TestApi } from '../support/api.js';
import { seedTenant, unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createTestIssuer, type TestIssuer, type TokenSeed } from '../support/people.js';

let db: TestDatabase;
let issuer: TestIssuer;
let api: TestApi;
let tenant: string;
let stranger: CryptoKey;

beforeAll(async () => {
  db = await createTestDatabase();
  issuer = await createTestIssuer();
  api = await startTestApi({ database: db.database, env: issuer.env });
  tenant = await seedTenant(db.database);
  stranger = (await generateKeyPair('EdDSA')).privateKey;
});
afterAll(async () => {
  await api.close();
  issuer.close();
  await db.drop();
});

const ask = (token: string, path = '/v1/payments'): Promise<ApiAnswer> => api.as(token).get(path);

/** What a refused caller learns: nothing that depends on why. */
function shown(answer: ApiAnswer): unknown {
  const { request_id: _r, instance: _i, ...body } = answer.body as Record<string, unknown>;
  return { status: answer.status, body, challenge: answer.headers['www-authenticate'] };
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token that says `alg: none` and is not signed. */
function unsigned(): string {
  const { header, claims } = issuer.parts({ tenant });
  return `${part({ ...header, alg: 'none' })}.${part(claims)}.`;
}

/** Signed with HMAC under the public key, which everybody has. */
function confused(format: 'jwk' | 'pem'): string {
  const { header, claims } = issuer.parts({ tenant });
  const signed = `${part({ ...header, alg: 'HS256' })}.${part(claims)}`;
  const pem = createPublicKey({ key: issuer.publicJwk as never, format: 'jwk' }).export({
    type: 'spki',
    format: 'pem',
  });
  const secret = format === 'pem' ? pem : JSON.stringify(issuer.publicJwk);
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

const with_ = (seed: TokenSeed) => () => issuer.token({ tenant, ...seed });

const ATTACKS: readonly (readonly [string, () => Promise<string> | string])[] = [
  ['alg none', unsigned],
  ['a shared secret made of the public key as text (HS confusion)', () => confused('pem')],
  ['a shared secret made of the public key as JWK (HS confusion)', () => confused('jwk')],
  ['a foreign kid', () => issuer.token({ tenant, header: { kid: 'foreign' }, signWith: stranger })],
  ['our kid over a foreign key', () => issuer.token({ tenant, signWith: stranger })],
  ['no kid', with_({ header: { kid: undefined } })],
  ['a key of its own in the header', async () => issuer.token({ tenant, header: { jwk: issuer.publicJwk, kid: 'x' }, signWith: stranger })], // prettier-ignore
  ['expired 31 s ago', with_({ issuedIn: -600, expiresIn: -31 })],
  ['not valid for another minute', with_({ claims: { nbf: Math.floor(Date.now() / 1_000) + 3_600 } })],
  ['issued in the future', with_({ issuedIn: 60, expiresIn: 600 })],
  ['another audience', with_({ claims: { aud: 'other' } })],
  ['no audience', with_({ claims: { aud: undefined } })],
  ['another issuer', with_({ claims: { iss: 'https://issuer.test/' } })],
  ['an identity token (typ JWT)', with_({ header: { typ: 'JWT' } })],
  ['no typ', with_({ header: { typ: undefined } })],
  ['a life of 15 min and 1 s', with_({ expiresIn: 901 })],
  ['no end', with_({ claims: { exp: undefined } })],
  ['no beginning', with_({ claims: { iat: undefined } })],
  ['a tenant that does not exist', with_({ tenant: 'nobody-knows' })],
  ['no tenant', with_({ claims: { tenant: undefined } })],
  ['two tenants', with_({ claims: { tenant: ['a', 'b'] } })],
  ['no subject', with_({ claims: { sub: undefined } })],
  ['a subject of two lines', with_({ subject: 'ada\nperson:bob' })],
  ['a changed claim', async () => {
    const [header, claims, signature] = (await issuer.token({ tenant, roles: ['approver'] })).split('.');
    const changed = { ...(JSON.parse(Buffer.from(claims ?? '', 'base64url').toString()) as object), roles: ['operator'] };
    return [header, part(changed), signature].join('.');
  }],
  ['parts that are no JSON', () => 'a.b.c'],
]; // prettier-ignore

describe('a token of a person', () => {
  it('lets its person in, with the tenant and the scopes that it says', async () => {
    const token = await issuer.token({ tenant });
    expect((await ask(token)).status).toBe(200);
    const [authorization] = [`bearer ${token}`];
    expect((await api.as(null).get('/v1/payments', { authorization })).status).toBe(200);
  });

  it('is taken until 30 s after its end, and 30 s before its beginning', async () => {
    expect((await ask(await issuer.token({ tenant, issuedIn: -600, expiresIn: -20 }))).status).toBe(200);
    expect((await ask(await issuer.token({ tenant, issuedIn: 20, expiresIn: 600 }))).status).toBe(200);
  });

  it('may live for 15 minutes', async () => {
    expect((await ask(await issuer.token({ tenant, expiresIn: 900 }))).status).toBe(200);
  });

  it.each(ATTACKS)('is refused with the one 401 that says nothing: %s', async (_what, forge) => {
    const from = api.logLines.length;
    const answer = await ask(await forge());
    expect(shown(answer)).toEqual(shown(await api.as(null).get('/v1/payments')));
    expect(answer.status).toBe(401);
    expect(api.logLines.slice(from).join('')).toContain('"event":"login_failed"');
  });

  it('of another tenant finds nothing of this one (ID-04)', async () => {
    const client = await api.client({ tenant });
    const made = await client.create();
    const path = `/v1/payments/${made.body.id as string}`;
    const other = await seedTenant(db.database);
    expect((await ask(await issuer.token({ tenant }), path)).status).toBe(200);
    const foreign = await ask(await issuer.token({ tenant: other }), path);
    expect([foreign.status, foreign.body.code]).toEqual([404, 'not_found']);
  });

  it('opens what its roles open and no more: 403', async () => {
    const id = `pay_${'a'.repeat(32)}`;
    const hold = async (roles: readonly string[]) => {
      const token = await issuer.token({ tenant, roles });
      return (await api.as(token).post(`/v1/payments/${id}/hold`)).status;
    };
    expect(await hold(['operator'])).toBe(404);
    expect(await hold(['approver', 'operator'])).toBe(404);
    expect(await hold(['approver'])).toBe(403);
    expect(await hold(['payments:operate', 'constructor', 'admin'])).toBe(403);
    expect(await hold([])).toBe(403);
    const create = await api
      .as(await issuer.token({ tenant }))
      .post('/v1/payments', { headers: { 'idempotency-key': unique('k') }, body: {} });
    expect(create.status).toBe(403);
  });

  it('is the same person whatever key of the issuer signed it', async () => {
    const client = await api.client({ tenant });
    const made = await client.create();
    const id = made.body.id as string;
    const token = await issuer.token({ tenant, subject: 'grace' });
    expect((await api.as(token).post(`/v1/payments/${id}/hold`)).status).toBe(200);
    const history = await client.get(`/v1/payments/${id}/history`);
    expect(history.text).toContain('"actor":"person:grace"');
  });
});

describe('each algorithm', () => {
  it.each(['ES256', 'PS256'] as const)('%s is taken, from the key that is for it', async (alg) => {
    const own = await createTestIssuer(alg);
    const second = await startTestApi({ database: db.database, env: own.env, keys: api.keys });
    try {
      expect((await second.as(await own.token({ tenant })).get('/v1/payments')).status).toBe(200);
      expect((await second.as(await issuer.token({ tenant })).get('/v1/payments')).status).toBe(401);
    } finally {
      await second.close();
      own.close();
    }
  });
});

describe('without an issuer', () => {
  it('no token opens anything', async () => {
    const alone = await startTestApi({ database: db.database });
    try {
      expect((await alone.as(await issuer.token({ tenant })).get('/v1/payments')).status).toBe(401);
    } finally {
      await alone.close();
    }
  });

  it('that can be reached, people are neither let in nor refused: 503', async () => {
    const away = await startTestApi({
      database: db.database,
      env: { ...issuer.env, PAYMENTS_OIDC_JWKS: 'http://127.0.0.1:9/jwks' },
    });
    try {
      const answer = await away.as(await issuer.token({ tenant })).get('/v1/payments');
      expect([answer.status, answer.body.code]).toEqual([503, 'issuer_unavailable']);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    } finally {
      await away.close();
    }
  });
});

describe('an API key', () => {
  it('cannot be given what people do, and could do nothing with it: a key is no person', async () => {
    const client = await api.client({ tenant });
    const give = () =>
      db.query(`UPDATE api_key SET scopes = array_append(scopes, 'payments:resolve') WHERE tenant_id = $1`, [
        tenant,
      ]);
    await expect(give()).rejects.toThrow(/api_key_scopes_of_machines/);
    await db.query(`ALTER TABLE api_key DROP CONSTRAINT api_key_scopes_of_machines`);
    await give();
    const fresh = await startTestApi({ database: db.database, env: issuer.env, keys: api.keys });
    try {
      const answer = await fresh.as(client.key).post(`/v1/reviews/pay_${'a'.repeat(32)}/own`);
      expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
    } finally {
      await fresh.close();
    }
  });
});
