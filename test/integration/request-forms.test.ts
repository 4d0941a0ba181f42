import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROBLEMS, type ProblemCode } from '../../src/domain/domain-error.js';
import { startTestApi, validCreate, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;
const BODY = JSON.stringify(validCreate());

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
  await client.create();
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const count = async (): Promise<number> =>
  (await db.query<{ n: number }>('SELECT count(*)::integer AS n FROM payment'))[0]?.n ?? -1;

/** Writes bytes as they are, one Latin-1 character a byte, and reads until the server closes or is silent. */
function exchange(bytes: string, answers = 1): Promise<string> {
  const { hostname, port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname, () => socket.write(Buffer.from(bytes, 'latin1')));
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      if (statuses(text).length >= answers && isWhole(text)) socket.end();
    });
    socket.on('close', () => resolve(text)).on('error', reject);
  });
}
const statuses = (text: string): readonly number[] =>
  [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status));
const codes = (text: string): readonly string[] =>
  [...text.matchAll(/"code":"(\w+)"/g)].map(([, code]) => code ?? '');
/** True when the last answer has come to its end. */
function isWhole(text: string): boolean {
  const last = text.slice(text.lastIndexOf('HTTP/1.'));
  const end = last.indexOf('\r\n\r\n');
  const length = /^content-length: (\d+)/im.exec(last)?.[1];
  return end !== -1 && (length === undefined || last.length >= end + 4 + Number(length));
}

interface Form {
  readonly line?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
}
const bytesOf = ({ line, headers = [], body = '' }: Form): string =>
  [
    line ?? 'POST /v1/payments HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${client.key}`,
    'Content-Type: application/json',
    ...headers,
    '',
    body,
  ].join('\r\n');

/** One problem of the catalogue and nothing behind it; nothing was created. */
async function expectRefused(form: Form, code: ProblemCode): Promise<void> {
  const before = await count();
  const text = await exchange(bytesOf(form));
  expect([statuses(text), codes(text)], text).toEqual([[PROBLEMS[code].status], [code]]);
  expect(text).toMatch(/^content-type: application\/problem\+json\r$/im);
  expect(text).toMatch(/^request-id: [0-9a-f-]{36}\r$/im);
  expect(await count()).toBe(before);
}

