import fc from 'fast-check';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROBLEM_CODES, PROBLEMS, type ProblemCode } from '../../src/domain/domain-error.js';
import { startTestApi, validCreate, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { hostileRequest, type HostileRequest } from '../support/hostile-input.js';
import { rawRequest } from '../support/raw-http.js';

/** Inputs of one run; a seed is printed when one of them fails. */
const INPUTS = 3_000;
const AT_ONCE = 25;

let db: TestDatabase;
let api: TestApi;
let client: Client;
const agent = new Agent({ connections: 2 * AT_ONCE });

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
});
afterAll(async () => {
  await agent.close();
  await api.close();
  await db.drop();
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

async function send({ method, path, headers, body }: HostileRequest): Promise<Answer> {
  const answer = await request(api.url + path, {
    method: method as 'GET',
    dispatcher: agent,
    headers: { authorization: `Bearer ${client.key}`, ...headers },
    body,
  });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

/** Everything that an answer of this API has, whatever was asked. */
function expectWellFormed({ status, headers, text }: Answer, method: string): void {
  expect(status, text).toBeLessThan(500);
  expect(headers['request-id']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  expect(headers['cache-control']).toBe('no-store');
  expect(headers['x-content-type-options']).toBe('nosniff');
  if (status < 400) return;
  expect(headers['content-type']).toBe('application/problem+json');
  if (status === 405) expect(headers['allow']).toMatch(/^[A-Z]+(, [A-Z]+)*$/);
  if (method === 'HEAD') return;
  const problem = JSON.parse(text) as Record<string, unknown>;
  const code = problem['code'] as ProblemCode;
  expect(PROBLEM_CODES).toContain(code);
  expect(problem).toMatchObject({
    type: `urn:problem:${code}`,
    title: PROBLEMS[code].title,
    detail: PROBLEMS[code].detail,
    status,
    request_id: headers['request-id'],
    instance: `urn:request:${String(headers['request-id'])}`,
  });
  expect(PROBLEMS[code].status).toBe(status);
}

describe('any input', () => {
  it(`is answered below 500 and in one form: ${INPUTS} of them`, async () => {
    const batch = fc.array(hostileRequest, { minLength: AT_ONCE, maxLength: AT_ONCE });
    await fc.assert(
      fc.asyncProperty(batch, async (requests) => {
        const answers = await Promise.all(requests.map(send));
        for (const [i, answer] of answers.entries()) expectWellFormed(answer, requests[i]!.method);
      }),
      { numRuns: INPUTS / AT_ONCE, endOnFailure: true },
    );
    // Whatever it was, the service is well.
    expect((await client.create()).status).toBe(201);
  });
});

describe('what a client sent', () => {
  /** A word that stands nowhere in our texts. */
  const mark = (): string => unique('MaRk').replace('-', 'x');

  /** Every way into an error: each puts the mark somewhere and says what it needs. */
  const WAYS: readonly ((word: string) => Promise<{ text: string; headers: object }>)[] = [
    (word) => client.get(`/v1/${word}`),
    (word) => client.get(`/v1/payments/${word}`),
    (word) => client.get(`/v1/payments/${word}%FF`),
    (word) => client.get(`/v1/payments/${word.repeat(10)}`),
    (word) => client.get(`/v1/payments?${word}=1`),
    (word) => client.get(`/v1/payments?state=${word}`),
    (word) => client.get(`/v1/payments?cursor=${word}`),
    (word) => client.get(`/v1/payments?reference=${word.repeat(500)}`),
    (word) => client.create({ [word]: 1 }),
    (word) => client.create({ currency: word }),
    (word) => client.create({ amount: word }),
    (word) => client.create({ destination: `${word} ${word}` }),
    (word) => client.create({ execute_at: word }),
    (word) => client.create({ provider: word.toLowerCase() }),
    (word) => client.create({ metadata: { [word]: 5 } }),
    (word) => client.create({ metadata: { [word.repeat(5)]: word } }),
    (word) => client.create({ reference: `${word}\u0007` }),
    (word) => client.create({}, `${word} ${word}`),
    (word) =>
      client.post('/v1/payments', { body: `{"${word}"`, headers: { 'idempotency-key': unique('k') } }),
    (word) => client.post('/v1/payments', { body: `{"${word}":1,"${word}":2}` }),
    (word) => client.post('/v1/payments', { body: `"${word}\\u0000"` }),
    (word) => client.post('/v1/payments', { body: validCreate(), headers: { 'content-type': word } }),
    (word) => client.post('/v1/payments', { body: validCreate(), headers: { 'content-encoding': word } }),
    (word) => client.post('/v1/payments', { body: `"${word.repeat(2_000)}"` }),
    (word) => client.post(`/v1/payments/${word}/cancel`, { headers: { 'if-match': word } }),
    (word) => api.as(word).get('/v1/payments'),
    (word) => api.as(`ps_test_${word}`).get('/v1/payments'),
    (word) => client.get('/v1/payments', { 'x-forwarded-for': word, 'request-id': word, origin: word }),
    (word) => rawRequest(api.url, [`${word} /v1/payments HTTP/1.1`]),
    (word) => rawRequest(api.url, [`GET /v1/payments HTTP/1.1`, `Expect: ${word}`]),
    (word) => rawRequest(api.url, [`GET /${word} HTTP/9.9`]),
    (word) => rawRequest(api.url, ['GET /v1/payments HTTP/1.1', `${word}: ${word.repeat(1_500)}`]),
    (word) => rawRequest(api.url, ['GET /v1/payments HTTP/1.1', `Transfer-Encoding: ${word}`], word),
    (word) =>
      api.as(null).post('/v1/webhooks/simulated', { body: word, headers: { 'webhook-signature': word } }),
    (word) => api.as(null).post(`/v1/webhooks/${word}`, { body: word }),
  ];

  it('comes back in no error, no header and no log line, whichever way it came', async () => {
    const words: string[] = [];
    const from = api.logLines.length;
    for (const way of WAYS) {
      const word = mark();
      words.push(word);
      const { text, headers } = await way(word);
      const said = `${text} ${JSON.stringify(headers)}`.toLowerCase();
      expect(said.includes(word.toLowerCase()), `${way.toString()}: ${said}`).toBe(false);
    }
    await client.create();
    const logged = api.logLines.slice(from).join('\n').toLowerCase();
    expect(words.filter((word) => logged.includes(word.toLowerCase()))).toEqual([]);
  });
});
