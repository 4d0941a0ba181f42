import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { beginSubmissions } from '../../src/submission/begin-submission.store.js';
import { EngineRig, pair, type TestEngine } from '../support/engine.js';
import { seedWorker } from '../support/payment-states.js';
import { preparedFor } from '../support/prepared.js';
import type { TappedDatabase } from '../support/tapped-database.js';
import { until } from '../support/until.js';

/** Wrong by this much, the clocks still agree well enough to start; by the other they do not. */
const AGREEING_MS = 700;
const DISAGREEING_MS = 1_500;

let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start();
});
afterAll(() => rig.stop());
afterEach(() => vi.restoreAllMocks());

/** This process's wall clock is wrong by so much until the test ends. */
function setWallClock(wrongByMs: number): void {
  const rightly = Date.now.bind(Date);
  vi.spyOn(Date, 'now').mockImplementation(() => rightly() + wrongByMs);
}

/** The worker's measurement of the database's clock is wrong by so much. */
const misread = (wrongByMs: number) => (database: TappedDatabase) =>
  database.tap('database-clock', async (run) => {
    const { rows } = (await run()) as { rows: { ms: number }[] };
    return { rows: rows.map(({ ms }) => ({ ms: ms + wrongByMs })), rowCount: 1 };
  });

/** Pays on this engine; the simulator judges whether the call came early. */
async function payOn(on: TestEngine, inMs: number): Promise<PaymentRow> {
  const payment = await rig.pay({ inMs });
  await rig.expectNotBefore([payment]);
  await Promise.all(Object.values(pair(on, payment)));
  expect((await rig.simulator.effects(payment.id)).count).toBe(1);
  expect(await earlyCharges()).toBe(0);
  return payment;
}

async function earlyCharges(): Promise<number> {
  const { count, unregistered } = await rig.simulator.early();
  expect(unregistered).toBe(0);
  return count;
}

/** Submission start minus execute_at, ms on the database's clock. */
async function startedAfterMs(payment: PaymentRow): Promise<number> {
  const [row] = await rig.db.query<{ ms: number }>(
    `SELECT (extract(epoch FROM submission_started_at - execute_at) * 1000)::double precision AS ms
       FROM payment WHERE id = $1`,
    [payment.id],
  );
  return row?.ms ?? NaN;
}

