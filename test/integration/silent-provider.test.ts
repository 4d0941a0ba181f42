import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDatabaseGauges } from '../../src/metrics/database-gauges.js';
import { metricsText } from '../../src/metrics/metrics.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { createLogger } from '../../src/platform/logger.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { ReviewLookups } from '../../src/submission/review-lookups.js';
import { claimAttempts } from '../../src/submission/submission.store.js';
import { armedFor, EngineRig, live, type TestEngine } from '../support/engine.js';
import { seedWorker } from '../support/payment-states.js';
import { preparedFor } from '../support/prepared.js';
import { until } from '../support/until.js';

/** A provider that says nothing for as long as a key lives, or for the whole ladder. */

const KEY_LIFE_MS = 10_000;
const MARGIN_MS = 1_000;

let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start({ keyLifeMs: KEY_LIFE_MS });
});
afterAll(() => rig.stop());

const submitsOf = async ({ id }: PaymentRow): Promise<number> =>
  (await rig.simulator.requests(id)).filter((request) => request.operation === 'submit').length;

/** The provider accepts, and every worker stops before anybody writes it down. */
async function acceptedThenStopped(on: TestEngine): Promise<PaymentRow> {
  const payment = await rig.pay({ lane: await rig.addLane({}) });
  await on.services.begin.beginSubmission(armedFor(payment));
  const worker = await seedWorker(rig.db.database);
  const claim = (await claimAttempts(rig.db.database, [payment.id], worker, KEY_LIFE_MS - MARGIN_MS)).get(
    payment.id,
  );
  if (!claim) throw new Error('the worker that stops could claim nothing');
  const answer = await on.provider.submit(preparedFor(on, payment).submission, {
    paymentId: payment.id,
    generation: claim.generation,
    attempt: claim.no,
    providerKey: claim.providerKey,
    commitTry: 1,
    deadlineMs: 5_000,
    mayWrite: () => true,
  });
  expect(answer.class).toBe('accepted');
  await rig.db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() WHERE id = $1`, [worker]);
  return payment;
}

describe('workers that stop for longer than a key lives (DC-02)', () => {
  it('send nothing after it: a lookup adopts the payment, or a case is open; it was paid once', async () => {
    const short = { keyLifeMs: KEY_LIFE_MS, keyMarginMs: MARGIN_MS };
    const honest = await rig.engine({ provider: short });
    const lied = await rig.engine({ provider: short });
    lied.provider.aroundLookup = () => Promise.resolve({ kind: 'absent', by: ['reference'] });
    const blind = await rig.engine({ provider: { profile: 'B', ...short } });
    const stories = [
      [honest, 'succeeded', await acceptedThenStopped(honest)],
      [lied, 'needs_review', await acceptedThenStopped(lied)],
      [blind, 'needs_review', await acceptedThenStopped(blind)],
    ] as const;
    // The workers are away until the key is over here, and forgotten there.
    for (const [, , payment] of stories)
      await until('the end of the key', () => rig.isKeyOver(payment), Boolean);
    await rig.simulator.advanceClock(KEY_LIFE_MS);
    for (const [on, end, payment] of stories) {
      await closeAbandoned(rig.db.database, [payment.id], 'sweep');
      expect(await live(on, payment)).toBe(end);
      expect(await submitsOf(payment)).toBe(1);
      expect((await rig.simulator.effects(payment.id)).count).toBe(1);
      expect(await rig.history(payment.id)).not.toContain('failed');
      if (end === 'needs_review') expect(await rig.openCases(payment.id)).toEqual(['inquiry_exhausted']);
    }
  });
});

describe('a provider that is silent for the whole ladder, then honest (P7)', () => {
  it('fails nothing meanwhile, calls people and raises the alert, and settles the payment from review', async () => {
    const on = await rig.engine({ ladderDivisor: 60 });
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    await rig.simulator.plan({
      scripts: [
        { reference: payment.id, submit: ['reset_after'], lookup: [{ kind: 'lookup_500', times: 'always' }] },
      ],
    });
    expect(await live(on, payment)).toBe('needs_review');
    expect(await rig.history(payment.id)).toEqual(['scheduled', 'submitting', 'unknown', 'needs_review']);
    const lookups = (await rig.evidence(payment.id)).filter((kind) => kind === 'lookup:cannot_tell');
    expect(lookups.length).toBeGreaterThanOrEqual(5);

    const gauges = startDatabaseGauges({
      sql: rig.db.as('payments_read'),
      log: createLogger({ level: 'silent', name: 'test' }),
    });
    expect(await gauges.refresh()).toBe(true);
    await gauges.stop();
    expect(await metricsText()).toMatch(/payments_review_open\{reason="inquiry_exhausted"\} [1-9]/);

    await rig.simulator.plan({ replace: true });
    await rig.makeDue(payment);
    const loop = new ReviewLookups(
      rig.db.database,
      (id) => on.engine.reviewLookup(id),
      on.events.sink,
      60,
      20,
    );
    loop.start();
    await until('the settlement from review', () => rig.state(payment.id), (state) => state === 'succeeded'); // prettier-ignore
    await loop.stop();
    expect((await rig.rules(payment.id)).slice(-2)).toEqual(['T16', 'T20']);
    expect(await rig.openCases(payment.id)).toEqual([]);
    expect(await submitsOf(payment)).toBe(1);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  }, 90_000);
});
