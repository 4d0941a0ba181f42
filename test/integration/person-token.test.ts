import { createHmac, createPublicKey } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type CryptoKey } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { restorePerson, revokePerson } from '../../src/auth/revoked-person.store.js';
import { startTestApi, type ApiAnswer, type TestApi } from '../support/api.js';
import { seedTenant, unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createTestIssuer, type TestIssuer, type TokenSeed } from '../support/people.js';
import { rawRequest } from '../support/raw-http.js';

let db: TestDatabase;
let issuer: TestIssuer;
let api: TestApi;
let tenant: string;
let stranger: CryptoKey;
let strangerPublic: CryptoKey;
/** A server that forged headers point at: nobody may ask it. */
let trap: { readonly url: string; asked: number; close(): void };

beforeAll(async () => {
  db = await createTestDatabase();
  issuer = await createTestIssuer();
  api = await startTestApi({ database: db.database, env: issuer.env });
  tenant = await seedTenant(db.database);
  ({ privateKey: stranger, publicKey: strangerPublic } = await generateKeyPair('EdDSA'));
  trap = await startTrap();
  for (const alg of ['RS256', 'ES384'] as const) await publishKey(alg);
});
afterAll(async () => {
  trap.close();
  await api.close();
  issuer.close();
  await db.drop();
});

const ask = (token: string, path = '/v1/payments'): Promise<ApiAnswer> => api.as(token).get(path);

