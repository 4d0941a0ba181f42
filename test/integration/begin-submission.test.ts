import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SubmissionEvents } from '../../src/submission/submission-events.js';
import { armedFor, EngineRig, pair, type TestEngine } from '../support/engine.js';

let rig: EngineRig;
let one: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
});
afterAll(() => rig.stop());

describe('a payment that is due', () => {
  it('is charged once, and its history and attempt say so', async () => {
    const payment = await rig.pay({ inMs: 300 });
    await rig.expectNotBefore([payment]);
    const { begin, submit } = pair(one, payment);
    expect(await submit).toEqual({ kind: 'stopped', state: 'succeeded' });
    expect(await begin).toEqual({ kind: 'started' });
    const { count, charges } = await rig.simulator.effects(payment.id);
    expect(count).toBe(1);
    expect(charges[0]).toMatchObject({ amount: 1_999, currency: 'EUR', destination: 'acct_test' });
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T9']);
    expect(await rig.attempts(payment.id)).toMatchObject([
      { generation: 1, no: 1, called: true, closed: true, evidence: 'accepted' },
    ]);
    expect((await rig.simulator.early()).count).toBe(0);
  });

  it('is started once when its pair is armed twice on one worker', async () => {
    const payment = await rig.pay({ inMs: 300 });
    const pairs = [pair(one, payment), pair(one, payment)];
    const begins = await Promise.all(pairs.map(({ begin }) => begin));
    const submits = await Promise.all(pairs.map(({ submit }) => submit));
    expect(begins).toEqual([{ kind: 'started' }, { kind: 'started' }]);
    expect(submits).toEqual(Array(2).fill({ kind: 'stopped', state: 'succeeded' }));
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T9']);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
  });

  it('is not called while only its begin runs, and is called by a submit that comes later', async () => {
    const payment = await rig.pay();
    expect(await one.services.begin.beginSubmission(armedFor(payment))).toEqual({ kind: 'started' });
    expect(await rig.attempts(payment.id)).toMatchObject([{ owner: null, called: false, closed: false }]);
    expect((await rig.simulator.requests(payment.id)).length).toBe(0);
    const submitted = await one.services.submit.submitPayment(armedFor(payment));
    expect(submitted).toEqual({ kind: 'stopped', state: 'succeeded' });
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
  });

  it('answers the repeat of a finished pair by its state, and sends nothing again', async () => {
    const payment = await rig.pay();
    await Promise.all(Object.values(pair(one, payment)));
    const again = pair(one, payment);
    expect(await again.begin).toEqual({ kind: 'stopped', state: 'succeeded' });
    expect(await again.submit).toEqual({ kind: 'stopped', state: 'succeeded' });
    expect((await rig.simulator.requests(payment.id)).length).toBe(1);
  });
});

describe('a payment that must not start', () => {
  it('answers held to the pair of a held payment, which is never called', async () => {
    const payment = await rig.pay();
    await rig.move(payment, 'T3', 'hold');
    const { begin, submit } = pair(one, payment);
    expect(await begin).toEqual({ kind: 'held', version: 2 });
    expect(await submit).toMatchObject({ kind: 'held', version: 2 });
    expect((await rig.simulator.requests(payment.id)).length).toBe(0);
  });

  it('is held when its request cannot be built, only once it is due, and nothing is sent', async () => {
    const payment = await rig.pay({ inMs: 400, destination: 'x'.repeat(300) });
    const { begin, submit } = pair(one, payment);
    expect(await rig.state(payment.id)).toBe('scheduled');
    expect(await begin).toEqual({ kind: 'held', version: 2 });
    expect(await submit).toEqual({ kind: 'held', version: 2 });
    const [moved] = await rig.db.query<{ cause: string; late: boolean }>(
      `SELECT t.cause, t.at >= p.execute_at AS late FROM payment_transition t JOIN payment p ON p.id = t.payment_id
        WHERE p.id = $1 AND t.seq = 2`,
      [payment.id],
    );
    expect(moved).toEqual({ cause: 'prepare_failed', late: true });
    expect(one.events.of('prepareFailed').map((e) => e.args[0])).toContain(payment.id);
    expect(await rig.attempts(payment.id)).toEqual([]);
  });

  it('answers not_due with the newest times to a pair of an older version', async () => {
    const payment = await rig.pay({ inMs: 60_000 });
    await rig.move(payment, 'T3', 'hold');
    await rig.move(payment, 'T4', 'release');
    const { begin, submit } = pair(one, payment);
    expect(await begin).toMatchObject({ kind: 'not_due', version: 3 });
    expect(await submit).toMatchObject({ kind: 'not_due', version: 3 });
  });

  it('answers not_due at once when it is due more than 130 s from now', async () => {
    const payment = await rig.pay({ inMs: 140_000 });
    const { begin, submit } = pair(one, payment);
    const answer = await begin;
    expect(answer).toMatchObject({ kind: 'not_due', version: 1 });
    expect(await submit).toMatchObject({ kind: 'not_due', version: 1 });
    if (answer.kind === 'not_due') expect(answer.dueInMs - answer.armInMs).toBe(3_000);
  });

  it('throws for an id that this database does not have: it was restored, or is another one', async () => {
    const ghost = armedFor({ id: `pay_${'a'.repeat(32)}`, lane: rig.lane, version: 1 });
    await expect(one.services.begin.beginSubmission(ghost)).rejects.toThrow(/does not exist here/);
    await expect(one.services.submit.submitPayment(ghost)).rejects.toThrow(/does not exist here/);
  });
});

