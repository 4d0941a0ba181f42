import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { Claimer } from '../../src/submission/claimer.js';
import { claimAttempts } from '../../src/submission/submission.store.js';
import type { WorkerLease } from '../../src/submission/worker-lease.js';
import { armedFor, EngineRig, pair, type PaySeed, type TestEngine } from '../support/engine.js';
import { closeAttempt, openAttempt, seedWorker } from '../support/payment-states.js';
import { until } from '../support/until.js';

const HOUR_MS = 3_600_000;

let rig: EngineRig;
let one: TestEngine;
let worker: string;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
  worker = await seedWorker(rig.db.database);
});
afterAll(() => rig.stop());

/** Payments whose submission start is recorded and whose attempt nobody claimed. */
async function started(count: number, seed: PaySeed = {}): Promise<readonly PaymentRow[]> {
  const payments = await Promise.all(Array.from({ length: count }, () => rig.pay(seed)));
  const begins = await Promise.all(payments.map((p) => one.services.begin.beginSubmission(armedFor(p))));
  for (const answer of begins) expect(answer).toEqual({ kind: 'started' });
  return payments;
}

const claim = (payments: readonly Pick<PaymentRow, 'id'>[], by = worker, lifeMs = HOUR_MS) =>
  claimAttempts(rig.db.database, payments.map((p) => p.id), by, lifeMs); // prettier-ignore

async function expectUnclaimed(payment: PaymentRow): Promise<void> {
  expect((await claim([payment])).size).toBe(0);
  expect(await rig.attempts(payment.id)).toMatchObject([{ owner: null, called: false, closed: false }]);
}

