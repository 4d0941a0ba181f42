import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAYMENT_STATES, type PaymentState } from '../../src/domain/payment-state.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { openAttempt, openGeneration, paymentIn } from '../support/payment-states.js';

/** What may change after the insert; every other column, also one added later, must be frozen. */
const MOVING = [
  ...[
    'state',
    'version',
    'execute_at',
    'not_after',
    'submission_started_at',
    'provider_ref',
    'next_action_at',
  ],
  ...['last_woken_at', 'wake_after', 'armed_by', 'updated_at'],
];

/** SQL for another value of a column, by its type. */
const OTHER: Readonly<Record<string, (column: string) => string>> = {
  text: (c) => `coalesce(${c}, '') || 'x'`,
  bytea: (c) => `${c} || '\\x00'::bytea`,
  bigint: (c) => `${c} + 1`,
  smallint: (c) => `${c} + 1`,
  integer: (c) => `${c} + 1`,
  jsonb: () => `'{"other":"value"}'::jsonb`,
  'timestamp with time zone': (c) => `${c} + interval '1 s'`,
};

let db: TestDatabase;
let columns: readonly { name: string; type: string }[];
const ids = {} as Record<PaymentState, string>;
beforeAll(async () => {
  db = await createTestDatabase();
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  for (const state of PAYMENT_STATES) ids[state] = await paymentIn(state, db.database, { tenant, lane });
  columns = await db.query(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_name = 'payment'`,
  );
});
afterAll(() => db.drop());

const constraintOf = (promise: Promise<unknown>): Promise<string | undefined> =>
  promise.then(
    () => 'accepted',
    (error: unknown) => (error as { constraint?: string }).constraint,
  );

describe('the head row of a payment', () => {
  it('keeps every column that was accepted with it, in every state', async () => {
    const frozen = columns.filter((column) => !MOVING.includes(column.name));
    expect(frozen.map((c) => c.name)).toEqual(expect.arrayContaining(['amount', 'currency', 'destination']));
    for (const { name, type } of frozen) {
      const other = OTHER[type]?.(name);
      if (other === undefined) throw new Error(`no other value for ${type}`);
      for (const state of PAYMENT_STATES) {
        const text = `UPDATE payment SET ${name} = ${other} WHERE id = $1`;
        expect(await constraintOf(db.query(text, [ids[state]])), `${name} in ${state}`).toBe(
          'payment_frozen',
        );
      }
    }
  });

  it('keeps money and destination also when they come along with a lawful move', async () => {
    const text = `UPDATE payment SET state = 'held', version = version + 1, amount = amount * 10 WHERE id = $1`;
    expect(await constraintOf(db.query(text, [ids.scheduled]))).toBe('payment_frozen');
  });

  it('moves its times while it is scheduled and in no other state', async () => {
    for (const column of ['execute_at', 'not_after']) {
      for (const state of PAYMENT_STATES) {
        const text = `UPDATE payment SET ${column} = ${column} + interval '1 s' WHERE id = $1`;
        const expected = state === 'scheduled' ? 'accepted' : 'payment_times_fixed';
        expect(await constraintOf(db.query(text, [ids[state]])), `${column} in ${state}`).toBe(expected);
      }
    }
  });

  it('never expires before it is due', async () => {
    const text = `UPDATE payment SET not_after = execute_at WHERE id = $1`;
    expect(await constraintOf(db.query(text, [ids.scheduled]))).toBe('payment_not_after_later');
  });

  it('takes its submission start once', async () => {
    for (const value of ['clock_timestamp()', 'NULL']) {
      const text = `UPDATE payment SET submission_started_at = ${value} WHERE id = $1`;
      expect(await constraintOf(db.query(text, [ids.submitting]))).toBe('payment_submission_start_once');
    }
  });

  it('is never deleted, and neither are its generations and attempts', async () => {
    for (const table of ['payment', 'submission', 'submission_attempt']) {
      expect(await constraintOf(db.query(`DELETE FROM ${table}`)), table).toBe('history_is_append_only');
      expect(await constraintOf(db.query(`TRUNCATE ${table} CASCADE`)), table).toBe('history_is_append_only');
    }
  });

  it.each([0, -1])('refuses an amount of %d as the second wall (AM-03)', async (amount) => {
    const names = columns
      .map((c) => c.name)
      .filter((name) => !['id', 'idempotency_key', 'amount'].includes(name));
    const text = `INSERT INTO payment (id, idempotency_key, amount, ${names.join(', ')})
      SELECT id || 'x', idempotency_key || 'x', $2, ${names.join(', ')} FROM payment WHERE id = $1`;
    expect(await constraintOf(db.query(text, [ids.scheduled, amount]))).toBe('payment_amount_positive');
  });
});

describe('a generation and its attempts', () => {
  it('keep the key, the parameters and where they go', async () => {
    for (const column of [
      'provider_key',
      'adapter',
      'adapter_version',
      'api_version',
      'account',
      'base_url',
    ]) {
      const text = `UPDATE submission SET ${column} = ${column} || 'x' WHERE payment_id = $1`;
      expect(await constraintOf(db.query(text, [ids.unknown])), column).toBe('submission_frozen');
    }
    for (const column of ['parameters', 'parameters_sha256']) {
      const text = `UPDATE submission SET ${column} = ${column} || '\\x00'::bytea WHERE payment_id = $1`;
      expect(await constraintOf(db.query(text, [ids.unknown])), column).toBe('submission_frozen');
    }
    const proof = `UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`;
    expect(await constraintOf(db.query(proof, [ids.unknown]))).toBe('accepted');
  });

  it('keep what a closed attempt said', async () => {
    const text = `UPDATE submission_attempt SET evidence = 'not_sent' WHERE payment_id = $1`;
    expect(await constraintOf(db.query(text, [ids.unknown]))).toBe('submission_attempt_closed');
    const open = `UPDATE submission_attempt SET closed_at = NULL, evidence = NULL WHERE payment_id = $1`;
    expect(await constraintOf(db.query(open, [ids.unknown]))).toBe('submission_attempt_closed');
  });

  it('are one open attempt at a time', async () => {
    expect(await constraintOf(openAttempt(db.database, ids.submitting, 2))).toBe(
      'submission_attempt_one_open',
    );
  });

  it('are one per generation number', async () => {
    expect(await constraintOf(openGeneration(db.database, ids.unknown))).toBe('submission_pkey');
  });
});
