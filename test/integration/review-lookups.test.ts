import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { NewGenerations } from '../../src/review/new-generation.js';
import { Resolutions } from '../../src/review/resolution.service.js';
import { ReviewLookups, takeReviewLookups } from '../../src/submission/review-lookups.js';
import { testCipher } from '../support/builders.js';
import { ask, EngineRig, live, type TestEngine } from '../support/engine.js';
import { addEvidence, paymentIn } from '../support/payment-states.js';
import { until } from '../support/until.js';

/** While people decide, the provider is still asked: decisive evidence settles the payment (T20). */

let rig: EngineRig;
let one: TestEngine;
const loops: ReviewLookups[] = [];
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
});
afterEach(async () => {
  one.provider.aroundLookup = null;
  await Promise.all(loops.splice(0).map((loop) => loop.stop()));
});
afterAll(() => rig.stop());

/** A payment that ended in review because no lookup told anything. */
async function reviewed(submit: string): Promise<PaymentRow> {
  const payment = await rig.pay({ lane: await rig.addLane({}) });
  await rig.simulator.script(payment.id, 'submit', submit);
  one.provider.aroundLookup = () => Promise.resolve({ kind: 'cannot_tell', code: 'silent' });
  expect(await live(one, payment)).toBe('needs_review');
  one.provider.aroundLookup = null;
  return payment;
}

describe('a payment in review', () => {
  it('is settled by what the provider shows, its case closed and its workflow woken (T20)', async () => {
    const payment = await reviewed('reset_after');
    await rig.db.query(`DELETE FROM outbox WHERE payment_id = $1`, [payment.id]);
    expect(await one.engine.reviewLookup(payment.id)).toBe('settled');
    expect(await rig.state(payment.id)).toBe('succeeded');
    expect((await rig.rules(payment.id)).slice(-2)).toEqual(['T16', 'T20']);
    expect(await rig.openCases(payment.id)).toEqual([]);
    expect(await rig.db.query(`SELECT kind FROM outbox WHERE payment_id = $1`, [payment.id])).toEqual([
      { kind: 'wake' },
    ]);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  });

  it('that the provider shows pending is submitted again and polled to its end', async () => {
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    await rig.simulator.script(payment.id, 'submit', { kind: 'pending_then_final', lookups: 2 });
    one.provider.aroundSubmit = async (submit) => ({
      ...(await submit()),
      class: 'ambiguous',
      status: null,
      providerRef: null,
      code: 'reset',
    });
    one.provider.aroundLookup = () => Promise.resolve({ kind: 'cannot_tell', code: 'silent' });
    expect(await live(one, payment)).toBe('needs_review');
    one.provider.aroundSubmit = null;
    one.provider.aroundLookup = null;
    expect(await one.engine.reviewLookup(payment.id)).toBe('settled');
    expect(await rig.state(payment.id)).toBe('submitted');
    expect(await ask(one, payment.id)).toBe('succeeded');
    expect((await rig.rules(payment.id)).slice(-2)).toEqual(['T20', 'T17']);
  });

  it('is not failed by any number of silences; they are filed for the people', async () => {
    const payment = await reviewed('reset_before');
    for (let i = 0; i < 5; i++) expect(await one.engine.reviewLookup(payment.id)).toBe('filed');
    expect(await rig.state(payment.id)).toBe('needs_review');
    expect(
      (await rig.evidence(payment.id)).filter((e) => e === 'lookup:absent').length,
    ).toBeGreaterThanOrEqual(5);
    expect(await rig.openCases(payment.id)).toEqual(['inquiry_exhausted']);
  });

  it('shown with other money stays with the people, and is told', async () => {
    const payment = await reviewed('reset_after');
    await rig.simulator.script(payment.id, 'lookup', 'other_amount_after');
    expect(await one.engine.reviewLookup(payment.id)).toBe('filed');
    expect(await rig.state(payment.id)).toBe('needs_review');
    expect(one.events.of('contradiction').map((event) => event.args[0])).toContain(payment.id);
    // Once contradicted, a later plain hit does not decide either: people do.
    expect(await one.engine.reviewLookup(payment.id)).toBe('filed');
    expect(await rig.state(payment.id)).toBe('needs_review');
    // And they cannot call it the success of what was instructed.
    const [head] = await rig.db.query<{ version: number }>(`SELECT version FROM payment WHERE id = $1`, [
      payment.id,
    ]);
    const resolutions = new Resolutions(
      rig.db.as('payments_api'),
      { nudge: () => undefined },
      new NewGenerations({ get: () => one.provider }, testCipher),
    );
    const proposed = resolutions.propose(
      { tenantId: rig.tenant, actor: 'person:ada', hasSecondFactor: true },
      {
        paymentId: payment.id,
        version: head?.version ?? 0,
        proposal: {
          outcome: 'succeeded',
          reasonCode: 'provider_confirmed',
          evidenceIds: [],
          proof: { kind: 'provider_statement', statement: 'Mail of the provider.' },
        },
      },
    );
    await expect(proposed).rejects.toMatchObject({
      code: 'resolution_not_allowed',
      extra: { reason: 'other_money_seen' },
    });
  });

  it('after several were found is not settled by a lookup that shows one', async () => {
    const payment = await reviewed('reset_after');
    await addEvidence(rig.db.database, payment.id, { source: 'lookup', kind: 'found_many' });
    expect(await one.engine.reviewLookup(payment.id)).toBe('filed');
    expect(await rig.state(payment.id)).toBe('needs_review');
  });

  it.each(['unknown', 'submitted', 'succeeded', 'failed'] as const)(
    'only: one in %s is not asked about',
    async (state) => {
      const id = await paymentIn(state, rig.db.database, { tenant: rig.tenant, lane: rig.lane });
      expect(await one.engine.reviewLookup(id)).toBe('not_asked');
      expect(await rig.simulator.requests(id)).toEqual([]);
    },
  );

  it('of a class without lookups is not asked about', async () => {
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    const neither = await rig.engine({ provider: { profile: 'D' } });
    await rig.simulator.script(payment.id, 'submit', 'reset_after');
    expect(await live(neither, payment)).toBe('needs_review');
    expect(await neither.engine.reviewLookup(payment.id)).toBe('not_asked');
  });
});