describe('the claim of an open attempt', () => {
  it('goes to one of three workers that ask at once, for each of 90 attempts', async () => {
    const payments = await started(90);
    const workers = [worker, await seedWorker(rig.db.database), await seedWorker(rig.db.database)];
    const claims = await Promise.all(workers.map((by) => claim(payments, by)));
    const claimed = claims.flatMap((of) => [...of.keys()]);
    expect(claimed).toHaveLength(payments.length);
    expect(new Set(claimed)).toEqual(new Set(payments.map((p) => p.id)));
    for (const [i, of] of claims.entries()) {
      for (const [id, { owner, no, generation }] of of) {
        expect({ owner, no, generation }).toEqual({ owner: workers[i], no: 1, generation: 1 });
        expect(await rig.attempts(id)).toMatchObject([{ owner, called: true, closed: false }]);
      }
    }
  });

  it('is refused a second time, also to its own owner', async () => {
    const payments = await started(1);
    expect((await claim(payments)).size).toBe(1);
    expect((await claim(payments)).size).toBe(0);
    expect((await claim(payments, await seedWorker(rig.db.database))).size).toBe(0);
  });

  it('is refused when the attempt was closed, and given for the next one', async () => {
    const [payment] = (await started(1)) as [PaymentRow];
    await closeAttempt(rig.db.database, payment.id, 'not_sent');
    expect((await claim([payment])).size).toBe(0);
    await openAttempt(rig.db.database, payment.id, 2);
    expect((await claim([payment])).get(payment.id)).toMatchObject({ no: 2, generation: 1 });
  });

  it('is refused to a worker whose lease is over or that never had one', async () => {
    const [payment] = (await started(1)) as [PaymentRow];
    expect((await claim([payment], await seedWorker(rig.db.database, 0))).size).toBe(0);
    expect((await claim([payment], 'nobody')).size).toBe(0);
    await expectSuccessOf(payment);
  });

  it('is refused while the lane is paused', async () => {
    const lane = await rig.addLane({});
    const [payment] = (await started(1, { lane })) as [PaymentRow];
    await rig.db.query(`UPDATE lane SET paused = true WHERE lane = $1`, [lane]);
    await expectUnclaimed(payment);
    await rig.db.query(`UPDATE lane SET paused = false WHERE lane = $1`, [lane]);
    await expectSuccessOf(payment);
  });

  it('is refused past not_after', async () => {
    const [payment] = (await started(1, { notAfter: await rig.timeIn(1_500) })) as [PaymentRow];
    await until('the deadline', () => rig.deadlinePassed(payment.id), Boolean);
    await expectUnclaimed(payment);
  });

  it('is refused when the life of the key is over (DC-02)', async () => {
    const [payment] = (await started(1)) as [PaymentRow];
    await rig.db.query(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`, [
      payment.id,
    ]);
    await expectUnclaimed(payment);
  });

  it('is refused in every state but submitting', async () => {
    const [payment] = (await started(1)) as [PaymentRow];
    await rig.plant(`UPDATE payment SET state = 'unknown' WHERE id = '${payment.id}'`);
    await expectUnclaimed(payment);
    await rig.plant(`UPDATE payment SET state = 'submitting' WHERE id = '${payment.id}'`);
    await expectSuccessOf(payment);
  });

  it('starts the life of the key once: the next attempt does not lengthen it (DC-02)', async () => {
    const [payment] = (await started(1)) as [PaymentRow];
    const first = (await claim([payment])).get(payment.id);
    expect(first?.keyValidInMs).toBe(HOUR_MS);
    const valid = () =>
      rig.db.query<{ until: string; from_fence: number }>(
        `SELECT s.key_valid_until AS until,
                (extract(epoch FROM s.key_valid_until - a.call_started_at) * 1000)::double precision AS from_fence
           FROM submission s JOIN submission_attempt a USING (payment_id) WHERE payment_id = $1 AND a.no = 1`,
        [payment.id],
      );
    const [before] = await valid();
    expect(before?.from_fence).toBe(HOUR_MS);
    await closeAttempt(rig.db.database, payment.id, 'not_sent');
    await openAttempt(rig.db.database, payment.id, 2);
    const second = (await claim([payment], worker, 24 * HOUR_MS)).get(payment.id);
    expect(second?.no).toBe(2);
    expect(second?.keyValidInMs).toBeLessThan(HOUR_MS);
    expect(await valid()).toEqual([before]);
  });

  it('carries the stored request, not one built anew', async () => {
    const [payment] = (await started(1)) as [PaymentRow];
    const [stored] = await rig.db.query<Record<string, unknown>>(
      `SELECT provider_key, parameters, parameters_sha256, credential_id, account, base_url FROM submission
        WHERE payment_id = $1`,
      [payment.id],
    );
    expect((await claim([payment])).get(payment.id)).toMatchObject({
      providerKey: stored?.['provider_key'],
      parameters: stored?.['parameters'],
      parametersSha256: stored?.['parameters_sha256'],
      credentialId: stored?.['credential_id'],
      account: stored?.['account'],
      baseUrl: stored?.['base_url'],
      tenantId: rig.tenant,
    });
  });
});

/** The attempt was left claimable: a worker pays it now. */
async function expectSuccessOf(payment: PaymentRow): Promise<void> {
  const answer = await one.services.submit.submitPayment(armedFor(payment));
  expect(answer).toEqual({ kind: 'stopped', state: 'succeeded' });
  expect((await rig.simulator.effects(payment.id)).count).toBe(1);
}

describe('one worker', () => {
  it('hands an attempt out once when two of its submits ask in one batch', async () => {
    const [payment] = (await started(1)) as [PaymentRow];
    const claimer = new Claimer(rig.db.database, { id: worker } as WorkerLease, () => HOUR_MS);
    const claims = await Promise.all([1, 2, 3].map(() => claimer.claim('simulated', payment.id)));
    expect(claims.filter((c) => c !== null)).toHaveLength(1);
  });

  it('calls once when three submits of a started payment run at once', async () => {
    const [payment] = (await started(1)) as [PaymentRow];
    const submits = [1, 2, 3].map(() => one.services.submit.submitPayment(armedFor(payment)));
    expect(await Promise.all(submits)).toEqual(Array(3).fill({ kind: 'stopped', state: 'succeeded' }));
    expect((await rig.simulator.requests(payment.id)).length).toBe(1);
  });

  it('never has more calls under way than its lane allows, with every pair doubled', async () => {
    const lane = await rig.addLane({ cap: 3 });
    const capped = await rig.engine();
    const payments = await Promise.all(Array.from({ length: 12 }, () => rig.pay({ lane })));
    for (const { id } of payments) await rig.simulator.script(id, 'submit', { kind: 'slow', afterMs: 150 });
    const pairs = payments.flatMap((p) => [pair(capped, p), pair(capped, p)]);
    await Promise.all(pairs.flatMap(({ begin, submit }) => [begin, submit]));
    expect(capped.provider.submits).toHaveLength(payments.length);
    expect(capped.provider.mostUnderWay).toBe(3);
  });
});
