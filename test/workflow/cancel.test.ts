import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FakePayment } from '../support/fake-payment.js';
import { startTimeSkippingRig, type TimeSkippingRig } from '../support/time-skipping.js';

const HOUR_MS = 3_600_000;
const LEAD_MS = 3_000;

// Tests that skip time come first: it is over once a run ended while its pair was armed.
let rig: TimeSkippingRig;
beforeAll(async () => {
  rig = await startTimeSkippingRig({ maxCachedWorkflows: 0 });
});
afterAll(async () => {
  await rig.close();
});

/** A payment whose pair sits in a worker, before its due time. */
async function armed(id: string): Promise<FakePayment> {
  const payment = await rig.start(id, LEAD_MS);
  await rig.fakes.armed(payment);
  await rig.settled(payment);
  return payment;
}

/** A payment whose one call is under way until `answer` resolves. */
async function calling(id: string) {
  const payment = rig.fakes.add(id, 0);
  const answer = Promise.withResolvers<'succeeded' | 'pending'>();
  payment.results.push(answer.promise);
  await rig.publishStart(payment);
  await rig.fakes.until(() => payment.calls.length === 1);
  return { payment, answer: answer.resolve };
}

describe('cancel and timer in one activation (CX-03)', () => {
  it('leave the decision to the gate: in 180 runs its answer is what the provider saw', async () => {
    const dueInMs = 10 * HOUR_MS;
    const payments = Array.from({ length: 180 }, (_, i) => rig.fakes.add(`pay_cx03_${i}`, dueInMs));
    // Every ninth waits by a timer of its workflow, the others by their start delay.
    await all(payments, (payment, i) => rig.publishStart(payment, i % 9 ? 'relay' : 'without delay'));
    await all(payments, (payment, i) => (i % 9 ? undefined : rig.recorded(payment, 'timerStarted')));
    await rig.stopDeciding();
    await rig.sleep(dueInMs - LEAD_MS);
    await all(payments, (payment, i) =>
      rig.recorded(payment, i % 9 ? 'workflowTaskScheduled' : 'timerFired'),
    );
    // Two thirds are cancelled in time, the others were started by another worker before.
    rig.fakes.pass(LEAD_MS);
    const begun = payments.filter((_, i) => i % 3 === 2);
    for (const payment of begun) expect(payment.begin()).toBe(true);
    const answers = payments.map((payment) => payment.cancel());
    await all(payments, (payment) => rig.cancel(payment));
    await rig.startDeciding(payments.length);
    for (const [i, payment] of payments.entries()) {
      expect(await rig.result(payment)).toBe(answers[i] ? 'cancelled' : 'succeeded');
      expect(payment.calls).toHaveLength(answers[i] ? 0 : 1);
    }
    expect(answers.filter(Boolean)).toHaveLength(120);
    await rig.stopDeciding();
    await rig.startDeciding();
    // Timer and signal did meet before the workflow ran, else this shows nothing.
    const names = (await rig.events(payments[0]!)).map((event) => event.name);
    const woken = names.indexOf('workflowTaskStarted', names.indexOf('timerStarted'));
    expect(names.slice(0, woken)).toContain('timerFired');
    expect(names.slice(0, woken)).toContain('workflowExecutionSignaled');
  });

  it('when the cancel came first, call nothing either', async () => {
    const payments = Array.from({ length: 20 }, (_, i) => rig.fakes.add(`pay_cx03_first_${i}`, 2 * LEAD_MS));
    await all(payments, (payment) => rig.publishStart(payment, 'without delay'));
    await all(payments, (payment) => rig.recorded(payment, 'timerStarted'));
    await rig.stopDeciding();
    for (const payment of payments) expect(payment.cancel()).toBe(true);
    await all(payments, (payment) => rig.cancel(payment));
    await all(payments, (payment) => rig.recorded(payment, 'timerFired'));
    rig.fakes.pass(2 * LEAD_MS);
    await rig.startDeciding();
    for (const payment of payments) {
      expect(await rig.result(payment)).toBe('cancelled');
      expect(payment.calls).toEqual([]);
    }
  });
});

