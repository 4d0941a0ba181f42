import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { PaymentReturns } from '../../src/payments/payment-returns.service.js';
import { ProviderNews } from '../../src/payments/provider-news.service.js';
import { escalateToReview } from '../../src/payments/review-moves.js';
import { contradictByLine } from '../../src/payments/settlement-moves.js';
import { NewGenerations } from '../../src/review/new-generation.js';
import { Resolutions } from '../../src/review/resolution.service.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { giveUpNotSent, retryNotSent } from '../../src/submission/resend.store.js';
import { closeUnclaimed } from '../../src/submission/sweep.store.js';
import { claimAttempts } from '../../src/submission/submission.store.js';
import { ProcessEvent, type EventVerdict } from '../../src/webhooks/incoming/process-event.service.js';
import { ReceiveWebhook } from '../../src/webhooks/incoming/receive-webhook.service.js';
import { takeEvents } from '../../src/webhooks/incoming/webhook-inbox.store.js';
import { testCipher } from '../support/builders.js';
import { EngineRig, live, pair, type TestEngine } from '../support/engine.js';
import { addEvidence, claimAttempt, seedWorker } from '../support/payment-states.js';
import { eventBody, newSecret, signed, type EventSeed } from '../support/webhook-rig.js';

/**
 * Two people had a payment sent again under another key, because nothing was executed under the first.
 * That was wrong: news that the first was paid comes before the second call, and keeps it from going out.
 */

let rig: EngineRig;
let one: TestEngine;
let resolutions: Resolutions;
let receive: ReceiveWebhook;
let processing: ProcessEvent;
const secret = newSecret();

beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine({ provider: { descriptor: { webhooks: 'standard_webhooks' } } });
  const { database } = rig.db;
  const nobody = { nudge: () => undefined };
  resolutions = new Resolutions(
    rig.db.as('payments_api'),
    nobody,
    new NewGenerations({ get: () => one.provider }, testCipher),
  );
  receive = new ReceiveWebhook({
    sql: database,
    providers: { get: () => one.provider },
    cipher: testCipher,
    secrets: new Map([[`${one.provider.name}/${one.provider.account}`, [secret]]]),
  });
  const news = new ProviderNews(database, 30_000);
  const returns = new PaymentReturns(database, nobody);
  processing = new ProcessEvent({ sql: database, news, returns, cipher: testCipher });
});
afterAll(() => rig.stop());

const person = (name: string) => ({ tenantId: rig.tenant, actor: `person:${name}`, hasSecondFactor: true });

/** In `submitting` by T19 for generation 2, which waits for its paused lane. */
async function waiting(): Promise<PaymentRow> {
  const payment = await rig.pay({ lane: await rig.addLane({}) });
  const { id: paymentId } = payment;
  await rig.simulator.plan({ scripts: [{ reference: paymentId, submit: ['reset_before'] }] });
  const { begin, submit } = pair(one, payment);
  expect(await submit).toMatchObject({ kind: 'outcome_open' });
  await begin;
  await rig.db.database.transaction((tx) =>
    escalateToReview(tx, { tenant: rig.tenant, paymentId, reason: 'operator', actor: 'test' }),
  );
  await rig.db.query(`ALTER TABLE submission_attempt DISABLE TRIGGER submission_attempt_closed`);
  await rig.db.query(
    `UPDATE submission_attempt SET call_started_at = call_started_at - interval '1 day' WHERE payment_id = $1`,
    [paymentId],
  );
  await rig.db.query(`ALTER TABLE submission_attempt ENABLE ALWAYS TRIGGER submission_attempt_closed`);
  await rig.db.query(`UPDATE lane SET paused = true WHERE lane = $1`, [payment.lane]);
  const [head] = await rig.db.query<{ version: number }>(`SELECT version FROM payment WHERE id = $1`, [
    paymentId,
  ]);
  const proposed = await resolutions.propose(person('ada'), {
    paymentId,
    version: head?.version ?? 0,
    proposal: {
      outcome: 'resend_new_generation',
      reasonCode: 'proven_not_executed',
      evidenceIds: [],
      proof: { kind: 'provider_statement', statement: 'Mail of the provider: never received.' },
    },
  });
  await resolutions.approve(person('grace'), { paymentId, resolutionId: proposed.id, expectedVersion: null });
  expect(await rig.state(paymentId)).toBe('submitting');
  return payment;
}

