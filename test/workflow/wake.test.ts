import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WAKE_SIGNAL, type LookAnswer } from '../../workflows/contract.js';
import type { FakePayment } from '../support/fake-payment.js';
import { startTimeSkippingRig, targetOf, type TimeSkippingRig } from '../support/time-skipping.js';

const HOUR_MS = 3_600_000;
const LEAD_MS = 3_000;

let rig: TimeSkippingRig;
beforeAll(async () => {
  rig = await startTimeSkippingRig();
});
afterAll(async () => {
  await rig.close();
});

/** Sleeps to the payment's arm time, then to its due time, and expects one call then. */
async function runsAtItsTime(payment: FakePayment, pairs = 1): Promise<void> {
  await rig.sleep(payment.hint.armInMs);
  await rig.fakes.armed(payment, pairs);
  expect(payment.calls).toEqual([]);
  rig.fakes.pass(LEAD_MS);
  expect(await rig.result(payment)).toBe('succeeded');
  expect(payment.calls).toEqual([payment.dueAtMs]);
}

async function count(payment: FakePayment, name: string): Promise<number> {
  return (await rig.events(payment)).filter((event) => event.name === name).length;
}

describe('a wake with a newer version while the payment sleeps', () => {
  it('arms at an earlier time', async () => {
    const payment = await rig.start('pay_earlier', 30 * 24 * HOUR_MS);
    payment.reschedule(HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    await runsAtItsTime(payment);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([2]);
  });

  it('arms at a later time, and not at the old one', async () => {
    const payment = await rig.start('pay_later', HOUR_MS);
    payment.reschedule(50 * HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    await rig.sleep(2 * HOUR_MS);
    expect(rig.fakes.names(payment)).toEqual([]);
    await runsAtItsTime(payment);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([2]);
  });

  it('arms once after later and back, at the time of the newest version', async () => {
    const payment = await rig.start('pay_back', 2 * HOUR_MS);
    payment.reschedule(50 * HOUR_MS);
    await rig.wake(payment);
    payment.reschedule(2 * HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    await runsAtItsTime(payment);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([3]);
  });

  it('arms once when the news arrive in the wrong order', async () => {
    const payment = await rig.start('pay_disorder', 2 * HOUR_MS);
    payment.reschedule(50 * HOUR_MS);
    const older = targetOf(payment);
    payment.reschedule(HOUR_MS);
    await rig.wake(payment);
    await rig.wakeWith(older);
    await rig.settled(payment);
    await runsAtItsTime(payment);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([3]);
  });

  it('is dropped when a look under way found a still newer one', async () => {
    const payment = await rig.start('pay_look_newer', 50 * HOUR_MS);
    const look = Promise.withResolvers<LookAnswer>();
    rig.fakes.script(payment, 'look', look.promise);
    await rig.wake(payment, 'look');
    await rig.fakes.seen(payment, 'look');
    payment.reschedule(40 * HOUR_MS);
    await rig.wake(payment);
    payment.reschedule(HOUR_MS);
    look.resolve(payment.look());
    await rig.settled(payment);
    await runsAtItsTime(payment);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([3]);
  });

  it('counts its durations from when it was heard, though an activity was waited for since', async () => {
    const payment = await rig.start('pay_heard', 50 * HOUR_MS);
    const look = Promise.withResolvers<{ kind: 'held'; version: number }>();
    rig.fakes.script(payment, 'look', look.promise);
    await rig.wake(payment, 'look');
    await rig.fakes.seen(payment, 'look');
    payment.reschedule(60_000);
    await rig.wake(payment);
    await rig.recorded(payment, 'workflowTaskCompleted', 2);
    const heardAtMs = (await rig.events(payment)).findLast((e) => e.name === 'workflowTaskStarted')!.atMs;
    // The server skips nothing while the look is under way: this second is a real one.
    await rig.until(async () => (await rig.serverMs()) > heardAtMs + 1_000);
    look.resolve({ kind: 'held', version: 1 });
    const timer = (await rig.settled(payment)).findLast((event) => event.name === 'timerStarted')!;
    const wait = timer.attributes['startToFireTimeout'] as { seconds: unknown };
    expect(timer.atMs + Number(wait.seconds) * 1_000).toBeLessThanOrEqual(heardAtMs + 60_000 - LEAD_MS);
    await runsAtItsTime(payment);
  });
});

describe('a wake that says nothing new', () => {
  it.each([
    ['a repeated one', (payment: FakePayment) => targetOf(payment)],
    [
      'an older one',
      (payment: FakePayment) => ({ ...targetOf(payment), version: 1, armInMs: 0, dueInMs: 0 }),
    ],
  ])('is ignored: %s costs no activity and no timer', async (name, news) => {
    const payment = await rig.start(`pay_ignored_${name.replaceAll(' ', '_')}`, HOUR_MS);
    payment.reschedule(2 * HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    const timers = await count(payment, 'timerStarted');
    await rig.wakeWith(news(payment));
    await rig.wakeWith(news(payment));
    await rig.settled(payment);
    expect(await count(payment, 'workflowExecutionSignaled')).toBe(3);
    expect(await count(payment, 'timerStarted')).toBe(timers);
    expect(rig.fakes.names(payment)).toEqual([]);
    await runsAtItsTime(payment);
  });
});

describe('a bare wake', () => {
  it('looks at the row once and follows it', async () => {
    const payment = await rig.start('pay_bare', 50 * HOUR_MS);
    payment.reschedule(HOUR_MS);
    await rig.wake(payment, 'look');
    await rig.settled(payment);
    expect(rig.fakes.names(payment)).toEqual(['look']);
    await runsAtItsTime(payment);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([2]);
  });

  it('of a payment past its time arms at once, however late its arm time is', async () => {
    const payment = rig.fakes.add('pay_bare_due', 0);
    await rig.wakeWith({ ...targetOf(payment), armInMs: HOUR_MS }, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
    expect(rig.fakes.names(payment)).not.toContain('look');
  });

  it('of a final payment ends the run', async () => {
    const payment = await rig.start('pay_bare_final', HOUR_MS);
    payment.state = 'expired';
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('expired');
    expect(rig.fakes.names(payment)).toEqual(['look']);
  });
});

describe('hold and release', () => {
  it('a hold during the sleep parks the run, and a release goes on', async () => {
    const payment = await rig.start('pay_hold', HOUR_MS);
    payment.hold();
    await rig.wake(payment, 'look');
    await rig.settled(payment);
    expect(await rig.details(payment)).toBe('Held: waits for a release');
    await rig.sleep(2 * HOUR_MS);
    expect(rig.fakes.names(payment)).toEqual(['look']);
    payment.release();
    await rig.wake(payment);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([3]);
    expect(payment.calls).toHaveLength(1);
  });

  it('a hold while armed parks the run when its signal is lost, and a release goes on', async () => {
    const payment = await rig.start('pay_hold_armed', LEAD_MS);
    await rig.fakes.armed(payment);
    payment.hold();
    rig.fakes.pass(LEAD_MS);
    await rig.recorded(payment, 'activityTaskCompleted', 2);
    await rig.settled(payment);
    expect(await rig.details(payment)).toBe('Held: waits for a release');
    expect(payment.calls).toEqual([]);
    payment.release();
    payment.reschedule(HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    await runsAtItsTime(payment, 2);
  });
});

describe('a row that was restored from a backup', () => {
  it('is believed although its version is lower than the one that was followed', async () => {
    const payment = await rig.start('pay_restored', 50 * HOUR_MS);
    payment.reschedule(40 * HOUR_MS);
    payment.reschedule(HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    payment.version = 1;
    payment.dueAtMs += HOUR_MS;
    await rig.sleep(HOUR_MS - LEAD_MS);
    await rig.fakes.armed(payment);
    await rig.recorded(payment, 'activityTaskCompleted', 2);
    await rig.settled(payment);
    await runsAtItsTime(payment, 2);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([3, 1]);
  });
});

// Each of these holds two pairs for a while; the server skips no time meanwhile.
describe('a wake with a newer version while the pair is armed', () => {
  it('for a later time arms a second pair then; the first ends with not_due', async () => {
    const payment = await rig.start('pay_armed_later', LEAD_MS);
    await rig.fakes.armed(payment);
    payment.reschedule(HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    rig.fakes.pass(LEAD_MS);
    await rig.recorded(payment, 'activityTaskCompleted', 2);
    await rig.settled(payment);
    await runsAtItsTime(payment, 2);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([1, 2]);
  });

  it('for a moment later arms one pair more, not another when the first says not_due', async () => {
    const payment = await rig.start('pay_armed_moment', LEAD_MS);
    await rig.fakes.armed(payment);
    payment.reschedule(LEAD_MS + 500);
    await rig.wake(payment);
    await rig.fakes.armed(payment, 2);
    rig.fakes.pass(LEAD_MS);
    await rig.recorded(payment, 'activityTaskCompleted', 2);
    await rig.settled(payment);
    rig.fakes.pass(500);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toEqual([payment.dueAtMs]);
    expect(rig.fakes.versions(payment, 'submitPayment')).toEqual([1, 2]);
  });

  it('for an earlier time calls then, once, and the first pair finds nothing to do', async () => {
    const payment = await rig.start('pay_armed_earlier', LEAD_MS);
    await rig.fakes.armed(payment);
    payment.reschedule(0);
    await rig.wake(payment);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toEqual([payment.dueAtMs]);
    rig.fakes.pass(HOUR_MS);
    expect(payment.calls).toHaveLength(1);
  });

  it('for later and back again calls once at the old time', async () => {
    const payment = await rig.start('pay_armed_back', LEAD_MS);
    await rig.fakes.armed(payment);
    payment.reschedule(HOUR_MS);
    await rig.wake(payment);
    payment.reschedule(LEAD_MS);
    await rig.wake(payment);
    await rig.fakes.armed(payment, 2);
    rig.fakes.pass(LEAD_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toEqual([payment.dueAtMs]);
  });
});

// Last: its run ends while the pair is still out, and the server skips no time afterwards.
describe('a wake of release 0.1 that asks for an inquiry', () => {
  it('asks the provider at once, without another pair, when the worker of the pair is gone', async () => {
    const payment = rig.fakes.add('pay_wake_inquire', LEAD_MS);
    const silence = Promise.withResolvers<never>();
    rig.fakes.script(payment, 'beginSubmission', silence.promise);
    rig.fakes.script(payment, 'submitPayment', silence.promise);
    await rig.publishStart(payment);
    await rig.fakes.armed(payment);
    rig.fakes.pass(LEAD_MS);
    payment.begin();
    void payment.claim();
    payment.record('ambiguous');
    await rig.client.workflow.getHandle(payment.id).signal(WAKE_SIGNAL, 'inquire');
    try {
      await rig.recorded(payment, 'workflowExecutionCompleted');
      expect(rig.fakes.names(payment).toSorted()).toEqual(['beginSubmission', 'inquire', 'submitPayment']);
    } finally {
      silence.reject(new Error('the run is over'));
    }
  });
});
