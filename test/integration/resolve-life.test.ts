import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { escalateToReview } from '../../src/payments/review-moves.js';
import { NewGenerations } from '../../src/review/new-generation.js';
import { Resolutions } from '../../src/review/resolution.service.js';
import type { Proposal } from '../../src/review/resolution.js';
import { testDigest, testEncryption } from '../support/builders.js';
import { databaseCipher } from '../support/ciphers.js';
import { EngineRig, live, pair, type TestEngine } from '../support/engine.js';

/** From an ambiguous call through the decision of two people to the worker's next call. */

let rig: EngineRig;
let one: TestEngine;
let resolutions: Resolutions;
beforeAll(async () => {
  rig = await EngineRig.start();
  const keys = { encryption: testEncryption, digest: testDigest };
  const worker = databaseCipher(keys, rig.db.database);
  one = await rig.engine({
    cipher: { openParameters: (of) => worker.openParameters(of) },
  });
  // One connection, and no key in memory: what the transaction needs was read before it began.
  const api = rig.db.as('payments_api', 'api', 1);
  const cipher = databaseCipher(keys, api.ofTenant(rig.tenant));
  const generations = new NewGenerations({ get: () => one.provider }, cipher);
  resolutions = new Resolutions(api, { nudge: () => undefined }, generations);
});
afterAll(() => rig.stop());

const person = (name: string) => ({
  tenantId: rig.tenant,
  actor: `person:${name}`,
  hasSecondFactor: true,
});

/** A payment whose first call ended before the provider saw it, and which nobody could find out. */
async function inReview(): Promise<PaymentRow> {
  const payment = await rig.pay();
  await rig.simulator.plan({ scripts: [{ reference: payment.id, submit: ['reset_before'] }] });
  const { begin, submit } = pair(one, payment);
  expect(await submit).toMatchObject({ kind: 'outcome_open' });
  await begin;
  const result = await rig.db.database.transaction((tx) =>
    escalateToReview(tx, { tenant: rig.tenant, paymentId: payment.id, reason: 'operator', actor: 'test' }),
  );
  expect(result.kind).toBe('moved');
  return payment;
}

async function decide(payment: PaymentRow, proposal: Proposal): Promise<void> {
  const [row] = await rig.db.query<{ version: number }>(`SELECT version FROM payment WHERE id = $1`, [
    payment.id,
  ]);
  const { id: paymentId } = payment;
  const proposed = await resolutions.propose(person('ada'), {
    paymentId,
    version: row?.version ?? 0,
    proposal,
  });
  const approval = { paymentId, resolutionId: proposed.id, expectedVersion: null };
  await resolutions.approve(person('grace'), approval);
}

const keysOf = async ({ id }: PaymentRow): Promise<number> => {
  const requests = await rig.simulator.requests(id);
  return new Set(requests.filter((r) => r.operation === 'submit').map((r) => r.key)).size;
};

describe('a payment that two people send again', () => {
  it('under the same key is called by the worker once more, and charged once (T19)', async () => {
    const payment = await inReview();
    await decide(payment, {
      outcome: 'resend',
      reasonCode: 'safe_under_same_key',
      evidenceIds: [],
      proof: null,
    });
    expect(await rig.state(payment.id)).toBe('submitting');
    expect(await live(one, payment)).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T16', 'T19', 'T11', 'T9']);
    expect(await keysOf(payment)).toBe(1);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  });

  it('under another key after a written proof is called under that key alone, and charged once (T19)', async () => {
    const payment = await inReview();
    await rig.db.query('ALTER TABLE submission_attempt DISABLE TRIGGER submission_attempt_closed');
    await rig.db.query(
      `UPDATE submission_attempt SET call_started_at = call_started_at - interval '1 day' WHERE payment_id = $1`,
      [payment.id],
    );
    await rig.db.query('ALTER TABLE submission_attempt ENABLE ALWAYS TRIGGER submission_attempt_closed');
    await decide(payment, {
      outcome: 'resend_new_generation',
      reasonCode: 'proven_not_executed',
      evidenceIds: [],
      proof: { kind: 'provider_statement', statement: 'Mail of the provider: never received.' },
    });
    expect(await live(one, payment)).toBe('succeeded');
    expect((await rig.attempts(payment.id)).map((a) => [a.generation, a.no, a.evidence])).toEqual([
      [1, 1, 'ambiguous'],
      [2, 1, 'accepted'],
    ]);
    expect(await keysOf(payment)).toBe(2);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    const breaches = await rig.breachesOf(payment.id);
    // The call was made a day older than it was: nothing else is wrong.
    expect(breaches.filter((breach) => breach.invariant !== 1)).toEqual([]);
  });
});
