import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAR_HORIZON, startTestApi, type Client, type TestApi } from '../support/api.js';
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

/** A create whose amount is exactly this text of JSON, and whose further members are `more`. */
function createWithAmount(literal: string, more = '', key = unique('order')) {
  return client.post('/v1/payments', {
    headers: { 'idempotency-key': key },
    body: `{"amount":${literal},"currency":"EUR","destination":"acct_1","execute_at":"2090-03-01T10:00:00Z"${more}}`,
  });
}

const storedAmount = async (id: string): Promise<bigint | undefined> =>
  (await db.query<{ amount: bigint }>('SELECT amount FROM payment WHERE id = $1', [id]))[0]?.amount;
const countRows = async (): Promise<number> =>
  (
    await db.query<{ n: number }>('SELECT count(*)::integer AS n FROM payment WHERE tenant_id = $1', [
      client.tenant,
    ])
  )[0]?.n ?? -1;

describe('an amount', () => {
  it.each([
    '-1', '0', '-0', '00', '01', '1e3', '1E3', '1.0', '1.', '.5', '1e21', '"100"', '"1e3"', '+5', '"１００"', '１００',
    '1000000000000', '9007199254740993', '99999999999999999999', 'true', 'null', '[]', '{}', '[1]', 'NaN', 'Infinity',
    '0x10', '1_000', '19.99', '8.20', '78.4', '"19.99"', '0.30000000000000004', '1.005', '1999.0', '1.999e3',
  ])('of %s is 400 and no row (AM-02, AM-03)', async (literal) => {
    const before = await countRows();
    const answer = await createWithAmount(literal);
    expect(answer.status, answer.text).toBe(400);
    expect(['validation_failed', 'body_syntax']).toContain(answer.body.code);
    expect(await countRows()).toBe(before);
  }); // prettier-ignore

  it('given twice is 400, also when both are equal or one is written with an escape (AM-03)', async () => {
    for (const again of [',"amount":1', ',"amount":1999', ',"\\u0061mount":1999']) {
      const answer = await createWithAmount('1999', again);
      expect([answer.status, answer.body.code]).toEqual([400, 'body_duplicate_member']);
    }
  });

  it.each(['1', '1999', '999999999999'])('of %s is kept to the last digit', async (literal) => {
    const answer = await createWithAmount(literal);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.text).toContain(`"amount":${literal},`);
    expect(await storedAmount(answer.body.id)).toBe(BigInt(literal));
  });

  it('of zero or less is refused by the table itself, whoever inserts it (AM-03)', async () => {
    const { body } = await createWithAmount('1');
    for (const amount of ['0', '-1']) {
      await expect(
        db.query(
          `INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency,
             destination, destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at,
             not_after, state, created_by)
           SELECT id || 'x', tenant_id, idempotency_key || 'x', fingerprint, 1, $2, currency, destination,
             destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at, not_after, state,
             created_by FROM payment WHERE id = $1`,
          [body.id, amount],
        ),
      ).rejects.toMatchObject({ constraint: 'payment_amount_positive' });
    }
  });
});

describe('a currency', () => {
  it.each([
    ['JPY', 500],
    ['KRW', 1],
    ['KWD', 1234],
    ['USD', 1],
    ['CLP', 7],
  ])('of %s counts its own minor units: %d is stored as it is (AM-01)', async (currency, amount) => {
    const answer = await client.create({ currency, amount });
    expect([answer.status, answer.body.currency, answer.body.amount]).toEqual([201, currency, amount]);
    expect(await storedAmount(answer.body.id)).toBe(BigInt(amount));
  });

  it.each(['usd', 'UsD', 'USD ', ' USD', 'US', 'USDD', 'U5D', '', 'ＵＳＤ', 840, null])(
    'written as %j is 400 (AM-04)',
    async (currency) => {
      const answer = await client.create({ currency });
      expect([answer.status, answer.body.code], answer.text).toEqual([400, 'validation_failed']);
    },
  );

  it.each(['CLF', 'XXX', 'XTS', 'XAU', 'BTC', 'ZWL', 'HRK', 'ZZZ'])(
    'that is well formed and in no table, %s, is 422 (AM-01, AM-04)',
    async (currency) => {
      const before = await countRows();
      const answer = await client.create({ currency });
      expect([answer.status, answer.body.code]).toEqual([422, 'currency_unsupported']);
      expect(await countRows()).toBe(before);
    },
  );

  it('in the wrong case, then in the right one under the same key, is 400, then 201 (AM-04)', async () => {
    const key = unique('order');
    expect((await client.create({ currency: 'usd' }, key)).status).toBe(400);
    expect((await client.create({ currency: 'XXX' }, key)).status).toBe(422);
    expect((await client.create({ currency: 'USD' }, key)).status).toBe(201);
  });
});
