import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nextPollMs } from '../../src/domain/submission-policy.js';
import type { BeginSubmissionAnswer, LaneBusy, Held, NotDue, Stopped } from '../../workflows/contract.js';
import type { FakePayment } from '../support/fake-payment.js';
import { startTimeSkippingRig, type TimeSkippingRig } from '../support/time-skipping.js';
import { scheduled } from '../support/workflow-history.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const LEAD_MS = 3_000;

// Tests that skip time come first: it is over once a run ended while its pair was armed.
let rig: TimeSkippingRig;
beforeAll(async () => {
  rig = await startTimeSkippingRig();
});
afterAll(async () => {
  await rig.close();
});

/** Starts a payment that is due now, after `prepare` has set its row up. */
async function due(id: string, prepare: (payment: FakePayment) => void): Promise<FakePayment> {
  const payment = rig.fakes.add(id, 0);
  prepare(payment);
  await rig.publishStart(payment);
  return payment;
}

/** How long the newest timer of the history waits. */
async function timerMs(payment: FakePayment): Promise<number> {
  const timer = (await rig.events(payment)).findLast((event) => event.name === 'timerStarted')!;
  const { seconds, nanos } = timer.attributes['startToFireTimeout'] as { seconds: unknown; nanos: unknown };
  return Number(seconds) * 1_000 + Math.round(Number(nanos) / 1e6);
}

/** Resolves when so many results of the payment's activities were taken in. */
async function answered(payment: FakePayment, results: number): Promise<void> {
  await rig.recorded(payment, 'activityTaskCompleted', results);
  await rig.settled(payment);
}

describe('lane_busy', () => {
  it('waits as long as it says and arms both activities again', async () => {
    const payment = await due('pay_lane', (row) => {
      row.laneIsOpen = false;
      row.laneRetryAfterMs = HOUR_MS;
    });
    await answered(payment, 2);
    expect(await rig.details(payment)).toBe('Scheduled: waits for its lane');
    expect(await timerMs(payment)).toBe(HOUR_MS);
    payment.laneIsOpen = true;
    expect(payment.calls).toEqual([]);
    await rig.sleep(HOUR_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.count(payment, 'beginSubmission')).toBe(2);
    expect(payment.calls).toHaveLength(1);
  });

  it('again and again waits again and again', async () => {
    const payment = await due('pay_lane_long', (row) => (row.laneIsOpen = false));
    for (let pair = 1; pair <= 5; pair++) {
      await answered(payment, 2 * pair);
      if (pair === 5) payment.laneIsOpen = true;
      await rig.sleep(payment.laneRetryAfterMs);
    }
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.count(payment, 'submitPayment')).toBe(6);
  });
});

describe('an open outcome', () => {
  it('ends the wait for the lane that another pair was sent to', async () => {
    const payment = rig.fakes.add('pay_open_outcome', 0);
    const busy = Promise.withResolvers<LaneBusy>();
    const asked = Promise.withResolvers<{ kind: 'inquire' }>();
    rig.fakes.script(payment, 'beginSubmission', busy.promise);
    rig.fakes.script(payment, 'submitPayment', busy.promise);
    rig.fakes.script(payment, 'submitPayment', asked.promise);
    payment.askByActivity({ undecidedMs: 2 * HOUR_MS });
    await rig.publishStart(payment);
    await rig.fakes.armed(payment);
    await rig.wake(payment, 'look');
    await rig.fakes.armed(payment, 2);
    payment.record('pending');
    busy.resolve({ kind: 'lane_busy', version: 1, retryAfterMs: HOUR_MS });
    await answered(payment, 2);
    asked.resolve({ kind: 'inquire' });
    await rig.fakes.seen(payment, 'inquire');
    await rig.settled(payment);
    await rig.sleep(2 * HOUR_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.count(payment, 'submitPayment')).toBe(2);
  });
});

describe('not_due', () => {
  it('of a payment due far from now is followed: the workflow waits, not the worker', async () => {
    const payment = await due('pay_far', (row) => (row.dueAtMs += 5 * HOUR_MS));
    rig.fakes.script(payment, 'look', { kind: 'scheduled', ...payment.hint, armInMs: 0 });
    await rig.wake(payment, 'look');
    await answered(payment, 3);
    expect(payment.calls).toEqual([]);
    await rig.sleep(5 * HOUR_MS - LEAD_MS);
    await rig.fakes.armed(payment, 2);
    rig.fakes.pass(LEAD_MS);
    expect(await rig.result(payment)).toBe('succeeded');
  });
});

