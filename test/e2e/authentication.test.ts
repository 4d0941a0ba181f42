import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newApiKey } from '../../src/auth/api-key.js';
import { signLocalToken, type LocalIssuer } from '../../src/auth/local-token.js';
import { payments, type Ran } from '../support/command-line.js';
import { startStack, type TemporaryStack } from '../support/stack.js';
import { until } from '../support/until.js';

/** The processes as they are run: what a caller can show from outside. The whole list of attacks: person-token. */

let stack: TemporaryStack;
let issuer: LocalIssuer;
/** The public key, which everybody has. */
let published: string;

beforeAll(async () => {
  stack = await startStack({ workers: 0, apis: 2 });
  const file = JSON.parse(readFileSync(stack.issuer_key_file, 'utf8')) as Record<string, never>;
  issuer = { ...file, privateKey: file['private_key'] } as unknown as LocalIssuer;
  published = readFileSync(new URL(stack.environment['PAYMENTS_OIDC_JWKS'] ?? ''), 'utf8');
});
afterAll(() => stack.stop());

const ops = (...args: string[]): Promise<Ran> => payments(['keys', ...args], stack.environment);

async function ask(credential: string | null, api = 0) {
  const answer = await fetch(`${stack.api_urls[api]}/v1/payments`, {
    headers: credential === null ? {} : { authorization: `Bearer ${credential}` },
  });
  const requestId = answer.headers.get('request-id') ?? '';
  const { date: _date, 'request-id': _id, ...headers } = Object.fromEntries(answer.headers);
  return { status: answer.status, headers, text: (await answer.text()).replaceAll(requestId, '<request>') };
}

type Parts = { header: Record<string, unknown>; claims: Record<string, unknown> };
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token of operator-1, taken apart. */
function partsOf(token: string): Parts {
  const [header, claims] = token
    .split('.', 2)
    .map((text) => JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>);
  return { header: header ?? {}, claims: claims ?? {} };
}
const operator = () => ({ subject: 'operator-1', tenant: 'local', roles: ['operator'] });
const good = (nowMs = Date.now()): string => signLocalToken(issuer, operator(), nowMs);

function unsigned(): string {
  const { header, claims } = partsOf(good());
  return `${part({ ...header, alg: 'none' })}.${part(claims)}.`;
}
function confused(): string {
  const { header, claims } = partsOf(good());
  const text = `${part({ ...header, alg: 'HS256' })}.${part(claims)}`;
  return `${text}.${createHmac('sha256', published).update(text).digest('base64url')}`;
}

const ATTACKS: readonly (readonly [string, () => string])[] = [
  ['a key that was never made', () => newApiKey('test').text],
  ['a live key outside production', () => newApiKey('live').text],
  ['a key with a typing error', () => `${stack.api_keys.client.slice(0, -1)}${stack.api_keys.client.endsWith('a') ? 'b' : 'a'}`], // prettier-ignore
  ['alg none', unsigned],
  ['a shared secret made of the public key (HS confusion)', confused],
  ['a foreign kid', () => signLocalToken({ ...issuer, kid: 'foreign' }, operator(), Date.now())],
  ['an expired token', () => good(Date.now() - 20 * 60_000)],
  ['another audience', () => signLocalToken({ ...issuer, audience: 'other' }, operator(), Date.now())],
  ['another issuer', () => signLocalToken({ ...issuer, issuer: 'http://other' }, operator(), Date.now())],
  ['a token for a tenant that does not exist', () => signLocalToken(issuer, { ...operator(), tenant: 'nobody' }, Date.now())], // prettier-ignore
];

describe('a caller', () => {
  it('is let in by a key of a client and by a token of the issuer', async () => {
    expect((await ask(stack.api_keys.client)).status).toBe(200);
    expect((await ask(good(), 1)).status).toBe(200);
  });

  it.each(ATTACKS)('is refused with the one 401 that says nothing: %s', async (_what, forge) => {
    const nobody = await ask(null);
    expect(nobody.status).toBe(401);
    for (const api of [0, 1]) expect(await ask(forge(), api)).toEqual(nobody);
  });
});

describe('a key made by the command line', () => {
  it('opens at once, at both APIs, and is refused at both within its 5 s once it is revoked', async () => {
    const ran = await ops('create', '--tenant', 'local', '--name', 'e2e', '--role', 'client', '--json');
    expect(ran.exitCode, ran.err).toBe(0);
    const { id, text } = (ran.json() as { key: { id: string; text: string } }).key;
    for (const api of [0, 1]) expect((await ask(text, api)).status).toBe(200);
    expect((await ops('revoke', id)).exitCode).toBe(0);
    const nobody = await ask(null);
    for (const api of [0, 1]) {
      await until(
        'the refusal of the revoked key',
        async () => (await ask(text, api)).status,
        (status) => status === 401,
        10_000,
      );
      expect(await ask(text, api)).toEqual(nobody);
    }
    for (const name of ['api', 'api-2']) expect(stack.log(name)).toContain('"event":"login_failed"');
    for (const name of ['api', 'api-2']) expect(stack.log(name)).not.toContain(text.slice(21, 60));
  });
});

describe('a person whose access is taken away by the command line', () => {
  it('is refused at both APIs from the next request on, and let in again when it is given back', async () => {
    const people = (...args: string[]): Promise<Ran> => payments(['people', ...args], stack.environment);
    const leaver = signLocalToken(issuer, { ...operator(), subject: 'leaver' }, Date.now());
    const statuses = async () => [(await ask(leaver, 0)).status, (await ask(leaver, 1)).status];
    expect(await statuses()).toEqual([200, 200]);
    expect((await people('revoke', '--subject', 'leaver', '--reason', 'left_company')).exitCode).toBe(0);
    const nobody = await ask(null);
    for (const api of [0, 1]) expect(await ask(leaver, api)).toEqual(nobody);
    expect((await ask(good())).status).toBe(200);
    for (const name of ['api', 'api-2']) expect(stack.log(name)).toContain('"code":"person_revoked"');
    expect((await people('restore', '--subject', 'leaver')).exitCode).toBe(0);
    expect(await statuses()).toEqual([200, 200]);
  });
});
