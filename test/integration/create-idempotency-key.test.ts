import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAR_HORIZON, startTestApi, validCreate, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { rawRequest, type RawAnswer } from '../support/raw-http.js';

let db: TestDatabase;
let api: TestApi;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database, env: FAR_HORIZON });
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const body = JSON.stringify(validCreate({ execute_at: '2090-03-01T10:00:00Z' }));

/** Sends a create whose key headers are exactly these lines, in Latin-1. */
function createWith(client: Client, ...lines: string[]): Promise<RawAnswer> {
  return rawRequest(
    api.url,
    [
      'POST /v1/payments HTTP/1.1',
      `Authorization: Bearer ${client.key}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      ...lines,
    ],
    body,
  );
}

const idOf = (answer: RawAnswer): string => (JSON.parse(answer.text) as { id: string }).id;
const codeOf = (answer: RawAnswer): string => (JSON.parse(answer.text) as { code: string }).code;
const keysOf = async (tenant: string): Promise<readonly string[]> =>
  (
    await db.query<{ key: string }>(
      'SELECT idempotency_key AS key FROM payment WHERE tenant_id = $1 ORDER BY 1',
      [tenant],
    )
  ).map((row) => row.key);
/** Latin-1 characters that are the bytes of this text in UTF-8. */
const utf8 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

describe('an idempotency key', () => {
  it('is the same key bare, quoted and with spaces around it (ID-08)', async () => {
    const client = await api.client();
    const k = unique('k');
    const answers = [];
    for (const line of [k, `"${k}"`, `  ${k}  `, `\t${k}`, `  "${k}"`]) {
      answers.push(await createWith(client, `Idempotency-Key: ${line}`));
    }
    expect(answers.map((a) => a.status)).toEqual([201, 200, 200, 200, 200]);
    expect(new Set(answers.map(idOf)).size).toBe(1);
    expect(await keysOf(client.tenant)).toEqual([k]);
  });

  it('tells zeros, letter case and an escaped quote apart (ID-08)', async () => {
    const client = await api.client();
    const lines = ['1', '01', '001', 'a', 'A', '"\\""', '0'];
    const answers = [];
    for (const line of lines) answers.push(await createWith(client, `Idempotency-Key: ${line}`));
    expect(answers.map((a) => a.status)).toEqual(lines.map(() => 201));
    expect(new Set(answers.map(idOf)).size).toBe(lines.length);
    expect(await keysOf(client.tenant)).toEqual(['"', '0', '001', '01', '1', 'A', 'a']);
  });

  it.each([
    ['an inner space', 'a b'],
    ['an inner tab', 'a\tb'],
    ['nothing', ''],
    ['only spaces', '   '],
    ['an empty quoted string', '""'],
    ['half a quoted string', '"a'],
    ['256 characters', 'k'.repeat(256)],
    ['10,000 characters', 'k'.repeat(10_000)],
    ['Cyrillic', utf8('ключ')],
    ['an emoji', utf8('💶')],
    ['é as one character', utf8('é')],
    ['é as a letter and a mark', utf8('e\u0301')],
    ['a byte of Latin-1', 'caf\u00e9'],
  ])('with %s is 400, and nothing is stored (ID-06, ID-08)', async (_name, value) => {
    const client = await api.client();
    const answer = await createWith(client, `Idempotency-Key: ${value}`);
    expect(answer.status, answer.text).toBe(400);
    expect(codeOf(answer)).toBe('idempotency_key_invalid');
    expect(await keysOf(client.tenant)).toEqual([]);
  });

  it('given by two headers is 400, also when both are equal (ID-08)', async () => {
    const client = await api.client();
    for (const second of ['b', 'a']) {
      const answer = await createWith(client, 'Idempotency-Key: a', `idempotency-key: ${second}`);
      expect([answer.status, codeOf(answer)]).toEqual([400, 'idempotency_key_invalid']);
    }
    expect(await keysOf(client.tenant)).toEqual([]);
  });

  it('with a carriage return or a line feed cannot be smuggled into another line (ID-08)', async () => {
    const client = await api.client();
    const tamperedLogLine = 'Idempotency-Key: a\r\n{"level":"info"}';
    for (const line of ['Idempotency-Key: a\rb', 'Idempotency-Key: a\nb', tamperedLogLine]) {
      const answer = await createWith(client, line);
      expect(answer.status, answer.text).toBe(400);
    }
    expect(await keysOf(client.tenant)).toEqual([]);
    expect(api.logLines.join('')).not.toContain('{"level":"info"}');
  });

  it('of 255 visible ASCII characters is stored as sent, and works in every operation (ID-06, ID-07)', async () => {
    const longest = await api.client({ tenant: { id: `tenant-${'t'.repeat(200)}-${unique('x')}` } });
    const key = unique('K').padEnd(255, '~!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}');
    const made = await createWith(longest, `Idempotency-Key: ${key}`);
    expect(made.status, made.text).toBe(201);
    expect(await keysOf(longest.tenant)).toEqual([key]);
    const path = `/v1/payments/${idOf(made)}`;
    const operator = await api.person(longest.tenant);
    const steps = [
      await longest.get(path),
      await operator.post(`${path}/hold`),
      await operator.post(`${path}/release`),
      await longest.post(`${path}/reschedule`, {
        headers: { 'if-match': '"v3"' },
        body: { execute_at: '2090-04-01T10:00:00Z' },
      }),
      await longest.get(`${path}/history`),
      await longest.get('/v1/payments'),
      await longest.post(`${path}/cancel`),
    ];
    expect(steps.map((s) => s.status)).toEqual(steps.map(() => 200));
  });

  it('reaches neither a log line nor an answer', async () => {
    const client = await api.client();
    const key = unique('secret-key');
    const made = await client.create({}, key);
    const reused = await client.create({ amount: 5 }, key);
    expect([made.status, reused.status]).toEqual([201, 422]);
    for (const text of [made.text, reused.text, api.logLines.join('')]) expect(text).not.toContain(key);
    expect(api.logLines.join('')).toContain(made.body.id);
  });
});
