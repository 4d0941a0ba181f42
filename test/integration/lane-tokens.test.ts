import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import {
  beginSubmissions,
  estimateWaits,
  markArmed,
  releaseArmed,
  type BeginResult,
} from '../../src/submission/begin-submission.store.js';
import { EngineRig, pair, type TestEngine } from '../support/engine.js';
import { seedWorker } from '../support/payment-states.js';
import { preparedFor } from '../support/prepared.js';
import { until } from '../support/until.js';

let rig: EngineRig;
let one: TestEngine;
let worker: string;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
  worker = await seedWorker(rig.db.database);
});
afterAll(() => rig.stop());

const begin = (lane: string, payments: readonly PaymentRow[], freeCalls = 100): Promise<BeginResult> =>
  beginSubmissions(rig.db.database, lane, worker, freeCalls, payments.map((p) => preparedFor(one, p))); // prettier-ignore

async function moved(result: Promise<BeginResult>): Promise<readonly string[]> {
  const answer = await result;
  return answer.kind === 'open' ? [...answer.moved] : [];
}

/** Payments of a lane that came due one after the other, oldest first, inserted in another order. */
async function dueInOrder(lane: string, count: number): Promise<readonly PaymentRow[]> {
  const payments = await Promise.all(Array.from({ length: count }, () => rig.pay({ lane })));
  await rig.db.query(
    `UPDATE payment p SET execute_at = now() - (1000 - x.n) * interval '1 ms'
       FROM unnest($1::text[]) WITH ORDINALITY AS x (id, n) WHERE p.id = x.id`,
    [payments.map((p) => p.id)],
  );
  return payments;
}

async function tokensOf(lane: string): Promise<number> {
  const [row] = await rig.db.query<{ tokens: number }>(`SELECT tokens FROM lane WHERE lane = $1`, [lane]);
  return row?.tokens ?? NaN;
}

describe('the tokens of a lane', () => {
  it('bound one statement: the oldest start, the others stay scheduled and can be cancelled', async () => {
    const lane = await rig.addLane({ rate: 0.001, burst: 3 });
    const payments = await dueInOrder(lane, 5);
    const mixed = [4, 1, 3, 0, 2].map((i) => payments[i] as PaymentRow);
    const started = await moved(begin(lane, mixed));
    expect(new Set(started)).toEqual(new Set(payments.slice(0, 3).map((p) => p.id)));
    expect(await tokensOf(lane)).toBeLessThan(0.1);
    expect(await moved(begin(lane, mixed))).toEqual([]);
    for (const payment of payments.slice(3)) await rig.move(payment, 'T5', 'cancel');
  });

  it('are taken only for what moved', async () => {
    const lane = await rig.addLane({ rate: 0.001, burst: 3 });
    const payments = await dueInOrder(lane, 3);
    await rig.move(payments[0] as PaymentRow, 'T5', 'cancel');
    expect(await moved(begin(lane, payments))).toHaveLength(2);
    expect(await tokensOf(lane)).toBeCloseTo(1, 1);
    expect(await moved(begin(lane, payments))).toEqual([]);
    expect(await tokensOf(lane)).toBeCloseTo(1, 1);
  });

  it('grow with time at the lane’s rate, and never above its burst', async () => {
    const lane = await rig.addLane({ rate: 10, burst: 4 });
    const set = (tokens: number, secondsAgo: number) =>
      rig.db.query(
        `UPDATE lane SET tokens = $2, refilled_at = clock_timestamp() - $3::double precision * interval '1 s'
          WHERE lane = $1`,
        [lane, tokens, secondsAgo],
      );
    const available = async (): Promise<number> => {
      const payment = await rig.pay({ lane, inMs: 60_000 });
      const result = await begin(lane, [payment]);
      return result.kind === 'open' ? result.available : NaN;
    };
    await set(0, 0.2);
    expect(await available()).toBeGreaterThanOrEqual(2);
    await set(0, 3_600);
    expect(await available()).toBe(4);
    // A clock that was set back takes nothing away.
    await set(1, -60);
    expect(await available()).toBe(1);
  });

  it('are shared by all workers: 12 statements at once over 5 tokens start 5 payments', async () => {
    const lane = await rig.addLane({ rate: 0.001, burst: 5 });
    const payments = await dueInOrder(lane, 24);
    const groups = Array.from({ length: 12 }, (_, i) => payments.slice(2 * i, 2 * i + 2));
    const pool = rig.db.connect('workers', 12);
    const results = await Promise.all(
      groups.map((group) => beginSubmissions(pool, lane, worker, 100, group.map((p) => preparedFor(one, p)))), // prettier-ignore
    );
    const started = results.flatMap((r) => (r.kind === 'open' ? [...r.moved] : []));
    expect(started).toHaveLength(5);
    expect(new Set(started).size).toBe(5);
  });

  it('are not taken for more than the worker’s free calls', async () => {
    const lane = await rig.addLane({});
    const payments = await dueInOrder(lane, 5);
    expect(await moved(begin(lane, payments, 2))).toHaveLength(2);
    expect(await moved(begin(lane, payments, 0))).toEqual([]);
  });
});