describe('cancel after submission start', () => {
  it('changes nothing while the call is under way', async () => {
    const { payment, answer } = await calling('pay_cancel_calling');
    expect(payment.cancel()).toBe(false);
    await rig.cancel(payment);
    await rig.fakes.seen(payment, 'cancelPayment');
    answer('succeeded');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
  });

  it('changes nothing while the outcome is open', async () => {
    const payment = rig.fakes.add('pay_cancel_submitted', 0);
    payment.results.push('pending');
    payment.askByActivity({ undecidedMs: HOUR_MS });
    await rig.publishStart(payment);
    await rig.fakes.seen(payment, 'inquire');
    await rig.cancel(payment);
    await rig.fakes.seen(payment, 'cancelPayment');
    await rig.settled(payment);
    await rig.sleep(HOUR_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
  });
});

describe('a cancel whose signal was lost', () => {
  it('while the payment sleeps is found at its arm time, and nothing is called', async () => {
    const payment = await rig.start('pay_cancel_lost_early', HOUR_MS);
    payment.cancel();
    await rig.sleep(HOUR_MS - LEAD_MS);
    expect(await rig.result(payment)).toBe('cancelled');
    expect(payment.calls).toEqual([]);
    expect(rig.fakes.count(payment, 'cancelPayment')).toBe(0);
  });

  it('while the pair is armed is found at the due time, and nothing is called', async () => {
    const payment = await armed('pay_cancel_lost');
    payment.cancel();
    rig.fakes.pass(LEAD_MS);
    expect(await rig.result(payment)).toBe('cancelled');
    expect(payment.calls).toEqual([]);
    expect(rig.fakes.count(payment, 'cancelPayment')).toBe(0);
  });
});

describe('cancel before submission start', () => {
  it('ends a payment in its start delay at once, and nothing was armed', async () => {
    const payment = await rig.start('pay_cancel_delayed', 30 * 24 * HOUR_MS);
    expect(payment.cancel()).toBe(true);
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('cancelled');
    expect(rig.fakes.names(payment)).toEqual(['cancelPayment']);
  });

  it('ends a payment that waits by a timer', async () => {
    const payment = rig.fakes.add('pay_cancel_timer', 30 * 24 * HOUR_MS);
    await rig.publishStart(payment, 'without delay');
    await rig.recorded(payment, 'timerStarted');
    payment.cancel();
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('cancelled');
    expect(rig.fakes.names(payment)).toEqual(['cancelPayment']);
  });

  it('between arm and due ends the run cancelled, and nothing is called', async () => {
    const payment = await armed('pay_cancel_armed');
    expect(payment.cancel()).toBe(true);
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('cancelled');
    rig.fakes.pass(HOUR_MS);
    expect(payment.calls).toEqual([]);
  });

  it('as a signal sent by hand asks the gate itself', async () => {
    const payment = await armed('pay_cancel_by_hand');
    await rig.client.workflow.getHandle(payment.id).signal('cancel');
    expect(await rig.result(payment)).toBe('cancelled');
    expect(payment).toMatchObject({ state: 'cancelled', calls: [] });
  });

  it('of a payment that expired meanwhile ends the run expired', async () => {
    const payment = await rig.start('pay_cancel_expired', HOUR_MS);
    payment.state = 'expired';
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('expired');
  });

  it('twice is cancelled once, and a signal for the ended run starts no other', async () => {
    const payment = await rig.start('pay_cancel_twice', HOUR_MS);
    payment.cancel();
    await Promise.all([rig.cancel(payment), rig.cancel(payment)]);
    expect(await rig.result(payment)).toBe('cancelled');
    await rig.cancel(payment);
    const runs = (await rig.events(payment)).filter((event) => event.name === 'workflowExecutionStarted');
    expect(runs).toHaveLength(1);
    expect(rig.fakes.names(payment).filter((name) => name !== 'cancelPayment')).toEqual([]);
  });
});

describe("Temporal's own Cancel", () => {
  it('acts like the signal: in the start delay it ends the payment through the gate', async () => {
    const payment = await rig.start('pay_ui_delayed', HOUR_MS);
    await rig.client.workflow.getHandle(payment.id).cancel();
    expect(await rig.result(payment)).toBe('cancelled');
    expect(payment.state).toBe('cancelled');
  });

  it('acts like the signal while the pair is armed', async () => {
    const payment = await armed('pay_ui_armed');
    await rig.client.workflow.getHandle(payment.id).cancel();
    expect(await rig.result(payment)).toBe('cancelled');
    expect(payment).toMatchObject({ state: 'cancelled', calls: [] });
  });

  it('never aborts a call, and the run goes on to its outcome', async () => {
    const { payment, answer } = await calling('pay_ui_calling');
    payment.askByActivity();
    await rig.client.workflow.getHandle(payment.id).cancel();
    await rig.fakes.seen(payment, 'cancelPayment');
    await rig.settled(payment);
    answer('pending');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.names(payment)).toContain('inquire');
    const names = (await rig.events(payment)).map((event) => event.name);
    expect(names.filter((name) => name.startsWith('activityTaskCancel'))).toEqual([]);
    expect(payment.calls).toHaveLength(1);
  });
});

/** Runs `work` for all payments, eight at a time. */
async function all(
  payments: readonly FakePayment[],
  work: (payment: FakePayment, index: number) => Promise<void> | undefined,
): Promise<void> {
  const jobs = payments.entries();
  const worker = async (): Promise<void> => {
    for (const [index, payment] of jobs) await work(payment, index);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}