const resume = ({ lane }: PaymentRow) =>
  rig.db.query(`UPDATE lane SET paused = false WHERE lane = $1`, [lane]);

/** The resume lets the worker open generation 2 / attempt 1; nobody has claimed it. */
async function opened(): Promise<PaymentRow> {
  const payment = await waiting();
  await resume(payment);
  const worker = await seedWorker(rig.db.database);
  expect(await retryNotSent(rig.db.database, payment.lane, worker, [payment.id])).toEqual(
    new Set([payment.id]),
  );
  return payment;
}

/** A signed event is received and processed. @param ageMs as if it had come that long ago. */
async function told(payment: PaymentRow, seed: EventSeed = {}, ageMs = 0): Promise<EventVerdict> {
  const body = eventBody(payment.id, { generation: 1, ...seed });
  await receive.receive('simulated', Buffer.from(body), signed(body, secret));
  return again(ageMs);
}

async function again(ageMs: number): Promise<EventVerdict> {
  await rig.db.query(
    `UPDATE webhook_inbox SET taken_until = NULL, next_try_at = now() WHERE processed_at IS NULL`,
  );
  const [row] = await takeEvents(rig.db.database, 'simulated', 1, 60_000);
  if (!row) throw new Error('the test has no event to process');
  const verdict = await processing.process(one.provider, { ...row, ageMs });
  if (verdict.kind === 'done') {
    await rig.db.query(`UPDATE webhook_inbox SET processed_at = clock_timestamp() WHERE id = $1`, [row.id]);
  }
  return verdict;
}

const CONTRADICTION = { kind: 'done', result: 'contradiction' };
const PAID = {
  source: 'lookup',
  kind: 'found',
  status: 'succeeded',
  amount: 1_999n,
  currency: 'EUR',
} as const;

/** The keys under which the provider was asked to pay. */
async function keysOf({ id }: PaymentRow): Promise<number> {
  const requests = await rig.simulator.requests(id);
  return new Set(requests.filter((r) => r.operation === 'submit').map((r) => r.key)).size;
}

async function expectKeptBack(payment: PaymentRow, reason = 'other_generation'): Promise<void> {
  expect(await rig.state(payment.id)).toBe('needs_review');
  expect(await rig.openCases(payment.id)).toEqual([reason]);
  await resume(payment);
  expect(await live(one, payment)).toBe('needs_review');
  expect(await keysOf(payment)).toBe(1);
  const breaches = await rig.breachesOf(payment.id);
  // The first call was made a day older than it was: nothing else is wrong.
  expect(breaches.filter((breach) => breach.invariant !== 1)).toEqual([]);
}

