import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAYMENT_STATES } from '../../src/domain/payment-state.js';
import { Payment, PaymentHistory } from '../../src/payments/schemas/payment.schema.js';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { addEvidence, bringTo } from '../support/payment-states.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;
let operator: Client;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
  operator = await api.person(client.tenant);
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const due = async (): Promise<string> => (await client.create({ execute_at: 'now' })).body.id as string;

describe('a history', () => {
  it('tells every transition, attempt and piece of evidence, oldest first', async () => {
    const id = await due();
    await operator.post(`/v1/payments/${id}/hold`);
    await operator.post(`/v1/payments/${id}/release`);
    await bringTo('unknown', db.database, id);
    await addEvidence(db.database, id, {
      source: 'lookup',
      kind: 'found_other',
      amount: 9_007_199_254_740_993n,
      currency: 'EUR',
    });
    const answer = await client.get(`/v1/payments/${id}/history`);
    expect(answer.status, answer.text).toBe(200);
    const { payment_id, data, has_more } = PaymentHistory.parse(answer.body);
    expect([payment_id, has_more]).toEqual([id, false]);
    expect(
      data.flatMap((e) => (e.kind === 'transition' ? [`${e.seq} ${e.from} ${e.to} ${e.cause}`] : [])),
    ).toEqual([
      '1 null scheduled create',
      '2 scheduled held hold',
      '3 held scheduled release',
      '4 scheduled submitting begin-submission',
      '5 submitting unknown record-outcome',
    ]);
    const times = data.map((entry) => entry.at);
    expect(times).toEqual([...times].sort());
    expect(data.filter((e) => e.kind === 'attempt')).toMatchObject([
      { generation: 1, attempt: 1, phase: 'submit', evidence: 'ambiguous' },
    ]);
    expect(data.filter((e) => e.kind === 'evidence')).toMatchObject([
      { source: 'answer', evidence: 'ambiguous', observed_amount: null },
      // Digits, since no JSON number would keep them.
      { source: 'lookup', observed_amount: '9007199254740993', observed_currency: 'EUR' },
    ]);
    expect(data[0]).toMatchObject({ actor: expect.stringMatching(/^api_key:/), detail: { rule: 'T1' } });
  });

  it.each(PAYMENT_STATES)('of a payment that is %s has the form that is documented', async (state) => {
    const id = await due();
    await bringTo(state, db.database, id);
    const history = PaymentHistory.parse((await client.get(`/v1/payments/${id}/history`)).body);
    const last = history.data.filter((e) => e.kind === 'transition').at(-1);
    expect(last?.kind === 'transition' && last.to).toBe(state);
  });

  it('shows neither the destination nor the provider key', async () => {
    const { body } = await client.create({ execute_at: 'now', destination: 'acct_planted' });
    await bringTo('succeeded', db.database, body.id);
    const [submission] = await db.query<{ provider_key: string }>(
      'SELECT provider_key FROM submission WHERE payment_id = $1',
      [body.id],
    );
    const { text } = await client.get(`/v1/payments/${body.id}/history`);
    expect(text).not.toContain('acct_planted');
    expect(text).not.toContain(submission?.provider_key);
  });

  it('of a payment that does not exist is 404', async () => {
    const answer = await client.get(`/v1/payments/pay_${'a'.repeat(32)}/history`);
    expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
  });
});

describe('a payment that is read', () => {
  it.each(PAYMENT_STATES)('while it is %s has the form that is documented', async (state) => {
    const id = await due();
    await bringTo(state, db.database, id);
    const answer = await client.get(`/v1/payments/${id}`);
    const payment = Payment.parse(answer.body);
    expect([payment.state, answer.headers['etag']]).toEqual([state, `"v${payment.version}"`]);
    const isStarted = !['scheduled', 'held', 'cancelled', 'expired'].includes(state);
    expect(payment.submission_started_at !== null).toBe(isStarted);
    expect(payment.first_call_at !== null).toBe(isStarted);
    expect(payment.next_action_at !== null).toBe(['submitted', 'unknown'].includes(state));
  });

  it('shows its lateness as the distance of its first call from execute_at, in milliseconds', async () => {
    const id = await due();
    expect((await client.get(`/v1/payments/${id}`)).body.lateness_ms).toBeNull();
    await bringTo('submitted', db.database, id);
    const { body } = await client.get(`/v1/payments/${id}`);
    const [row] = await db.query<{ ms: number }>(
      `SELECT floor(extract(epoch FROM (SELECT min(call_started_at) FROM submission_attempt WHERE payment_id = $1)
         - execute_at) * 1000)::double precision AS ms FROM payment WHERE id = $1`,
      [id],
    );
    expect(body.lateness_ms).toBe(row?.ms);
    expect(body.lateness_ms).toBeGreaterThanOrEqual(0);
  });

  it('is 304 while the entity tag in If-None-Match is its own, and whole otherwise', async () => {
    const { body } = await client.create();
    const path = `/v1/payments/${body.id}`;
    for (const tag of ['"v1"', 'W/"v1"', '"x", "v1"', '*']) {
      const answer = await client.get(path, { 'if-none-match': tag });
      expect([tag, answer.status, answer.text, answer.headers['etag']]).toEqual([tag, 304, '', '"v1"']);
    }
    await operator.post(`${path}/hold`);
    for (const tag of ['"v1"', 'v2', 'nonsense', '']) {
      const answer = await client.get(path, { 'if-none-match': tag });
      expect([tag, answer.status, answer.body.version]).toEqual([tag, 200, 2]);
    }
    expect((await client.get(path, { 'if-none-match': '"v2"' })).status).toBe(304);
  });

  it('is refused with 500 when its stored destination does not open, and nothing of it is shown', async () => {
    const { body } = await client.create();
    // Only an owner of the schema can do this: the trigger refuses it to everybody else.
    await db.query('ALTER TABLE payment DISABLE TRIGGER payment_frozen');
    await db.query(
      `UPDATE payment SET destination = set_byte(destination, 20, 1 + get_byte(destination, 20) % 255) WHERE id = $1`,
      [body.id],
    );
    await db.query('ALTER TABLE payment ENABLE ALWAYS TRIGGER payment_frozen');
    const answer = await client.get(`/v1/payments/${body.id}`);
    expect([answer.status, answer.body.code]).toEqual([500, 'internal']);
    expect(answer.text).not.toContain('acct_');
  });
});
