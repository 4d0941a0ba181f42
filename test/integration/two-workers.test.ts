import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { armedFor, EngineRig, pair, type TestEngine } from '../support/engine.js';
import { Latch } from '../support/tapped-database.js';

let rig: EngineRig;
let one: TestEngine;
let two: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
  two = await rig.engine();
});
afterAll(() => rig.stop());

const STOPPED = { kind: 'stopped', state: 'succeeded' };

async function expectOnceEach(payments: readonly PaymentRow[]): Promise<void> {
  for (const { id } of payments) {
    expect((await rig.simulator.requests(id)).length).toBe(1);
    expect(await rig.rules(id)).toEqual(['T1', 'T7', 'T9']);
  }
  expect((await rig.simulator.allEffects()).duplicates).toEqual([]);
  expect((await rig.simulator.early()).count).toBe(0);
  expect(await rig.breaches()).toEqual([]);
}

describe('two workers', () => {
  it('with begin on one and submit on the other call once, and not before the time', async () => {
    const payments = await rig.payMany(30, 500);
    await rig.expectNotBefore(payments);
    const begins = payments.map((p) => one.services.begin.beginSubmission(armedFor(p)));
    const submits = payments.map((p) => two.services.submit.submitPayment(armedFor(p)));
    expect(await Promise.all(submits)).toEqual(payments.map(() => STOPPED));
    expect(await Promise.all(begins)).toEqual(payments.map(() => ({ kind: 'started' })));
    await expectOnceEach(payments);
    const owners = await rig.db.query(
      `SELECT DISTINCT a.owner, split_part(t.actor, ':', 2) AS starter FROM submission_attempt a
         JOIN payment_transition t ON t.payment_id = a.payment_id AND t.seq = 2
        WHERE a.payment_id = ANY ($1)`,
      [payments.map((p) => p.id)],
    );
    expect(owners).toHaveLength(1);
    expect(owners[0]?.['owner']).not.toBe(owners[0]?.['starter']);
  });

  it('that both arm every pair start and call once each; who loses joins quietly and is counted (DC-03)', async () => {
    const payments = await rig.payMany(100, 1_000);
    await rig.expectNotBefore(payments);
    const pairs = payments.flatMap((p) => [pair(one, p), pair(two, p)]);
    const submits = await Promise.all(pairs.map(({ submit }) => submit));
    const begins = await Promise.all(pairs.map(({ begin }) => begin));
    expect(submits).toEqual(pairs.map(() => STOPPED));
    // Who looks after the call was recorded reads the end instead of the start.
    for (const answer of begins) expect([STOPPED, { kind: 'started' }]).toContainEqual(answer);
    await expectOnceEach(payments);
    const faults = [...one.events.of('fault'), ...two.events.of('fault')];
    expect(faults.map(({ args }) => args.map(String))).toEqual([]);
    expect(one.events.count('gateLost') + two.events.count('gateLost')).toBeGreaterThan(0);
  });

  it('do not touch each other’s payment when one of them fails after the other succeeded (DC-06)', async () => {
    const payment = await rig.pay({ inMs: 300 });
    await rig.expectNotBefore([payment]);
    // The second worker reaches the gate only when the first one has been paid.
    const undo = two.database.tap('begin-submission', async (run) => {
      await first.submit;
      await run();
      throw new Error('the loser fails');
    });
    const first = pair(one, payment);
    const second = pair(two, payment);
    expect(await first.submit).toEqual(STOPPED);
    await expect(second.begin).rejects.toThrow('the loser fails');
    expect(await second.submit).toEqual(STOPPED);
    undo();
    await expectOnceEach([payment]);
    const requests = await rig.simulator.requests(payment.id);
    expect(requests.map((r) => r.operation)).toEqual(['submit']);
  });

  it('of which one is drained hand its armed payments to the other, and none is lost', async () => {
    const going = await rig.engine();
    const soon = await rig.pay({ inMs: 1_000 });
    const later = await rig.pay({ inMs: 20_000 });
    const read = new Latch();
    going.database.tap('payment-instruction', async (run) => {
      const rows = await run();
      setImmediate(() => read.open());
      return rows;
    });
    const kept = pair(going, soon);
    const handed = pair(going, later);
    const faults = Promise.allSettled([handed.begin, handed.submit]);
    await read.wait();
    going.engine.drain();
    for (const end of await faults) {
      expect(end).toMatchObject({ status: 'rejected', reason: { reason: 'draining' } });
    }
    await expect(going.services.begin.beginSubmission(armedFor(later))).rejects.toThrow('draining');
    expect(await kept.submit).toEqual(STOPPED);
    expect(await kept.begin).toEqual({ kind: 'started' });
    expect(going.engine.gauges()).toMatchObject({ armed: 0, waiting: 0, results: 0 });
    expect((await rig.simulator.effects(soon.id)).count).toBe(1);
    expect(await rig.state(later.id)).toBe('scheduled');
  });
});