describe('a generation that waits, and news that the one before was paid', () => {
  it.each([
    ['at once', 0],
    ['after sixteen minutes', 16 * 60_000],
  ])('by an event that is processed %s: goes to people and not to the provider', async (_when, ageMs) => {
    const payment = await waiting();
    expect(await told(payment, {}, ageMs)).toEqual(CONTRADICTION);
    await expectKeptBack(payment);
    expect((await rig.rules(payment.id)).slice(-2)).toEqual(['T19', 'T16']);
  });

  it('by an event of money that came back: goes to people', async () => {
    const payment = await waiting();
    const returned = { id: `ret_${payment.id.slice(-8)}`, amount: 1_999 };
    expect(await told(payment, { returned })).toEqual(CONTRADICTION);
    await expectKeptBack(payment);
  });

  it('by a line of a settlement file: goes to people', async () => {
    const payment = await waiting();
    const line = {
      ...{ paymentId: payment.id, provider: 'simulated', generation: 1, providerRef: null },
      ...{ amountMinor: 1_999n, currency: 'EUR', kind: 'unexpected_at_provider', code: 'other_generation' },
    };
    const result = await rig.db.database.transaction((tx) =>
      contradictByLine(tx, line, 'unexpected_at_provider'),
    );
    expect(result).toEqual({ escalatedFrom: 'submitting', caseOpened: true });
    await expectKeptBack(payment, 'unexpected_at_provider');
  });

  it('with an attempt that nobody claimed: the attempt is closed as not sent, and cannot be claimed', async () => {
    const payment = await opened();
    expect(await told(payment)).toEqual(CONTRADICTION);
    expect((await rig.attempts(payment.id)).at(-1)).toMatchObject({
      generation: 2,
      called: false,
      evidence: 'not_sent',
      code: 'other_generation',
    });
    await expectKeptBack(payment);
  });

  it('by a row of evidence alone: is not opened, and the next try brings it to people', async () => {
    const payment = await waiting();
    await addEvidence(rig.db.database, payment.id, PAID);
    await resume(payment);
    const worker = await seedWorker(rig.db.database);
    expect((await retryNotSent(rig.db.database, payment.lane, worker, [payment.id])).size).toBe(0);
    expect(await live(one, payment)).toBe('needs_review');
    await expectKeptBack(payment);
  });

  it.each([
    ['pending at the provider', { ...PAID, status: 'pending' }],
    ['accepted, told late', { source: 'late_answer', kind: 'accepted' }],
    ['in a settlement file', { source: 'settlement', kind: 'unexpected_at_provider' }],
    ['found with other money', { source: 'lookup', kind: 'found_other' }],
  ] as const)('by a row of evidence alone, %s: its open attempt cannot be claimed', async (_what, seen) => {
    const payment = await opened();
    await addEvidence(rig.db.database, payment.id, seen);
    const worker = await seedWorker(rig.db.database);
    expect((await claimAttempts(rig.db.database, [payment.id], worker, 60_000)).size).toBe(0);
    // Nobody waits for its deadline: the sweep closes it and tells people.
    expect(await closeUnclaimed(rig.db.database)).toContain(payment.id);
    await giveUpNotSent(rig.db.database, [payment.id], 'sweep');
    await expectKeptBack(payment);
  });

  it.each([
    ['refused', { ...PAID, status: 'failed' }],
    ['inert', { ...PAID, status: 'inert' }],
    ['absent', { source: 'lookup', kind: 'absent' }],
  ] as const)('that says it was %s: is sent', async (_what, seen) => {
    const payment = await opened();
    await addEvidence(rig.db.database, payment.id, seen);
    expect(await live(one, payment)).toBe('succeeded');
    expect(await keysOf(payment)).toBe(2);
  });

  it('never fails for its deadline: it is paid, and people say so', async () => {
    const payment = await waiting();
    await addEvidence(rig.db.database, payment.id, PAID);
    const ended = await giveUpNotSent(rig.db.database, [payment.id], 'sweep');
    expect(ended).toEqual(new Map([[payment.id, 'needs_review']]));
    await expectKeptBack(payment);
  });

  it('while its call is under way: the event is kept until the call has ended, then opens a case', async () => {
    const payment = await opened();
    const worker = await seedWorker(rig.db.database);
    await claimAttempt(rig.db.database, payment.id, worker);
    expect(await told(payment, {}, 16 * 60_000)).toMatchObject({ kind: 'again', result: 'undecided' });
    expect(await rig.state(payment.id)).toBe('submitting');
    await rig.db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() WHERE id = $1`, [worker]);
    expect(await closeAbandoned(rig.db.database, [payment.id], 'test')).toEqual([payment.id]);
    expect(await again(17 * 60_000)).toEqual(CONTRADICTION);
    expect(await rig.openCases(payment.id)).toEqual(['other_generation']);
  });
});