describe('the guard of submission start, alone', () => {
  let worker: string;
  let one: TestEngine;
  beforeAll(async () => {
    worker = await seedWorker(rig.db.database);
    one = await rig.engine();
  });

  const begin = (payments: readonly PaymentRow[], lane = rig.lane, owner = worker) =>
    beginSubmissions(rig.db.database, lane, owner, 100, payments.map((p) => preparedFor(one, p))); // prettier-ignore

  it('starts what is due and nothing of the same batch that is not, nor what is held or past not_after', async () => {
    const due = await rig.pay();
    const soon = await rig.pay({ inMs: 5_000 });
    const held = await rig.pay();
    await rig.move(held, 'T3', 'hold');
    const cancelled = await rig.pay();
    await rig.move(cancelled, 'T5', 'cancel');
    const over = await rig.pay({ notAfter: await rig.timeIn(50) });
    await until('the deadline', () => rig.deadlinePassed(over.id), Boolean);
    const result = await begin([due, soon, held, cancelled, over]);
    expect(result).toMatchObject({ kind: 'open', moved: new Set([due.id]) });
    expect(await Promise.all([soon, held, cancelled, over].map((p) => rig.state(p.id)))).toEqual([
      'scheduled',
      'held',
      'cancelled',
      'scheduled',
    ]);
    const [started] = await rig.db.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM submission_attempt WHERE payment_id = ANY ($1)`,
      [[soon.id, held.id, cancelled.id, over.id]],
    );
    expect(started?.count).toBe(0);
  });

  it('refuses a payment that is due a moment from now, until that moment has come', async () => {
    const payment = await rig.pay({ inMs: 250 });
    for (let tries = 0; ; tries++) {
      const result = await begin([payment]);
      if (result.kind === 'open' && result.moved.size === 1) break;
      expect(result).toMatchObject({ kind: 'open', moved: new Set() });
      expect(tries).toBeLessThan(10_000);
    }
    expect(await startedAfterMs(payment)).toBeGreaterThanOrEqual(0);
  });

  it('starts nothing on a paused lane, on another lane, or for a worker without a lease', async () => {
    const paused = await rig.addLane({ paused: true });
    const other = await rig.addLane({});
    const onPaused = await rig.pay({ lane: paused });
    const payment = await rig.pay();
    expect(await begin([onPaused], paused)).toEqual({ kind: 'closed' });
    expect(await begin([payment], other)).toMatchObject({ kind: 'open', moved: new Set() });
    expect(await begin([payment], rig.lane, await seedWorker(rig.db.database, 0))).toEqual({
      kind: 'closed',
    });
    expect(await begin([payment], rig.lane, 'nobody')).toEqual({ kind: 'closed' });
    expect([await rig.state(onPaused.id), await rig.state(payment.id)]).toEqual(['scheduled', 'scheduled']);
  });

  it('is asked early by a worker whose clocks are both ahead, refuses, and is counted', async () => {
    setWallClock(AGREEING_MS);
    const ahead = await rig.engine({ prepare: misread(AGREEING_MS) });
    await payOn(ahead, 1_200);
    expect(ahead.events.count('earlyRefusal')).toBeGreaterThan(0);
  });
});

describe('one wrong clock', () => {
  it('that is ahead, the worker’s, starts nothing early and asks nothing early', async () => {
    setWallClock(AGREEING_MS);
    const one = await rig.engine();
    await payOn(one, 1_000);
    expect(one.events.count('earlyRefusal')).toBe(0);
  });

  it('that is behind, the worker’s, starts late and not early', async () => {
    setWallClock(-AGREEING_MS);
    const one = await rig.engine();
    const payment = await payOn(one, 300);
    // On its own clock too, the worker started nothing before its time.
    expect(await startedAfterMs(payment)).toBeGreaterThanOrEqual(AGREEING_MS - 50);
  });

  it('that is ahead, the database’s as the worker reads it, is held back by the worker’s own', async () => {
    const one = await rig.engine({ prepare: misread(AGREEING_MS) });
    await payOn(one, 1_000);
    expect(one.events.count('earlyRefusal')).toBe(0);
  });

  it.each([
    ['ahead', DISAGREEING_MS],
    ['behind', -DISAGREEING_MS],
  ])('that is %s by more than a second starts nothing until it is right again', async (_, wrongByMs) => {
    const one = await rig.engine({ prepare: misread(-wrongByMs) });
    expect(one.engine.isWell()).toBe(false);
    // Misread behind, its time would come late anyway: let it be long due.
    const payment = await rig.pay();
    await rig.db.query(`UPDATE payment SET execute_at = execute_at - interval '10 seconds' WHERE id = $1`, [
      payment.id,
    ]);
    await rig.expectNotBefore([payment]);
    const { begin, submit } = pair(one, payment);
    await until('the gate to hold it', () => one.engine.gauges().waiting, (waiting) => waiting === 1); // prettier-ignore
    // Meanwhile a worker with right clocks starts, calls and records another payment.
    const well = await rig.engine();
    const other = await rig.pay();
    await rig.expectNotBefore([other]);
    await Promise.all(Object.values(pair(well, other)));
    expect(one.engine.gauges().gateBatches).toBe(0);
    expect(await rig.state(payment.id)).toBe('scheduled');
    one.database.tap('database-clock', (run) => run());
    await Promise.all([begin, submit]);
    expect(await rig.state(payment.id)).toBe('succeeded');
    expect(await earlyCharges()).toBe(0);
  });
});
