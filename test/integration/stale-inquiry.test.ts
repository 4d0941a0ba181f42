import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LookupAnswer } from '../../src/providers/payment-provider.js';
import { armedFor, EngineRig, pair } from '../support/engine.js';
import {
  claimAttempt,
  closeAttempt,
  openAttempt,
  openGeneration,
  seedWorker,
  step,
} from '../support/payment-states.js';
import type { FaultInput } from '../support/simulator.js';
import { Latch } from '../support/tapped-database.js';

/** A worker froze between the provider's answer and the database, and goes on when all is different. */

let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start();
});
afterAll(() => rig.stop());

describe('an inquiry that slept while the payment got a new generation', () => {
  const POLL = ", next_action_at = clock_timestamp() + interval '1 hour'";

  /** People escalate it and send it again under a new key, whose call ends ambiguous, too. */
  async function sentAnew(id: string): Promise<void> {
    const sql = rig.db.database;
    await step(sql, id, { rule: 'T16', set: POLL });
    await rig.plant(`ALTER TABLE submission DISABLE TRIGGER ALL;
      UPDATE submission SET proof = 'statement' WHERE payment_id = '${id}'; ALTER TABLE submission ENABLE TRIGGER ALL`);
    await openGeneration(sql, id, 2);
    await step(sql, id, { rule: 'T19', set: POLL });
    await openAttempt(sql, id, 1, 2);
    await claimAttempt(sql, id, await seedWorker(sql));
    await closeAttempt(sql, id, 'ambiguous');
    await step(sql, id, { rule: 'T13', set: POLL });
  }

  /** An inquiry of generation 1 that has its answer, and goes on when the test says so. */
  async function asleep(submit: FaultInput, answer?: LookupAnswer, before?: (id: string) => Promise<void>) {
    const stale = await rig.engine();
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', submit);
    expect(await pair(stale, payment).submit).toMatchObject({ kind: 'outcome_open' });
    const seen = new Latch();
    const wake = new Latch();
    stale.provider.aroundLookup = async (lookup) => {
      const told = answer ?? (await lookup());
      seen.open();
      await wake.wait();
      return told;
    };
    await before?.(payment.id);
    await rig.makeDue(payment);
    const late = stale.services.inquiry.inquire({ paymentId: payment.id });
    await seen.wait();
    return { payment, late, wake, stale };
  }

  it('decides nothing by what it saw of the old one: people do', async () => {
    const { payment, late, wake, stale } = await asleep('reset_after');
    await sentAnew(payment.id);
    wake.open();
    expect(await late).toEqual({ kind: 'review' });
    expect((await rig.rules(payment.id)).slice(-2)).toEqual(['T13', 'T16']);
    expect(await rig.openCases(payment.id)).toEqual(['other_generation']);
    expect((await rig.evidence(payment.id)).at(-1)).toBe('lookup:found');
    expect(stale.events.of('contradiction').map((event) => event.args[0])).toContain(payment.id);
  });

  it('opens a case when the new one is final meanwhile, and keeps its state', async () => {
    const { payment, late, wake } = await asleep('reset_after');
    await sentAnew(payment.id);
    await step(rig.db.database, payment.id, { rule: 'T14', to: 'succeeded' });
    wake.open();
    expect(await late).toMatchObject({ kind: 'undecided' });
    expect(await rig.state(payment.id)).toBe('succeeded');
    expect(await rig.openCases(payment.id)).toEqual(['other_generation']);
  });

  it('that saw another payment under its reference opens a case when it is too late to stop', async () => {
    const { payment, late, wake } = await asleep('reset_after', { kind: 'found_many', count: 2 });
    await sentAnew(payment.id);
    await step(rig.db.database, payment.id, { rule: 'T14', to: 'succeeded' });
    wake.open();
    expect(await late).toMatchObject({ kind: 'undecided' });
    expect(await rig.openCases(payment.id)).toEqual(['found_many']);
    await rig.db.query(`UPDATE lane SET paused = false WHERE lane = $1`, [rig.lane]);
  });

  it('does not end the ladder of the new one by the age of the old one', async () => {
    const silent: LookupAnswer = { kind: 'cannot_tell', code: 'silent' };
    const { payment, late, wake } = await asleep('reset_after', silent, (id) =>
      rig.plant(`ALTER TABLE submission_attempt DISABLE TRIGGER ALL;
        UPDATE submission_attempt SET closed_at = closed_at - interval '1 day' WHERE payment_id = '${id}';
        ALTER TABLE submission_attempt ENABLE TRIGGER ALL`),
    );
    await sentAnew(payment.id);
    wake.open();
    expect(await late).toMatchObject({ kind: 'undecided' });
    expect(await rig.state(payment.id)).toBe('unknown');
  });
});

describe('a silence that was heard before the last attempt', () => {
  /** Frozen when the provider said `absent` after attempt 1; attempt 2 was made since, and is unknown too. */
  async function overslept() {
    const stale = await rig.engine();
    const other = await rig.engine();
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', 'reset_before', 'reset_after');
    expect(await pair(stale, payment).submit).toMatchObject({ kind: 'outcome_open' });
    const seen = new Latch();
    const wake = new Latch();
    stale.provider.aroundLookup = async (lookup) => {
      const told = await lookup();
      seen.open();
      await wake.wait();
      return told;
    };
    await rig.makeDue(payment);
    const late = stale.services.inquiry.inquire({ paymentId: payment.id });
    await seen.wait();
    expect(await other.services.inquiry.inquire({ paymentId: payment.id })).toEqual({ kind: 'resend' });
    expect(await other.services.submit.submitPayment(armedFor(payment))).toMatchObject({
      kind: 'outcome_open',
    });
    wake.open();
    return { payment, answer: await late };
  }

  it('opens no third attempt: nobody looked since the second', async () => {
    const { payment, answer } = await overslept();
    expect(answer).toMatchObject({ kind: 'undecided' });
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T15', 'T13']);
    expect(await rig.attempts(payment.id)).toHaveLength(2);
  });

  it('is filed with the time of the question, not of the filing', async () => {
    const { payment } = await overslept();
    const [row] = await rig.db.query(
      `SELECT bool_and(e.at < a.closed_at) AS before FROM evidence e
         JOIN submission_attempt a ON a.payment_id = e.payment_id AND a.no = 2
        WHERE e.payment_id = $1 AND e.kind = 'absent'`,
      [payment.id],
    );
    expect(row).toEqual({ before: true });
  });
});