describe('the loop of lookups in review', () => {
  it('asks when the hour is over, and not before', async () => {
    const payment = await reviewed('reset_after');
    await rig.db.query(
      `UPDATE payment SET next_action_at = clock_timestamp() + interval '1 hour' WHERE id = $1`,
      [payment.id],
    );
    const asked: string[] = [];
    const loop = new ReviewLookups(
      rig.db.database,
      (id) => Promise.resolve(asked.push(id)),
      one.events.sink,
      1,
      10,
    );
    loops.push(loop);
    loop.start();
    const other = await paymentIn('needs_review', rig.db.database, { tenant: rig.tenant, lane: rig.lane });
    await until('a lookup of the other', () => asked, (ids) => ids.includes(other)); // prettier-ignore
    expect(asked).not.toContain(payment.id);
    await rig.makeDue(payment);
    await until('a lookup', () => asked, (ids) => ids.includes(payment.id)); // prettier-ignore
  });

  it('takes each payment once an hour, by one of many workers', async () => {
    const ids = await Promise.all(
      Array.from({ length: 12 }, () =>
        paymentIn('needs_review', rig.db.database, { tenant: rig.tenant, lane: rig.lane }),
      ),
    );
    const taken = (
      await Promise.all([1, 2, 3, 4].map(() => takeReviewLookups(rig.db.database, 50, 3_600_000)))
    ).flat();
    expect(new Set(taken).size).toBe(taken.length);
    expect(ids.filter((id) => !taken.includes(id))).toEqual([]);
    expect(
      (await takeReviewLookups(rig.db.database, 50, 3_600_000)).filter((id) => ids.includes(id)),
    ).toEqual([]);
    const budget = await takeReviewLookups(rig.db.database, 0, 3_600_000);
    expect(budget).toEqual([]);
  });

  it('goes on after a lookup that fails', async () => {
    const ids = await Promise.all(
      [1, 2].map(() => paymentIn('needs_review', rig.db.database, { tenant: rig.tenant, lane: rig.lane })),
    );
    const asked: string[] = [];
    const loop = new ReviewLookups(
      rig.db.database,
      (id) => (asked.push(id), Promise.reject(new Error('the provider is away'))),
      one.events.sink,
      1,
      10,
    );
    loops.push(loop);
    loop.start();
    await until('both', () => asked, (seen) => ids.every((id) => seen.includes(id))); // prettier-ignore
    await until('faults', () => one.events.count('fault'), (count) => count >= 2); // prettier-ignore
  });
});