describe('one request that could be read as two', () => {
  const smuggled = 'GET /v1/payments HTTP/1.1\r\nHost: a\r\n\r\n';
  const key = (): string => `Idempotency-Key: ${unique('k')}`;
  it.each<[string, readonly string[], string]>([
    [
      'Content-Length and Transfer-Encoding',
      ['Content-Length: 4', 'Transfer-Encoding: chunked'],
      `0\r\n\r\n${smuggled}`,
    ],
    [
      'Transfer-Encoding and Content-Length',
      ['Transfer-Encoding: chunked', 'Content-Length: 4'],
      `0\r\n\r\n${smuggled}`,
    ],
    ['two different lengths', ['Content-Length: 2', 'Content-Length: 40'], '{}'],
    ['a list of lengths', ['Content-Length: 2, 2'], '{}'],
    ['a length with a sign', ['Content-Length: +2'], '{}'],
    ['a length in hex', ['Content-Length: 0x2'], '{}'],
    ['a negative length', ['Content-Length: -2'], '{}'],
    ['chunked that is not the last coding', ['Transfer-Encoding: chunked, identity'], '0\r\n\r\n'],
    ['chunked twice over', ['Transfer-Encoding: chunked, chunked'], '0\r\n\r\n'],
    ['a coding that looks like chunked', ['Transfer-Encoding: xchunked'], '0\r\n\r\n'],
    ['white space before the colon', ['Transfer-Encoding : chunked'], '0\r\n\r\n'],
    ['a folded header', ['X-A: b', ' c'], ''],
    ['a header line without a colon', ['Nonsense'], ''],
    ['a bare line feed in the headers', ['X-A: b\nContent-Length: 3'], '{}'],
    ['NUL in a header', ['X-A: b\0c'], ''],
    ['a chunk size that is no number', ['Transfer-Encoding: chunked'], 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a chunk size with a sign', ['Transfer-Encoding: chunked'], '-2\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than its size', ['Transfer-Encoding: chunked'], '2\r\n{}x\r\n0\r\n\r\n'],
    ['a chunk size past any number', ['Transfer-Encoding: chunked'], 'ffffffffffffffffff\r\n{}\r\n'],
  ])('for %s is refused, and nothing behind it is answered', async (_what, headers, body) => {
    const before = await count();
    const text = await exchange(bytesOf({ headers: [key(), ...headers], body }));
    expect(statuses(text), text).toHaveLength(1);
    expect(statuses(text)[0], text).toBeGreaterThanOrEqual(400);
    expect(statuses(text)[0], text).toBeLessThan(500);
    expect(text).toMatch(/^connection: close\r$/im);
    expect(text).toContain('application/problem+json');
    expect(await count()).toBe(before);
  });

  it('for chunk extensions is read as without them, and too many are refused', async () => {
    const headers = [key(), 'Transfer-Encoding: chunked', 'Connection: close'];
    const size = BODY.length.toString(16);
    expect(
      statuses(await exchange(bytesOf({ headers, body: `${size};a=b\r\n${BODY}\r\n0\r\n\r\n` }))),
    ).toEqual([201]);
    await expectRefused(
      { headers, body: `${size};${'a'.repeat(20_000)}\r\n${BODY}\r\n` },
      'payload_too_large',
    );
  });
});

describe('several requests on one connection', () => {
  it('are answered in their order, each by itself', async () => {
    const create = (): string => bytesOf({ headers: [`Idempotency-Key: ${unique('k')}`, `Content-Length: ${BODY.length}`], body: BODY }); // prettier-ignore
    const absent = bytesOf({ line: `GET /v1/payments/pay_${'a'.repeat(32)} HTTP/1.1` });
    const none = `GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
    const text = await exchange(create() + absent + create() + none, 4);
    expect(statuses(text)).toEqual([201, 404, 201, 404]);
  });

  it('end with the first that cannot be read: those before it have their own answers', async () => {
    const before = await count();
    const headers = [`Idempotency-Key: ${unique('k')}`, `Content-Length: ${BODY.length}`];
    const create = bytesOf({ headers, body: BODY });
    const text = await exchange(`${create}NONSENSE\r\n\r\n${create}`, 3);
    expect(statuses(text), text).toEqual([201]);
    expect(text).toMatch(/^connection: close\r$/im);
    expect(await count()).toBe(before + 1);
  });
});

describe('other forms of a request', () => {
  it('HTTP/1.0 is answered, and its connection closed', async () => {
    const text = await exchange(`GET /v1/payments HTTP/1.0\r\nAuthorization: Bearer ${client.key}\r\n\r\n`);
    expect(statuses(text)).toEqual([200]);
    expect(text).toMatch(/^connection: close\r$/im);
  });

  it.each([
    ['a target that is an authority', 'CONNECT 127.0.0.1:80 HTTP/1.1', 0, ''],
    ['a target without a slash', 'GET v1/payments HTTP/1.1', 400, 'malformed_request'],
    ['two slashes', 'GET //v1/payments HTTP/1.1', 404, 'route_not_found'],
    ['dots on the way', 'GET /v1/../v1/payments HTTP/1.1', 404, 'route_not_found'],
    ['another case', 'GET /V1/PAYMENTS HTTP/1.1', 404, 'route_not_found'],
    ['a semicolon in the path', 'GET /v1/payments;x=1 HTTP/1.1', 404, 'route_not_found'],
    ['an escaped slash', 'GET /v1%2Fpayments HTTP/1.1', 404, 'route_not_found'],
    ['an unknown method', 'BREW /v1/payments HTTP/1.1', 400, 'malformed_request'],
    ['a method of another protocol', 'PRI * HTTP/2.0', 400, 'malformed_request'],
    ['no version', 'GET /v1/payments', 400, 'malformed_request'],
    ['a version that is none', 'GET /v1/payments HTTP/1.7', 400, 'malformed_request'],
    ['raw bytes above ASCII', 'GET /v1/payments/\xe4 HTTP/1.1', 400, 'malformed_request'],
    ['a tab for a space', 'GET\t/v1/payments HTTP/1.1', 400, 'malformed_request'],
  ] as const)('%s: %s is refused as one problem', async (_what, line, status, code) => {
    const text = await exchange(bytesOf({ line, headers: ['Connection: close'] }));
    expect([statuses(text), codes(text)], text).toEqual(status === 0 ? [[], []] : [[status], [code]]);
  });

  it('an absolute target is read as its path, whatever host it names', async () => {
    const line = 'GET http://elsewhere.example/v1/payments?limit=1 HTTP/1.1';
    const text = await exchange(bytesOf({ line, headers: ['Connection: close'] }));
    expect(statuses(text)).toEqual([200]);
    expect(text).not.toContain('elsewhere');
  });

  it('without a Host, or with a header twice that counts once, is refused', async () => {
    const noHost = await exchange(`GET /v1/payments HTTP/1.1\r\nAuthorization: Bearer ${client.key}\r\n\r\n`);
    expect([statuses(noHost), codes(noHost)]).toEqual([[400], ['malformed_request']]);
    const sized = [`Content-Length: ${BODY.length}`];
    const one = `Idempotency-Key: ${unique('k')}`;
    const two = `Idempotency-Key: ${unique('k')}`;
    await expectRefused({ headers: [...sized, one, two], body: BODY }, 'idempotency_key_invalid');
    await expectRefused({ headers: [...sized, one, one], body: BODY }, 'idempotency_key_invalid');
    await expectRefused({ headers: sized, body: BODY }, 'idempotency_key_missing');
    await expectRefused(
      { headers: [...sized, one, 'Authorization: Bearer x'], body: BODY },
      'unauthenticated',
    );
  });

  it('with a length that is less than what comes is 400, and nothing is created of it', async () => {
    const before = await count();
    const headers = [
      `Idempotency-Key: ${unique('k')}`,
      `Content-Length: ${BODY.length - 1}`,
      'Connection: close',
    ];
    const text = await exchange(bytesOf({ headers, body: BODY }));
    expect([statuses(text), codes(text)], text).toEqual([[400], ['body_syntax']]);
    expect(await count()).toBe(before);
  });

  it('that upgrades or trails is an ordinary request', async () => {
    const upgraded = await exchange(
      bytesOf({ line: 'GET /v1/payments HTTP/1.1', headers: ['Connection: Upgrade, close', 'Upgrade: h2c'] }),
    );
    expect(statuses(upgraded)).toEqual([200]);
    const size = BODY.length.toString(16);
    const trailed = await exchange(
      bytesOf({
        headers: [
          `Idempotency-Key: ${unique('k')}`,
          'Transfer-Encoding: chunked',
          'Trailer: X',
          'Connection: close',
        ],
        body: `${size}\r\n${BODY}\r\n0\r\nX-Tenant: other\r\n\r\n`,
      }),
    );
    expect(statuses(trailed)).toEqual([201]);
  });

  it('with 1,000 headers is 431, or answered as if they were not there', async () => {
    const headers = [...Array.from({ length: 1_000 }, (_, i) => `X-${i}: y`), 'Connection: close'];
    const text = await exchange(bytesOf({ line: 'GET /v1/payments HTTP/1.1', headers }));
    expect([200, 431]).toContain(statuses(text)[0]);
  });
});

describe('a query', () => {
  it.each([
    'limit=1&limit=2',
    'limit[]=1',
    'limit[$gt]=1',
    'a=b',
    `reference=${'a'.repeat(65)}`,
    `cursor=${'A'.repeat(3_000)}`,
    'created_at_from=yesterday',
    '__proto__=1',
    'constructor=1',
    Array.from({ length: 400 }, (_, i) => `a${i}=1`).join('&'),
  ])('of %s is refused as a problem', async (query) => {
    const answer = await client.get(`/v1/payments?${query}`);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.headers['content-type']).toBe('application/problem+json');
  });
});
