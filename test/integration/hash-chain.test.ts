import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { paymentIn, step } from '../support/payment-states.js';

let db: TestDatabase;
let id: string;
beforeAll(async () => {
  db = await createTestDatabase();
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  id = await paymentIn('returned', db.database, { tenant, lane });
});
afterAll(() => db.drop());

interface Row {
  seq: number;
  tenant_id: string;
  from_state: string | null;
  to_state: string;
  cause: string;
  actor: string;
  at: string;
  detail: string;
  hash: Buffer;
}

const rowsOf = (paymentId: string): Promise<Row[]> =>
  db.query<Row>(
    `SELECT seq, tenant_id, from_state, to_state, cause, actor, detail, hash,
        to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at
       FROM payment_transition WHERE payment_id = $1 ORDER BY seq`,
    [paymentId],
  );

function hashOf(paymentId: string, row: Row, previous: Buffer): Buffer {
  const lines = ['transition/v1', paymentId, row.seq, row.tenant_id, row.from_state ?? 'none', row.to_state];
  const text = [...lines, row.cause, row.actor, row.at, row.detail].join('\n');
  return createHash('sha256').update(previous).update(text, 'utf8').digest();
}

describe('the hash chain of a payment', () => {
  it('joins each transition to the one before, as anybody can compute it', async () => {
    const rows = await rowsOf(id);
    expect(rows.map((row) => row.to_state)).toEqual(['scheduled', 'submitting', 'succeeded', 'returned']);
    let previous: Buffer = Buffer.alloc(0);
    for (const row of rows) {
      expect(row.hash.equals(hashOf(id, row, previous)), `transition ${row.seq}`).toBe(true);
      previous = row.hash;
    }
  });

  it('is computed and timed by the database, whatever the writer says', async () => {
    const tenant = await seedTenant(db.database);
    const lane = await seedLane(db.database);
    const other = await paymentIn('scheduled', db.database, { tenant, lane });
    await db.query(
      `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, at, hash)
       VALUES ($1, 2, $2, 'scheduled', 'held', 'hold', 'test', '2000-01-01Z', $3)`,
      [other, tenant, Buffer.from('chosen')],
    );
    const [first, second] = await rowsOf(other);
    if (!first || !second) throw new Error('a transition is missing');
    expect(second.at > first.at).toBe(true);
    expect(second.hash.equals(hashOf(other, second, first.hash))).toBe(true);
  });

  it('covers text outside ASCII byte by byte', async () => {
    const tenant = await seedTenant(db.database);
    const lane = await seedLane(db.database);
    const other = await paymentIn('scheduled', db.database, { tenant, lane, actor: 'api_key:é€😀' });
    const [first] = await rowsOf(other);
    if (!first) throw new Error('a transition is missing');
    expect(first.hash.equals(hashOf(other, first, Buffer.alloc(0)))).toBe(true);
  });

  it.each(['actor', 'detail'])(
    'refuses a line break in the %s, which would join two fields',
    async (column) => {
      const tenant = await seedTenant(db.database);
      const lane = await seedLane(db.database);
      const other = await paymentIn('scheduled', db.database, { tenant, lane });
      const values = { actor: 'test', detail: '{}', [column]: 'a\nb' };
      const text = `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, detail)
      VALUES ($1, 2, $2, 'scheduled', 'held', 'hold', $3, $4)`;
      await expect(db.query(text, [other, tenant, values.actor, values.detail])).rejects.toThrow('one_line');
    },
  );

  it('never goes back in time', async () => {
    const tenant = await seedTenant(db.database);
    const lane = await seedLane(db.database);
    const other = await paymentIn('scheduled', db.database, { tenant, lane });
    for (let i = 0; i < 20; i++) {
      await step(db.database, other, { rule: 'T3' });
      await step(db.database, other, { rule: 'T4' });
    }
    const times = (await rowsOf(other)).map((row) => row.at);
    expect(times).toHaveLength(41);
    expect(times).toEqual([...times].sort());
  });
});
