import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentState } from '../../src/domain/payment-state.js';
import { OutcomeRecorder } from '../../src/submission/outcome-recorder.js';
import type { SubmissionEvents } from '../../src/submission/submission-events.js';
import type { WorkerLease } from '../../src/submission/worker-lease.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { paymentIn } from '../support/payment-states.js';
import { resultOf } from '../support/results.js';

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