describe('a lane of 20 a second with 60 payments due', () => {
  it('sends at about its rate, starts them in the order of execute_at, and each once', async () => {
    const lane = await rig.addLane({ rate: 20, burst: 5 });
    const payments = await dueInOrder(lane, 60);
    const engine = await rig.engine();
    const pairs = [...payments].reverse().map((p) => pair(engine, p));
    // Waiting for a lane is marked, so that the sweep leaves these alone.
    await until('the marks', () => markedOn(lane), (marked) => marked > 0); // prettier-ignore
    await Promise.all(pairs.map(({ submit }) => submit));
    const effects = await Promise.all(payments.map((p) => rig.simulator.effects(p.id)));
    expect(effects.map((e) => e.count)).toEqual(payments.map(() => 1));
    // The transaction that wrote the start tells the statements apart; within one the order is free.
    const starts = await rig.db.query<{ id: string }>(
      `SELECT p.id FROM payment p JOIN payment_transition t ON t.payment_id = p.id AND t.seq = 2
        WHERE p.lane = $1 ORDER BY t.xmin::text::bigint, p.execute_at`,
      [lane],
    );
    expect(starts.map((row) => row.id)).toEqual(payments.map((p) => p.id));
    const arrivals = effects.map((e) => e.charges[0]?.receivedAt ?? NaN).sort((a, b) => a - b);
    // No second held more than its rate and the burst, judged by the provider's arrivals.
    for (const [i, at] of arrivals.entries()) {
      const within = arrivals.filter((other) => other >= at && other < at + 1_000).length;
      expect(within, `from arrival ${i}`).toBeLessThanOrEqual(20 + 5 + 2);
    }
    await Promise.all(pairs.map(({ begin: started }) => started));
  });
});

async function markedOn(lane: string): Promise<number> {
  const [row] = await rig.db.query<{ count: number }>(
    `SELECT count(*)::integer AS count FROM payment WHERE lane = $1 AND armed_by IS NOT NULL`,
    [lane],
  );
  return row?.count ?? 0;
}

describe('a payment without a token', () => {
  it('stays scheduled while it waits, and its cancel ends the wait', async () => {
    const lane = await rig.addLane({ rate: 0.001, burst: 1 });
    const payments = await dueInOrder(lane, 2);
    const [first, second] = payments.map((p) => pair(one, p));
    expect(await first?.submit).toEqual({ kind: 'stopped', state: 'succeeded' });
    const waiting = payments[1] as PaymentRow;
    expect(await rig.state(waiting.id)).toBe('scheduled');
    const stopped = { kind: 'stopped', state: 'cancelled' };
    expect(await one.services.commands.cancelPayment({ paymentId: waiting.id })).toEqual(stopped);
    expect(await second?.begin).toEqual(stopped);
    expect(await second?.submit).toEqual(stopped);
    expect(await rig.simulator.requests(waiting.id)).toEqual([]);
  });

  it('of a paused lane goes back at once, and both activities say so', async () => {
    const lane = await rig.addLane({ paused: true });
    const payment = await rig.pay({ lane });
    const { begin: begins, submit } = pair(one, payment);
    const answer = await begins;
    expect(answer).toMatchObject({ kind: 'lane_busy', version: 1 });
    expect(await submit).toEqual(answer);
    // The sweep wakes it when its lane is open: hours of a pause cost a few events.
    if (answer.kind === 'lane_busy') expect(answer.retryAfterMs).toBe(15 * 60_000);
    expect(await rig.state(payment.id)).toBe('scheduled');
  });

  it('that somebody holds locked does not keep the others of its lane from being marked or sent back', async () => {
    const lane = await rig.addLane({});
    const [locked, free] = (await dueInOrder(lane, 2)) as [PaymentRow, PaymentRow];
    await rig.db.connect('frozen-api', 1).transaction(async (tx) => {
      await tx.query({ name: 'lock', text: 'SELECT 1 FROM payment WHERE id = $1 FOR UPDATE' }, [locked.id]);
      await markArmed(rig.db.database, [locked.id, free.id], worker);
      expect(await markedOn(lane)).toBe(1);
      await releaseArmed(rig.db.database, [
        { paymentId: locked.id, restMs: 1 },
        { paymentId: free.id, restMs: 1 },
      ]);
      expect(await markedOn(lane)).toBe(0);
    });
  });
});

describe('the estimate of a wait', () => {
  it('counts those ahead that are due, divided by the rate, and leaves out who waits no longer', async () => {
    const lane = await rig.addLane({ rate: 2 });
    const payments = await dueInOrder(lane, 4);
    const later = await rig.pay({ lane, inMs: 60_000 });
    await rig.move(payments[0] as PaymentRow, 'T5', 'cancel');
    const waits = await estimateWaits(rig.db.database, lane, [...payments, later].map((p) => p.id)); // prettier-ignore
    expect(Object.fromEntries(waits)).toEqual({
      [payments[1]?.id ?? '']: { version: 1, waitMs: 500 },
      [payments[2]?.id ?? '']: { version: 1, waitMs: 1_000 },
      [payments[3]?.id ?? '']: { version: 1, waitMs: 1_500 },
    });
  });
});