describe('a payment that is rescheduled while armed', () => {
  it('to later: the old pair learns the new times, the new one starts it at its new time', async () => {
    const payment = await rig.pay({ inMs: 400 });
    const old = pair(one, payment);
    const version = await rig.reschedule(payment, 900);
    await rig.expectNotBefore([payment]);
    const renewed = pair(one, { ...payment, version });
    // An old not_due must not end the new wait.
    expect(await old.begin).toMatchObject({ kind: 'not_due', version });
    expect(await old.submit).toMatchObject({ kind: 'not_due', version });
    expect(await renewed.submit).toEqual({ kind: 'stopped', state: 'succeeded' });
    expect(await renewed.begin).toEqual({ kind: 'started' });
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    expect((await rig.simulator.early()).count).toBe(0);
  });

  it('to earlier: the new pair starts it, and the old one ends with it instead of waiting on', async () => {
    const payment = await rig.pay({ inMs: 60_000 });
    const read = Promise.withResolvers<void>();
    const untap = one.database.tap('payment-instruction', async (run) => {
      const rows = await run();
      read.resolve();
      return rows;
    });
    const old = pair(one, payment);
    // It must have read the old time: armed alone, it may still be on its way to the row.
    await read.promise;
    untap();
    const version = await rig.reschedule(payment, 200);
    await rig.expectNotBefore([payment]);
    const renewed = pair(one, { ...payment, version });
    const stopped = { kind: 'stopped', state: 'succeeded' };
    expect(await renewed.submit).toEqual(stopped);
    expect(await old.begin).toEqual(stopped);
    expect(await old.submit).toEqual(stopped);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    expect((await rig.simulator.early()).count).toBe(0);
  });

  it('to almost the same time: both pairs wait in the gate together, and it is started once', async () => {
    const payment = await rig.pay({ inMs: 500 });
    const old = pair(one, payment);
    const version = await rig.reschedule(payment, 300);
    await rig.expectNotBefore([payment]);
    const renewed = pair(one, { ...payment, version });
    const ends = await Promise.all([old.begin, old.submit, renewed.begin, renewed.submit]);
    for (const end of ends) expect(['started', 'stopped', 'not_due']).toContain(end.kind);
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T2', 'T7', 'T9']);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    expect((await rig.simulator.early()).count).toBe(0);
  });
});

describe('300 payments due at one instant', () => {
  it('are charged once each, with every pair doubled, and those cancelled while armed never (DC-03)', async () => {
    const payments = await rig.payMany(300, 2_000);
    await rig.expectNotBefore(payments);
    const isCancelled = new Set(payments.filter((_, i) => i % 10 === 0).map((p) => p.id));
    const lives = payments.flatMap((payment) => {
      const pairs = [pair(one, payment), pair(one, payment)];
      return pairs.flatMap(({ begin, submit }) => [begin, submit]);
    });
    for (const paymentId of isCancelled) {
      const answer = await one.services.commands.cancelPayment({ paymentId });
      expect(answer).toEqual({ kind: 'stopped', state: 'cancelled' });
    }
    await Promise.all(lives);
    const effects = await rig.simulator.allEffects();
    const charged = new Set(effects.charges.map((charge) => charge.reference.split('/')[0]));
    expect(effects.duplicates).toEqual([]);
    for (const { id } of payments) expect(charged.has(id)).toBe(!isCancelled.has(id));
    expect((await rig.simulator.early()).count).toBe(0);
    expect(one.engine.gauges()).toMatchObject({ armed: 0, waiting: 0, results: 0 });
    expect(await rig.breaches()).toEqual([]);
  });

  it('are counted move by move as their history says', async () => {
    const told = new Map<string, number>();
    for (const { args } of one.events.of('moved')) {
      const { from, to, cause, count = 1 } = args[0] as Parameters<SubmissionEvents['moved']>[0];
      const edge = `${from}>${to}:${cause}`;
      told.set(edge, (told.get(edge) ?? 0) + count);
    }
    const stored = await rig.db.query<{ edge: string; count: number }>(
      `SELECT from_state || '>' || to_state || ':' || cause AS edge, count(*)::integer AS count
         FROM payment_transition WHERE actor LIKE 'worker:%' OR actor = 'temporal' GROUP BY 1`,
    );
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(stored.map((r) => [r.edge, r.count])));
  });
});