/** What a refused caller learns, byte by byte but for the request: nothing that depends on why. */
function shown({ status, headers, text }: ApiAnswer): unknown {
  const { date: _date, 'request-id': requestId, ...rest } = headers;
  return { status, headers: rest, text: text.replaceAll(String(requestId), '<request>') };
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

async function startTrap() {
  const jwk = { ...(await exportJWK(strangerPublic)), kid: 'trap', alg: 'EdDSA', use: 'sig' };
  const server = createServer((_request, response) => {
    made.asked++;
    response.end(JSON.stringify({ keys: [jwk] }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const made = { url: `http://127.0.0.1:${port}/keys.json`, asked: 0, close: () => void server.close() };
  return made;
}

/** Rightly signed, under a header that the library would not write. */
function critical(header: Readonly<Record<string, unknown>>): string {
  const { header: usual, claims } = issuer.parts({ tenant });
  const signed = `${part({ ...usual, ...header })}.${part(claims)}`;
  return `${signed}.${issuer.sign(signed)}`;
}

/** Keys of other algorithms that the issuer really has, published before anybody reads its set. */
const others = new Map<string, CryptoKey>();
async function publishKey(alg: 'RS256' | 'ES384'): Promise<void> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  issuer.publish({ ...(await exportJWK(publicKey)), kid: alg, alg, use: 'sig' });
  others.set(alg, privateKey);
}
const signedBy = (alg: 'RS256' | 'ES384'): Promise<string> =>
  issuer.token({ tenant, header: { alg, kid: alg }, signWith: others.get(alg) as CryptoKey });

const with_ = (seed: TokenSeed) => () => issuer.token({ tenant, ...seed });

const ATTACKS: readonly (readonly [string, () => Promise<string> | string])[] = [
  ['alg none', unsigned],
  ['a shared secret made of the public key as text (HS confusion)', () => confused('pem')],
  ['a shared secret made of the public key as JWK (HS confusion)', () => confused('jwk')],
  ['a foreign kid', () => issuer.token({ tenant, header: { kid: 'foreign' }, signWith: stranger })],
  ['our kid over a foreign key', () => issuer.token({ tenant, signWith: stranger })],
  ['no kid', with_({ header: { kid: undefined } })],
  ['a key of its own in the header', async () => issuer.token({ tenant, header: { jwk: issuer.publicJwk, kid: 'x' }, signWith: stranger })], // prettier-ignore
  ['a key of its own in the header, under our kid', async () => issuer.token({ tenant, header: { jwk: await exportJWK(strangerPublic) }, signWith: stranger })],
  ['the address of a key set in the header (jku), under our kid', () => issuer.token({ tenant, header: { jku: trap.url }, signWith: stranger })],
  ['the address of a key set in the header (jku), under its own kid', () => issuer.token({ tenant, header: { jku: trap.url, kid: 'trap' }, signWith: stranger })],
  ['the address of a certificate in the header (x5u)', () => issuer.token({ tenant, header: { x5u: trap.url, kid: 'trap' }, signWith: stranger })],
  ['a certificate in the header (x5c)', () => issuer.token({ tenant, header: { x5c: ['AAAA'] }, signWith: stranger })],
  ['a critical header that nobody here knows', () => critical({ crit: ['exp-hint'], 'exp-hint': 1 })],
  ['a payload that is not encoded (b64)', () => critical({ crit: ['b64'], b64: false })],
  ['an algorithm that we do not take (RS256)', () => signedBy('RS256')],
  ['an algorithm that we do not take (ES384)', () => signedBy('ES384')],
  ['a signature of nothing', async () => `${(await issuer.token({ tenant })).split('.').slice(0, 2).join('.')}.`],
  ['more than 8 KiB, though it is signed', with_({ claims: { groups: 'g'.repeat(8_000) } })],
  ['a life that ends before it begins', with_({ issuedIn: 20, expiresIn: 10 - 600 })],
  ['an end that is a text', with_({ claims: { exp: '9999999999' } })],
  ['a subject that is no text', with_({ claims: { sub: 7 } })],
  ['an empty tenant', with_({ claims: { tenant: '' } })],
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

  it('never makes us ask an address that it names itself', () => {
    expect(trap.asked).toBe(0);
  });

  it('is refused when it comes twice, though it is good: a proxy might have judged another', async () => {
    const token = await issuer.token({ tenant });
    const line = `Authorization: Bearer ${token}`;
    const once = await rawRequest(api.url, ['GET /v1/payments HTTP/1.1', line]);
    const twice = await rawRequest(api.url, ['GET /v1/payments HTTP/1.1', line, line]);
    const joined = await rawRequest(api.url, ['GET /v1/payments HTTP/1.1', `${line}, Bearer ${token}`]);
    expect([once.status, twice.status, joined.status]).toEqual([200, 401, 401]);
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

  it('of a revoked person is refused at once at every process, whatever tenant it names, and taken again when restored', async () => {
    const admin = db.as('payments_admin');
    const second = await startTestApi({ database: db.database, env: issuer.env, keys: api.keys });
    try {
      const subject = 'auth0|mallory+1';
      const old = await issuer.token({ tenant, subject });
      const statuses = async (token: string) => [
        (await ask(token)).status,
        (await second.as(token).get('/v1/payments')).status,
      ];
      expect(await statuses(old)).toEqual([200, 200]);
      await admin.transaction((tx) =>
        revokePerson(tx, { subject, by: 'operator:test', reason: 'suspected' }),
      );
      const from = api.logLines.length;
      expect(await statuses(old)).toEqual([401, 401]);
      expect(api.logLines.slice(from).join('')).toContain('"code":"person_revoked"');
      expect(shown(await ask(old))).toEqual(shown(await api.as(null).get('/v1/payments')));
      expect(await statuses(await issuer.token({ tenant, subject }))).toEqual([401, 401]);
      const elsewhere = await seedTenant(db.database);
      expect(await statuses(await issuer.token({ tenant: elsewhere, subject }))).toEqual([401, 401]);
      const neighbour = await issuer.token({ tenant, subject: 'auth0|mallory+10' });
      expect(await statuses(neighbour)).toEqual([200, 200]);
      await admin.transaction((tx) => restorePerson(tx, subject));
      expect(await statuses(old)).toEqual([200, 200]);
    } finally {
      await second.close();
    }
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
