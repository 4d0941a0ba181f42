import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { ArmedEntry } from '../../src/submission/armed-payments.js';
import { DueGate, type GateAnswer } from '../../src/submission/due-gate.js';
import { insertScheduled, seedLane, seedTenant, type LaneSeed } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { seedWorker } from '../support/payment-states.js';
import { preparedFor } from '../support/prepared.js';
import { until } from '../support/until.js';

/**
 * What the gate tells a payment that waits for its lane longer than memory is for. Minutes pass on
 * this process's monotonic clock alone, so no engine runs here that would measure by it.
 */

let db: TestDatabase;
let tenant: string;
let worker: string;
const provider = new SimulatedProvider({ baseUrl: 'http://127.0.0.1:1', apiKey: 'sk_test_a' });
beforeAll(async () => {
  db = await createTestDatabase();
  tenant = await seedTenant(db.database);
  worker = await seedWorker(db.database);
});
afterAll(() => db.drop());
afterEach(() => vi.restoreAllMocks());

/** From now on the monotonic clock is this far ahead; the last word counts. */
function letMonotonicClockPass(ms: number): void {
  vi.restoreAllMocks();
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
}

/** A lane without tokens, and payments of it that came due one after the other. */
async function waitingLane(count: number, seed: LaneSeed): Promise<readonly PaymentRow[]> {
  const lane = await seedLane(db.database, { burst: 1, ...seed });
  const payments = await Promise.all(
    Array.from({ length: count }, () => insertScheduled(db.database, { tenant, lane })),
  );
  await db.query(
    `UPDATE payment p SET execute_at = now() - (1000 - x.n) * interval '1 ms'
       FROM unnest($1::text[]) WITH ORDINALITY AS x (id, n) WHERE p.id = x.id`,
    [payments.map((p) => p.id)],
  );
  // Refilled in an hour: whatever the machine is busy with, no token comes meanwhile.
  await db.query(
    `UPDATE lane SET tokens = 0, refilled_at = clock_timestamp() + interval '1 hour' WHERE lane = $1`,
    [lane],
  );
  return payments;
}

interface Waiting {
  readonly gate: DueGate;
  readonly answers: Promise<readonly GateAnswer[]>;
  readonly answered: () => number;
}

/** Puts payments into a gate and waits until it has tried once and marked them. */
async function putIn(payments: readonly PaymentRow[]): Promise<Waiting> {
  const clock = { agrees: () => true } as ConstructorParameters<typeof DueGate>[2];
  const lease = { id: worker } as ConstructorParameters<typeof DueGate>[1];
  const gate = new DueGate(db.database, lease, clock, () => undefined);
  let answered = 0;
  const answers = payments.map(async (payment) => {
    const entry = new ArmedEntry(payment.id, payment.version, payment.lane);
    const dueAtMs = Date.parse(payment.execute_at);
    const answer = await gate.wait(entry, preparedFor({ provider }, payment), dueAtMs, 100);
    answered++;
    return answer;
  });
  await until('a first try', () => gate.batches, (n) => n > 0); // prettier-ignore
  return { gate, answers: Promise.all(answers), answered: () => answered };
}

async function marks(payments: readonly PaymentRow[]): Promise<readonly Record<string, unknown>[]> {
  return db.query(
    `SELECT armed_by, wake_after > clock_timestamp() + interval '10 s' AS later FROM payment
      WHERE id = ANY ($1) ORDER BY execute_at`,
    [payments.map((p) => p.id)],
  );
}

describe('a payment that waits in the gate’s memory', () => {
  it('is marked as held by its worker after a moment, and stays', async () => {
    const payments = await waitingLane(2, { rate: 0.001 });
    const { answered, gate } = await putIn(payments);
    const isMarked = { armed_by: worker, later: null };
    await until('the marks', () => marks(payments), (rows) => rows.every((r) => r['armed_by'] === worker)); // prettier-ignore
    expect(await marks(payments)).toEqual([isMarked, isMarked]);
    expect(answered()).toBe(0);
    gate.drop(() => true);
  });

  it('goes back to its workflow after a minute, told its place in the queue less the lead of arming', async () => {
    const payments = await waitingLane(4, { rate: 0.1 });
    const { answers } = await putIn(payments.slice(1));
    letMonotonicClockPass(61_000);
    expect(await answers).toEqual([
      { kind: 'lane_busy', version: 1, retryAfterMs: 17_000 },
      { kind: 'lane_busy', version: 1, retryAfterMs: 27_000 },
      { kind: 'lane_busy', version: 1, retryAfterMs: 37_000 },
    ]);
    const released = { armed_by: null, later: true };
    expect((await marks(payments)).slice(1)).toEqual([released, released, released]);
  });

  it('whose turn is near is kept a little longer', async () => {
    const payments = await waitingLane(3, { rate: 0.25 });
    const { answers, answered } = await putIn(payments);
    letMonotonicClockPass(61_000);
    await until('the far ones', answered, (n) => n === 2);
    // Four seconds from its turn: kept, until 70 s have passed.
    letMonotonicClockPass(71_000);
    expect(await answers).toEqual([
      { kind: 'lane_busy', version: 1, retryAfterMs: 1_000 },
      { kind: 'lane_busy', version: 1, retryAfterMs: 5_000 },
      { kind: 'lane_busy', version: 1, retryAfterMs: 9_000 },
    ]);
  });

  it('and is not scheduled any more is looked at instead', async () => {
    const payments = await waitingLane(1, { rate: 0.001 });
    const { answers } = await putIn(payments);
    await db.query(`ALTER TABLE payment DISABLE TRIGGER ALL`);
    await db.query(`UPDATE payment SET state = 'held' WHERE id = $1`, [payments[0]?.id]);
    await db.query(`ALTER TABLE payment ENABLE TRIGGER ALL`);
    letMonotonicClockPass(61_000);
    expect(await answers).toEqual([{ kind: 'look' }]);
  });
});
