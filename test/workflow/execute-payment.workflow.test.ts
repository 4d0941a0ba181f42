import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTimeSkippingRig, type TimeSkippingRig } from '../support/time-skipping.js';

const HOUR_MS = 3_600_000;
const LEAD_MS = 3_000;

let rig: TimeSkippingRig;
beforeAll(async () => {
  rig = await startTimeSkippingRig({ maxCachedWorkflows: 0 });
});
afterAll(async () => {
  await rig.close();
});

describe('a payment that nobody touches', () => {
  it('sleeps until its arm time without any event, arms both activities once, and ends succeeded', async () => {
    const payment = await rig.start('pay_untouched', HOUR_MS);
    await rig.sleep(HOUR_MS - 10 * 60_000);
    expect((await rig.events(payment)).map((event) => event.name)).toEqual(['workflowExecutionStarted']);
    await rig.sleep(10 * 60_000 - LEAD_MS);
    await rig.fakes.armed(payment);
    expect(payment.calls).toEqual([]);
    rig.fakes.pass(LEAD_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toEqual([payment.dueAtMs]);
    expect([...rig.fakes.names(payment)].sort()).toEqual(['beginSubmission', 'submitPayment']);
  });

  it('lives its life in 14 events when both results of the pair arrive together', async () => {
    const payment = await rig.start('pay_fourteen', HOUR_MS);
    await rig.sleep(HOUR_MS - LEAD_MS);
    await rig.fakes.armed(payment);
    await rig.settled(payment);
    await rig.stopDeciding();
    rig.fakes.pass(LEAD_MS);
    await rig.recorded(payment, 'activityTaskCompleted', 2);
    await rig.startDeciding();
    expect(await rig.result(payment)).toBe('succeeded');
    const names = (await rig.events(payment)).map((event) => event.name);
    expect(names).toHaveLength(14);
    expect(names.filter((name) => name.startsWith('timer'))).toEqual([]);
  });

  it('arms at once when its arm time has passed already', async () => {
    const payment = await rig.start('pay_now', -5_000);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
    expect((await rig.events(payment)).some((event) => event.name === 'timerStarted')).toBe(false);
  });

  it('ends failed when the provider refuses it, without a second call (DC-05)', async () => {
    const payment = rig.fakes.add('pay_refused', 0);
    payment.results.push('failed');
    await rig.publishStart(payment);
    expect(await rig.result(payment)).toBe('failed');
    expect(payment.calls).toHaveLength(1);
  });
});

describe('what Temporal shows of a payment', () => {
  it('says in the current details where the payment stands', async () => {
    const payment = rig.fakes.add('pay_details', HOUR_MS);
    const answer = Promise.withResolvers<'pending'>();
    payment.results.push(answer.promise);
    payment.askByActivity('review');
    await rig.publishStart(payment, 'without delay');
    expect(await rig.details(payment)).toBe('Scheduled: waits for its time');
    await rig.sleep(HOUR_MS - LEAD_MS);
    await rig.fakes.armed(payment);
    expect(await rig.details(payment)).toBe('Armed: waits in a worker for its second');
    rig.fakes.pass(LEAD_MS);
    answer.resolve('pending');
    await rig.fakes.seen(payment, 'inquire');
    await rig.settled(payment);
    expect(await rig.details(payment)).toBe('Needs review: two people decide');
    payment.resolve('succeeded');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
  });

  it('holds ids, codes, versions and durations alone: no amount, destination or client key (TP-03)', async () => {
    const payment = rig.fakes.add('pay_payloads', 0);
    payment.results.push({ notSentMs: 20_000 }, 'ambiguous');
    payment.askByActivity({ undecidedMs: 5_000 }, 'review');
    await rig.publishStart(payment);
    await rig.fakes.seen(payment, 'submitPayment', 1);
    await rig.settled(payment);
    await rig.sleep(20_000);
    await rig.fakes.seen(payment, 'inquire', 1);
    await rig.sleep(5_000);
    await rig.fakes.seen(payment, 'inquire', 2);
    payment.resolve('succeeded');
    await rig.wake(payment, 'look');
    await rig.result(payment);
    const members = new Set((await rig.payloads(payment)).flatMap(membersOf));
    expect([...members].sort()).toEqual(
      ['afterMs', 'armInMs', 'dueInMs', 'kind', 'lane', 'paymentId', 'state', 'version'].sort(),
    );
  });
});

// Last in this file: a run that ends while an activity is under way stops the server's skipping.
describe('a payment whose run ends while its pair is armed', () => {
  it('says "scheduled" again after a payment was rescheduled while it was armed', async () => {
    const payment = await rig.start('pay_details_again', LEAD_MS);
    await rig.fakes.armed(payment);
    payment.reschedule(HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    expect(await rig.details(payment)).toBe('Scheduled: waits for its time');
    payment.cancel();
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('cancelled');
  });

  it('ends by the word of beginSubmission when the payment is final before its time', async () => {
    const payment = rig.fakes.add('pay_expired', 0);
    const late = Promise.withResolvers<{ kind: 'stopped'; state: 'expired' }>();
    rig.fakes.script(payment, 'beginSubmission', { kind: 'stopped', state: 'expired' });
    rig.fakes.script(payment, 'submitPayment', late.promise);
    await rig.publishStart(payment);
    expect(await rig.result(payment)).toBe('expired');
    expect(payment.calls).toEqual([]);
    late.resolve({ kind: 'stopped', state: 'expired' });
  });
});

/** The names of all members of a value, nested ones too. */
function membersOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [name, ...membersOf(inner)]);
}
