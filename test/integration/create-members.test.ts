import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAR_HORIZON, startTestApi, validCreate, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

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

const send = (body: string) =>
  client.post('/v1/payments', { headers: { 'idempotency-key': unique('order') }, body });
const withMember = (member: string): string => `${JSON.stringify(validCreate()).slice(0, -1)},${member}}`;
const countRows = async (): Promise<number> =>
  (
    await db.query<{ n: number }>('SELECT count(*)::integer AS n FROM payment WHERE tenant_id = $1', [
      client.tenant,
    ])
  )[0]?.n ?? -1;

describe('members that no client may write', () => {
  it.each([
    'state',
    'id',
    'created_at',
    'tenant_id',
    'version',
    'provider_key',
    'constructor',
    'lane',
    'created_by',
  ])('%s is 400 unknown_member, and its value is not echoed (SE-02)', async (name) => {
    const before = await countRows();
    const answer = await send(withMember(`"${name}":"planted-value"`));
    expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
    expect(answer.body.errors).toEqual([{ pointer: '', code: 'unknown_member' }]);
    expect(answer.text).not.toContain('planted-value');
    expect(await countRows()).toBe(before);
  });

  it('__proto__ is 400 at every depth, plain or escaped (SE-02)', async () => {
    for (const member of [
      '"__proto__":{"state":"succeeded"}',
      '"\\u005f_proto__":{}',
      '"metadata":{"__proto__":"x"}',
    ]) {
      const answer = await send(withMember(member));
      expect([answer.status, answer.body.code]).toEqual([400, 'body_forbidden_member']);
    }
    expect(({} as Record<string, unknown>)['state']).toBeUndefined();
  });

  it('leave the row at its defaults: a legal create next to them is untouched (SE-02)', async () => {
    const { body } = await client.create({ metadata: { state: 'succeeded', constructor: 'x' } });
    expect(body.metadata).toEqual({ state: 'succeeded', constructor: 'x' });
    const [row] = await db.query('SELECT state, version, tenant_id FROM payment WHERE id = $1', [body.id]);
    expect(row).toEqual({ state: 'scheduled', version: 1, tenant_id: client.tenant });
  });

  it('are refused by the other commands too', async () => {
    const { body } = await client.create();
    const path = `/v1/payments/${body.id}`;
    const operator = await api.person(client.tenant);
    for (const command of ['cancel', 'hold', 'release', 'escalate']) {
      const answer = await operator.post(`${path}/${command}`, { body: { state: 'cancelled' } });
      expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
    }
    const answer = await client.post(`${path}/reschedule`, {
      headers: { 'if-match': '"v1"' },
      body: { execute_at: '2090-03-01T00:00:00Z', amount: 1 },
    });
    expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
    expect((await client.get(path)).body.version).toBe(1);
  });
});

describe('text that could not be stored or shown', () => {
  it.each([
    ['NUL', '"reference":"a\\u0000b"', 'body_forbidden_text'],
    ['a lone surrogate', '"reference":"\\ud800"', 'body_forbidden_text'],
    ['a member twice', '"reference":"a","reference":"a"', 'body_duplicate_member'],
    ['nesting past 8', `"metadata":${'['.repeat(9)}${']'.repeat(9)}`, 'body_too_deep'],
    ['a control character', '"reference":"a\\u0007"', 'validation_failed'],
    ['text that is not composed', '"description":"e\\u0301"', 'validation_failed'],
    ['65 characters of reference', `"reference":"${'r'.repeat(65)}"`, 'validation_failed'],
    ['141 characters of description', `"description":"${'d'.repeat(141)}"`, 'validation_failed'],
    [
      '21 pairs of metadata',
      `"metadata":${JSON.stringify(Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`k${i}`, ''])))}`,
      'validation_failed',
    ],
    ['a card number', '"metadata":{"card":"4111 1111 1111 1111"}', 'validation_failed'],
    ['a number in metadata', '"metadata":{"a":1}', 'validation_failed'],
  ])('%s is 400 (SE-02)', async (_name, member, code) => {
    const before = await countRows();
    const answer = await send(withMember(member));
    expect([answer.status, answer.body.code], answer.text).toEqual([400, code]);
    expect(await countRows()).toBe(before);
  });

  it('of the longest allowed length reads back as sent', async () => {
    const members = {
      reference: '💶'.repeat(64),
      description: 'é'.repeat(140),
      metadata: Object.fromEntries(
        Array.from({ length: 20 }, (_, i) => [`${i}`.padEnd(40, 'k'), 'ü'.repeat(200)]),
      ),
      destination: 'a'.repeat(128),
    };
    const { status, body } = await client.create(members);
    expect(status).toBe(201);
    expect(body).toMatchObject(members);
    expect((await client.get(`/v1/payments/${body.id}`)).body).toMatchObject(members);
  });

  it.each(['', 'a'.repeat(129), 'acct 1', 'acct/1', 'ä', '"', "'; DROP TABLE payment; --"])(
    'as a destination, %j, is 400 and not repeated in the answer',
    async (destination) => {
      const answer = await client.create({ destination });
      expect([answer.status, answer.body.errors?.[0]?.pointer]).toEqual([400, '/destination']);
      if (destination.length > 1) expect(answer.text).not.toContain(destination);
    },
  );
});

describe('a body', () => {
  it('of more than 16 KiB is 413 (TP-03)', async () => {
    const answer = await send(withMember(`"description":"${'x'.repeat(17_000)}"`));
    expect([answer.status, answer.body.code]).toEqual([413, 'payload_too_large']);
  });

  it.each([
    ['no JSON', '{', 'body_syntax'],
    ['an array', '[]', 'validation_failed'],
    ['nothing', '', 'body_missing'],
    ['a byte order mark', `\ufeff${JSON.stringify(validCreate())}`, 'body_byte_order_mark'],
  ])('of %s is 400', async (_name, body, code) => {
    const answer = await send(body);
    expect([answer.status, answer.body.code], answer.text).toEqual([400, code]);
  });

  it.each([
    [{ 'content-type': 'text/plain' }],
    [{ 'content-type': 'application/json; charset=latin1' }],
    [{ 'content-encoding': 'gzip' }],
  ])('with %j is 415', async (headers) => {
    const answer = await client.post('/v1/payments', {
      headers: { 'idempotency-key': unique('order'), ...headers },
      body: validCreate(),
    });
    expect([answer.status, answer.body.code], answer.text).toEqual([415, 'unsupported_media_type']);
  });
});
