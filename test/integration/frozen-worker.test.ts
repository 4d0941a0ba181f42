import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { armedFor, ask, EngineRig, live, pair, type TestEngine } from '../support/engine.js';
import { Latch } from '../support/tapped-database.js';

/**
 * A worker that stands still between two steps while the others judge that it is gone. The freeze
 * is a latch at the step; that its lease ended is written into its row.
 */

let rig: EngineRig;
let living: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  living = await rig.engine();
});
afterAll(() => rig.stop());

/** Everybody else sees that this attempt's owner is gone. */
async function endLeaseOfOwner(payment: PaymentRow): Promise<void> {
  await rig.db.query(
    `UPDATE worker SET lease_expires_at = clock_timestamp() - interval '1 ms'
      WHERE id IN (SELECT owner FROM submission_attempt WHERE payment_id = $1)`,
    [payment.id],
  );
}

const abandon = async (payment: PaymentRow): Promise<void> => {
  await endLeaseOfOwner(payment);
  const closed = await closeAbandoned(living.database, [payment.id], 'sweep');
  expect(closed).toEqual([payment.id]);
};

describe('a worker that froze with a payment', () => {
  it('between start and claim: another one claims and calls, and the frozen one finds nothing to do', async () => {
    const frozen = await rig.engine();
    const payment = await rig.pay();
    const latch = new Latch();
    const reached = new Latch();
    frozen.database.tap('claim-attempts', async (run) => {
      reached.open();
      await latch.wait();
      return run();
    });
    const { begin, submit } = pair(frozen, payment);
    await reached.wait();
    expect(await rig.state(payment.id)).toMatch(/scheduled|submitting/);
    expect(await live(living, payment)).toBe('succeeded');
    latch.open();
    expect(await submit).toEqual({ kind: 'stopped', state: 'succeeded' });
    await begin;
    expect(frozen.provider.submits).toHaveLength(0);
    expect((await rig.simulator.requests(payment.id)).length).toBe(1);
  });

  it('between fence and first byte: its lease is over, so it writes nothing; the payment is resolved by others', async () => {
    const frozen = await rig.engine();
    const payment = await rig.pay();
    const latch = new Latch();
    const fenced = new Latch();
    frozen.provider.aroundSubmit = async (submit) => {
      fenced.open();
      await latch.wait();
      return submit();
    };
    const { begin, submit } = pair(frozen, payment);
    await fenced.wait();
    await abandon(payment);
    expect(await live(living, payment)).toBe('succeeded');
    await loseLease(frozen);
    latch.open();
    expect(await submit).toEqual({ kind: 'stopped', state: 'succeeded' });
    await begin;
    expect(frozen.provider.submits).toHaveLength(1);
    // One request of attempt 1 would make two here: only the living worker's attempt 2 arrived.
    const requests = await rig.simulator.requests(payment.id);
    expect(requests.filter((r) => r.operation === 'submit')).toHaveLength(1);
    expect(await rig.attempts(payment.id)).toMatchObject([
      { no: 1, evidence: 'ambiguous', code: 'abandoned' },
      { no: 2, evidence: 'accepted' },
    ]);
    // What the frozen worker knows is filed and applied nowhere.
    expect(await rig.evidence(payment.id)).toContain('late_answer:not_sent');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T15', 'T9']);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
  });

  it('between answer and record: the answer is filed as evidence and moves nothing (UO)', async () => {
    const frozen = await rig.engine();
    const payment = await rig.pay();
    const latch = new Latch();
    const answered = new Latch();
    frozen.database.tap('record-outcomes', async (run) => {
      answered.open();
      await latch.wait();
      return run();
    });
    const { begin, submit } = pair(frozen, payment);
    await answered.wait();
    await abandon(payment);
    expect(await rig.state(payment.id)).toBe('unknown');
    latch.open();
    expect(await submit).toMatchObject({ kind: 'outcome_open' });
    await begin;
    expect(frozen.events.count('lateAnswer')).toBe(1);
    expect(await rig.state(payment.id)).toBe('unknown');
    expect(await rig.evidence(payment.id)).toEqual(['late_answer:accepted']);
    expect(await rig.attempts(payment.id)).toMatchObject([{ evidence: 'ambiguous', code: 'abandoned' }]);
    // The lookup then finds what the frozen worker had sent: no second call.
    expect(await ask(living, payment.id)).toBe('succeeded');
    expect((await rig.simulator.requests(payment.id)).filter((r) => r.operation === 'submit')).toHaveLength(
      1,
    );
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T14']);
  });

  it('while the call is under way longer than everybody waits: a slow owner with a lease keeps its attempt', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', { kind: 'slow', afterMs: 600 });
    const { submit } = pair(living, payment);
    await rig.simulator.untilCharged(payment.id);
    expect(await closeAbandoned(rig.db.database, [payment.id], 'sweep')).toEqual([]);
    expect(await submit).toEqual({ kind: 'stopped', state: 'succeeded' });
  });

  it('and whose call is older than 60 s loses the attempt although its lease is alive', async () => {
    const payment = await rig.pay();
    const slow = await rig.engine();
    const latch = new Latch();
    const fenced = new Latch();
    slow.provider.aroundSubmit = async (submit) => {
      fenced.open();
      const answer = await submit();
      await latch.wait();
      return answer;
    };
    const { submit } = pair(slow, payment);
    await fenced.wait();
    await rig.db.query(
      `UPDATE submission_attempt SET call_started_at = clock_timestamp() - interval '61 seconds' WHERE payment_id = $1`,
      [payment.id],
    );
    expect(await closeAbandoned(rig.db.database, [payment.id], 'sweep')).toEqual([payment.id]);
    latch.open();
    expect(await submit).toMatchObject({ kind: 'outcome_open' });
    expect(await rig.evidence(payment.id)).toEqual(['late_answer:accepted']);
  });
});

/** The engine's next renewal finds that its lease was over; it takes a new id. */
async function loseLease(on: TestEngine): Promise<void> {
  const lost = new Latch();
  on.database.tap('worker-create', async (run) => {
    const rows = await run();
    setImmediate(() => lost.open());
    return rows;
  });
  await lost.wait();
  expect(on.events.count('leaseLost')).toBe(1);
}

describe('a worker that was frozen past its lease', () => {
  it('hands on what it had armed, takes a new lease and starts payments again', async () => {
    const frozen = await rig.engine();
    const armed = await rig.pay({ inMs: 20_000 });
    const { begin, submit } = pair(frozen, armed);
    const ends = Promise.allSettled([begin, submit]);
    await rig.db.query(
      `UPDATE worker SET lease_expires_at = clock_timestamp() - interval '1 ms' WHERE id = ANY ($1)`,
      [await rig.workerIds()],
    );
    await loseLease(frozen);
    for (const end of await ends) {
      expect(end).toMatchObject({ status: 'rejected', reason: { reason: 'lease_lost' } });
    }
    expect(frozen.engine.gauges()).toMatchObject({ armed: 0, waiting: 0 });
    expect(frozen.engine.isWell()).toBe(true);
    const payment = await rig.pay();
    expect(await live(frozen, payment)).toBe('succeeded');
    expect(await rig.state(armed.id)).toBe('scheduled');
    await frozen.services.submit.submitPayment(armedFor(payment));
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    // Invariant 1: the test above moved a call into the past.
    expect(await rig.breaches([1, 10])).toEqual([]);
  });
});
