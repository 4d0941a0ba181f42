import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROBLEMS } from '../../src/domain/domain-error.js';
import { ALL_SCOPES, startTestApi, type Client, type TestApi } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { rawRequest, type RawAnswer } from '../support/raw-http.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;
let paymentId: string;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
  paymentId = (await client.create({ reference: 'a;b' })).body.id as string;
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const auth = (): string => `Authorization: Bearer ${client.key}`;
const ask = (method: string, target: string, ...headers: string[]): Promise<RawAnswer> =>
  rawRequest(api.url, [`${method} ${target} HTTP/1.1`, auth(), ...headers, 'Content-Length: 0']);

/** A problem of the catalogue, whole, about this request and about nothing the client sent. */
function expectProblem(answer: RawAnswer, status: number, code: keyof typeof PROBLEMS): void {
  expect(answer.status, answer.text).toBe(status);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.headers['x-content-type-options']).toBe('nosniff');
  const requestId = answer.headers['request-id'];
  expect(JSON.parse(answer.text)).toMatchObject({
    type: `urn:problem:${code}`,
    title: PROBLEMS[code].title,
    detail: PROBLEMS[code].detail,
    retryable: PROBLEMS[code].retryable,
    status,
    code,
    request_id: requestId,
    instance: `urn:request:${requestId}`,
  });
}

describe('an id in a path', () => {
  it.each([
    ['%', 400, 'malformed_url'],
    ['%F', 400, 'malformed_url'],
    ['%FF', 400, 'malformed_url'],
    ['%C0%AF', 400, 'malformed_url'],
    ['%ZZ', 400, 'malformed_url'],
    ['%2F', 404, 'not_found'],
    ['%25', 404, 'not_found'],
    ['a%20b', 404, 'not_found'],
    ['..', 404, 'not_found'],
    ['%2e%2e', 404, 'not_found'],
    [';', 404, 'not_found'],
    ['a;b', 404, 'not_found'],
    ['pay_', 404, 'not_found'],
    ['PAY_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 404, 'not_found'],
    ["'%20OR%201=1--", 404, 'not_found'],
    ['x'.repeat(101), 414, 'uri_too_long'],
  ] as const)('of %s is %d and no payment (ID-09)', async (id, status, code) => {
    expectProblem(await ask('GET', `/v1/payments/${id}`), status, code);
    expectProblem(await ask('POST', `/v1/payments/${id}/cancel`), status, code);
    expect((await client.get(`/v1/payments/${paymentId}`)).body.state).toBe('scheduled');
  });

  it('followed by more than our routes have is no route (ID-09)', async () => {
    expectProblem(await ask('GET', `/v1/payments/${paymentId}/x`), 404, 'route_not_found');
    expectProblem(await ask('GET', `/v1/payments/${paymentId}/`), 404, 'route_not_found');
    expectProblem(await ask('GET', `/v1/payments/x/${paymentId}/history`), 404, 'route_not_found');
  });

  it('with a query or a fragment behind it is still that id', async () => {
    expect((await ask('GET', `/v1/payments/${paymentId}?x=1`)).status).toBe(200);
  });
});

describe('text in the reference filter', () => {
  it.each(['%', '%F', '%FF', '%C0%AF', 'a%ZZ'])('that does not decode, %s, is 400 (ID-09)', async (text) => {
    expectProblem(await ask('GET', `/v1/payments?reference=${text}`), 400, 'malformed_url');
  });

  it.each(['%2F', '%25', '..', '%3B', 'a%20b', '+', '%23', '%3F'])(
    'that decodes, %s, finds nothing and no other payment (ID-09)',
    async (text) => {
      const answer = await ask('GET', `/v1/payments?reference=${text}`);
      expect([answer.status, JSON.parse(answer.text).data], answer.text).toEqual([200, []]);
    },
  );

  it('that names a payment finds it, whatever it is made of', async () => {
    const { body } = await client.get('/v1/payments?reference=a%3Bb');
    expect(body.data.map((p: { id: string }) => p.id)).toEqual([paymentId]);
  });
});

describe('every refusal has one form', () => {
  it('for routes and methods that do not exist, with the Allow header on 405', async () => {
    expectProblem(await ask('GET', '/'), 404, 'route_not_found');
    expectProblem(await ask('GET', '/v1/payment'), 404, 'route_not_found');
    const put = await ask('PUT', '/v1/payments');
    expectProblem(put, 405, 'method_not_allowed');
    expect(put.headers['allow']).toBe('GET, HEAD, POST');
    const get = await ask('GET', `/v1/payments/${paymentId}/cancel`);
    expectProblem(get, 405, 'method_not_allowed');
    expect(get.headers['allow']).toBe('POST');
    for (const method of ['DELETE', 'PATCH', 'TRACE', 'OPTIONS']) {
      expectProblem(await ask(method, `/v1/payments/${paymentId}`), 405, 'method_not_allowed');
    }
  });

  it('for what never became a request', async () => {
    expectProblem(await ask('GET', '/v1/payments', 'X: ' + 'x'.repeat(20_000)), 431, 'header_too_large');
    expectProblem(await rawRequest(api.url, ['GET /v1/payments HTTP/9.9', auth()]), 400, 'malformed_request');
    expectProblem(await ask('GET', `/v1/payments?x=${'y'.repeat(5_000)}`), 414, 'uri_too_long');
  });

  it('for a fault nobody expected: 500 without a word of it', async () => {
    await db.query('ALTER TABLE payment RENAME TO payment_away');
    try {
      const answer = await ask('GET', `/v1/payments/${paymentId}`);
      expectProblem(answer, 500, 'internal');
      expect(answer.text).not.toMatch(/payment_away|relation|SELECT|at .*\.ts/);
      const lines = api.logLines.filter((line) => line.includes(String(answer.headers['request-id'])));
      expect(lines.join('')).toContain('"level":"error"');
      expect(lines.join('')).not.toContain('relation');
    } finally {
      await db.query('ALTER TABLE payment_away RENAME TO payment');
    }
  });

  it('never repeats what the client sent', async () => {
    const answer = await client.create({ destination: 'planted destination', 'planted-member': 1 });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain('planted');
  });
});

describe('one line is logged per request', () => {
  it('with the fields of the allow-list and nothing a client chose', async () => {
    const from = api.logLines.length;
    const quiet = await api.client({ scopes: ALL_SCOPES });
    const { body, headers } = await quiet.create({
      destination: 'acct_planted',
      reference: 'planted-reference',
      description: 'planted description',
      metadata: { planted: 'planted-value' },
    });
    await quiet.get(`/v1/payments/${body.id}`);
    await quiet.get('/v1/payments?reference=planted-reference');
    await quiet.get('/planted/path');
    await expect
      .poll(() => api.logLines.slice(from).filter((l) => l.includes('request_done')).length)
      .toBe(4);
    const lines = api.logLines.slice(from).map((line) => JSON.parse(line) as Record<string, unknown>);
    const done = lines.filter((line) => line['event'] === 'request_done');
    expect(done[0]).toMatchObject({
      level: 'info',
      name: 'api',
      request_id: headers['request-id'],
      payment_id: body.id,
      tenant_ref: `p-${quiet.tenant}`,
      operation: 'POST /v1/payments',
      code: 201,
      duration_ms: expect.any(Number),
    });
    expect(done.map((line) => line['operation'])).toEqual([
      'POST /v1/payments',
      'GET /v1/payments/:id',
      'GET /v1/payments',
      'GET unrouted',
    ]);
    expect(JSON.stringify(lines)).not.toContain('planted');
  });
});
