import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentState } from '../../src/domain/payment-state.js';
import { OutcomeRecorder } from '../../src/submission/outcome-recorder.js';
import type { SubmissionEvents } from '../../src/submission/submission-events.js';
import type { WorkerLease } from '../../src/submission/worker-lease.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { openAttempt, openGeneration, paymentIn, run, step } from '../support/payment-states.js';
import { resultOf } from '../support/results.js';
import { until } from '../support/until.js';

let db: TestDatabase;
let make: (state: PaymentState) => Promise<string>;
let recorder: OutcomeRecorder;
const told: string[] = [];

beforeAll(async () => {
  db = await createTestDatabase();
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  make = (state) => paymentIn(state, db.database, { tenant, lane });
  const events = {
    contradiction: (id: string) => void told.push(id),
    moved: () => undefined,
    lateAnswer: () => undefined,
  } as unknown as SubmissionEvents;
  recorder = new OutcomeRecorder(db.database, { id: 'w' } as WorkerLease, events, 1);
});
afterAll(() => db.drop());

/** What a frozen worker reports after somebody else closed its attempt. */
const report = (paymentId: string, result: ReturnType<typeof resultOf>) =>
  recorder.record({
    ...{ paymentId, generation: 1, no: 1, owner: 'frozen', phase: 'submit', capabilityClass: 'A' },
    result,
  });

const casesOf = async (id: string) =>
  (await db.query<{ reason: string }>(`SELECT reason FROM review_case WHERE payment_id = $1`, [id])).map(
    (row) => row.reason,
  );

describe('an answer that came too late', () => {
  it.each([
    ['failed', 'accepted', resultOf('accepted', { status: 'succeeded' })],
    ['failed', 'accepted and pending', resultOf('accepted', { status: 'pending' })],
    ['succeeded', 'refused', resultOf('rejected')],
    ['succeeded', 'somebody else’s', resultOf('key_mismatch')],
    ['returned', 'refused', resultOf('rejected')],
  ] as const)('opens one case when a %s payment was %s, and rewrites nothing (DC-06)', async (state, _what, result) => {
    const id = await make(state);
    const [before] = await db.query(`SELECT state, version FROM payment WHERE id = $1`, [id]);
    expect(await report(id, result)).toEqual({ kind: 'late' });
    await report(id, result);
    expect(await casesOf(id)).toEqual(['contradiction']);
    expect(told.filter((each) => each === id)).toHaveLength(1);
    expect(await db.query(`SELECT state, version FROM payment WHERE id = $1`, [id])).toEqual([before]);
  }); // prettier-ignore

  it.each([
    ['succeeded', resultOf('accepted', { status: 'succeeded' })],
    ['succeeded', resultOf('ambiguous')],
    ['failed', resultOf('rejected')],
    ['failed', resultOf('accepted', { status: 'inert' })],
    ['unknown', resultOf('accepted', { status: 'succeeded' })],
  ] as const)('opens none when it contradicts nothing: a %s payment', async (state, result) => {
    const id = await make(state);
    expect(await report(id, result)).toEqual({ kind: 'late' });
    expect(await casesOf(id)).toEqual([]);
  });
});

describe('an answer that came too late, of another object than the one that paid', () => {
  it.each(['succeeded', 'returned'] as const)(
    'opens a case when the payment is %s (DC-06)',
    async (state) => {
      const id = await make(state);
      await db.query(`UPDATE payment SET provider_ref = 'po_first' WHERE id = $1`, [id]);
      await report(id, resultOf('accepted', { providerRef: 'po_second' }));
      expect(await casesOf(id)).toEqual(['contradiction']);
    },
  );

  it('opens none when it is the same, not known, or inert', async () => {
    for (const [ours, late] of [
      ['po_first', resultOf('accepted', { providerRef: 'po_first' })],
      [null, resultOf('accepted', { providerRef: 'po_second' })],
      ['po_first', resultOf('accepted', { providerRef: null })],
      ['po_first', resultOf('accepted', { providerRef: 'po_second', status: 'inert' })],
    ] as const) {
      const id = await make('succeeded');
      await db.query(`UPDATE payment SET provider_ref = $2 WHERE id = $1`, [id, ours]);
      await report(id, late);
      expect(await casesOf(id)).toEqual([]);
    }
  });
});

describe('an answer that came too late, of an earlier generation that was accepted', () => {
  /** The answer is about generation 1; people had it sent again. */
  async function superseded(state: PaymentState): Promise<string> {
    const id = await make(state);
    await db.query(`UPDATE submission SET proof = 'of a test' WHERE payment_id = $1`, [id]);
    await openGeneration(db.database, id, 2);
    return id;
  }
  const stateOf = async (id: string) =>
    (await db.query<{ state: string }>(`SELECT state FROM payment WHERE id = $1`, [id]))[0]?.state;
  const accepted = resultOf('accepted', { status: 'succeeded' });

  it.each(['unknown', 'submitted'] as const)('gives a payment in %s to people (T16)', async (state) => {
    const id = await superseded(state);
    await report(id, accepted);
    expect([await stateOf(id), await casesOf(id)]).toEqual(['needs_review', ['other_generation']]);
    expect(told).toContain(id);
  });

  it.each(['succeeded', 'failed', 'returned'] as const)('opens a case of a %s payment', async (state) => {
    const id = await superseded(state);
    await report(id, accepted);
    await report(id, accepted);
    expect([await stateOf(id), await casesOf(id)]).toEqual([state, ['other_generation']]);
  });

  it('gives a payment to people before its call goes out, and closes the attempt that nobody claimed', async () => {
    const id = await superseded('unknown');
    await step(db.database, id, { rule: 'T16' });
    await step(db.database, id, { rule: 'T19' });
    await openAttempt(db.database, id, 1, 2);
    await report(id, accepted);
    expect([await stateOf(id), await casesOf(id)]).toEqual(['needs_review', ['other_generation']]);
    const open = `SELECT 1 FROM submission_attempt WHERE payment_id = $1 AND closed_at IS NULL`;
    expect(await db.query(open, [id])).toEqual([]);
  });

  it('opens a case while the next call is under way, and leaves that to end', async () => {
    const id = await superseded('submitting');
    await report(id, accepted);
    expect([await stateOf(id), await casesOf(id)]).toEqual(['submitting', ['other_generation']]);
  });

  it('changes nothing when the earlier generation was refused', async () => {
    const id = await superseded('unknown');
    await report(id, resultOf('rejected'));
    expect([await stateOf(id), await casesOf(id)]).toEqual(['unknown', []]);
  });
});

it('an answer that comes while the payment is failed for its silence waits, and then opens a case', async () => {
  const id = await make('unknown');
  let fail = (): void => undefined;
  const mayFail = new Promise<void>((resolve) => (fail = resolve));
  let holds = (): void => undefined;
  const isHeld = new Promise<void>((resolve) => (holds = resolve));
  const failing = db.database.transaction(async (tx) => {
    await run(tx, `SELECT 1 FROM payment WHERE id = $1 FOR NO KEY UPDATE`, [id]);
    holds();
    await mayFail;
    await step(tx, id, { rule: 'T14', to: 'failed' });
  });
  await isHeld;
  const reporting = report(id, resultOf('accepted', { status: 'succeeded' }));
  await until(
    'the answer waits for the payment',
    () =>
      db.query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      ),
    (rows) => rows.length > 0,
  );
  fail();
  await failing;
  expect(await reporting).toEqual({ kind: 'late' });
  expect(await casesOf(id)).toEqual(['contradiction']);
});