describe('a word older than the newest version', () => {
  const older: readonly [string, Exclude<BeginSubmissionAnswer, { kind: 'started' } | Stopped>][] = [
    [
      'not_due',
      { kind: 'not_due', version: 1, dueInMs: 20 * HOUR_MS, armInMs: 20 * HOUR_MS } satisfies NotDue,
    ],
    ['lane_busy', { kind: 'lane_busy', version: 1, retryAfterMs: 20 * HOUR_MS } satisfies LaneBusy],
    ['held', { kind: 'held', version: 1 } satisfies Held],
  ];
  it.each(older)('is dropped: %s', async (name, word) => {
    const payment = rig.fakes.add(`pay_older_${name}`, 0);
    const begin = Promise.withResolvers<typeof word>();
    const submit = Promise.withResolvers<typeof word>();
    rig.fakes.script(payment, 'beginSubmission', begin.promise);
    rig.fakes.script(payment, 'submitPayment', submit.promise);
    await rig.publishStart(payment);
    await rig.fakes.armed(payment);
    payment.reschedule(HOUR_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    begin.resolve(word);
    submit.resolve(word);
    await answered(payment, 2);
    await rig.sleep(HOUR_MS - LEAD_MS);
    await rig.fakes.armed(payment, 2);
    rig.fakes.pass(LEAD_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toEqual([payment.dueAtMs]);
  });
});

describe('retry and resend', () => {
  it('retry waits and arms submitPayment alone: submission start stands', async () => {
    const payment = await due('pay_retry', (row) => row.results.push({ notSentMs: 20 * MINUTE_MS }));
    await answered(payment, 2);
    expect(await timerMs(payment)).toBe(20 * MINUTE_MS);
    expect(await rig.details(payment)).toBe('Submitting: tries again');
    await rig.sleep(20 * MINUTE_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.count(payment, 'beginSubmission')).toBe(1);
    expect(rig.fakes.count(payment, 'submitPayment')).toBe(2);
    expect(payment.calls).toHaveLength(2);
  });

  it('resend arms submitPayment alone, at once', async () => {
    const payment = await due('pay_resend', (row) => {
      row.results.push('ambiguous');
      row.askByActivity('resend');
    });
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.count(payment, 'beginSubmission')).toBe(1);
    expect(rig.fakes.names(payment).slice(2)).toEqual(['inquire', 'submitPayment']);
    expect((await rig.events(payment)).some((event) => event.name === 'timerStarted')).toBe(false);
  });
});

describe('inquire, as runs of release 0.1 ask', () => {
  it('is retried after the time that it asks for, and its retries are no events', async () => {
    const payment = await due('pay_inquire', (row) => {
      row.results.push('ambiguous');
      row.askByActivity({ undecidedMs: HOUR_MS }, { undecidedMs: 2 * HOUR_MS }, 'succeeded');
    });
    await rig.fakes.seen(payment, 'inquire');
    const before = (await rig.settled(payment)).length;
    await rig.sleep(HOUR_MS / 2);
    expect(rig.fakes.count(payment, 'inquire')).toBe(1);
    await rig.sleep(HOUR_MS / 2);
    await rig.fakes.seen(payment, 'inquire', 2);
    await rig.sleep(HOUR_MS);
    expect(rig.fakes.count(payment, 'inquire')).toBe(2);
    expect(await rig.details(payment)).toBe('Submitted or unknown: asks the provider');
    expect(await rig.events(payment)).toHaveLength(before);
    await rig.sleep(HOUR_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.count(payment, 'inquire')).toBe(3);
    expect(payment.calls).toHaveLength(1);
  });

  it('is asked once at a time, also when a wake finds the outcome still open', async () => {
    const payment = await due('pay_inquire_once', (row) => {
      row.results.push('pending');
      row.askByActivity({ undecidedMs: HOUR_MS });
    });
    await rig.fakes.seen(payment, 'inquire');
    await rig.wake(payment, 'look');
    await rig.fakes.seen(payment, 'look');
    await rig.settled(payment);
    await rig.sleep(HOUR_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.names(payment).slice(2)).toEqual(['inquire', 'look', 'inquire']);
    const asked = scheduled(await rig.events(payment), ['inquire']);
    expect(asked).toHaveLength(1);
  });

  it('polled for 30 days leaves some dozen events, refuses a cancel and joins a second start (TP-02)', async () => {
    const payment = rig.fakes.add('pay_thirty_days', 0);
    payment.results.push('pending');
    for (let ageMs = 0; ageMs < 30 * DAY_MS;) {
      const undecidedMs = nextPollMs(ageMs, 1);
      payment.askByActivity({ undecidedMs });
      ageMs += undecidedMs;
    }
    const polls = payment.lookups.length;
    await rig.publishStart(payment);
    await rig.fakes.seen(payment, 'inquire');
    await rig.sleep(15 * DAY_MS);
    await rig.cancel(payment);
    await rig.publishStart(payment);
    await rig.settled(payment);
    await rig.sleep(15 * DAY_MS + HOUR_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(polls).toBeGreaterThan(700);
    expect(rig.fakes.count(payment, 'inquire')).toBe(polls + 1);
    expect((await rig.events(payment)).length).toBeLessThan(50);
    expect(payment.calls).toHaveLength(1);
  });
});

describe('review', () => {
  const unclear = (row: FakePayment): void => {
    row.results.push('ambiguous');
    row.askByActivity('review');
  };

  it('parks the run without timer or activity, and a wake after the resolution ends it', async () => {
    const payment = await due('pay_review', unclear);
    await rig.fakes.seen(payment, 'inquire');
    await answered(payment, 3);
    const events = (await rig.events(payment)).length;
    await rig.sleep(30 * DAY_MS);
    expect(await rig.events(payment)).toHaveLength(events);
    payment.resolve('failed');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('failed');
    expect(payment.calls).toHaveLength(1);
  });

  it('stays parked when a wake finds it unresolved', async () => {
    const payment = await due('pay_review_still', unclear);
    await answered(payment, 3);
    await rig.wake(payment, 'look');
    await rig.fakes.seen(payment, 'look');
    await rig.settled(payment);
    expect(await rig.details(payment)).toBe('Needs review: two people decide');
    payment.resolve('succeeded');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
  });

  it('resolved as submitted goes back to asking the provider', async () => {
    const payment = await due('pay_review_submitted', unclear);
    await answered(payment, 3);
    payment.resolve('submitted');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.count(payment, 'inquire')).toBe(2);
  });
});

describe('the second word of a pair', () => {
  it('counts only when it is final', async () => {
    const payment = rig.fakes.add('pay_second_word', 0);
    const submit = Promise.withResolvers<{ kind: 'inquire' }>();
    rig.fakes.script(payment, 'beginSubmission', { kind: 'held', version: 1 });
    rig.fakes.script(payment, 'submitPayment', submit.promise);
    await rig.publishStart(payment);
    await answered(payment, 1);
    submit.resolve({ kind: 'inquire' });
    await answered(payment, 2);
    expect(await rig.details(payment)).toBe('Held: waits for a release');
    expect(rig.fakes.count(payment, 'inquire')).toBe(0);
    payment.cancel();
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('cancelled');
  });

  it('ends the run when it is final, though the first was not', async () => {
    const payment = rig.fakes.add('pay_second_final', 0);
    const submit = Promise.withResolvers<Stopped>();
    rig.fakes.script(payment, 'beginSubmission', { kind: 'lane_busy', version: 1, retryAfterMs: HOUR_MS });
    rig.fakes.script(payment, 'submitPayment', submit.promise);
    await rig.publishStart(payment);
    await answered(payment, 1);
    submit.resolve({ kind: 'stopped', state: 'succeeded' });
    expect(await rig.result(payment)).toBe('succeeded');
  });
});

describe('submitPayment alone', () => {
  it('decides: its final answer ends the run while beginSubmission has said nothing', async () => {
    const payment = rig.fakes.add('pay_alone', 0);
    const begin = Promise.withResolvers<BeginSubmissionAnswer>();
    rig.fakes.script(payment, 'beginSubmission', begin.promise);
    rig.fakes.script(payment, 'submitPayment', { kind: 'stopped', state: 'succeeded' });
    await rig.publishStart(payment);
    expect(await rig.result(payment)).toBe('succeeded');
    begin.resolve({ kind: 'started' });
  });
});
