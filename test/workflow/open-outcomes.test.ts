import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SEARCH_PROVIDER } from '../../src/orchestration/temporal-workflow-starter.js';
import { startDevServerRig, type DevServerRig } from '../support/dev-server.js';
import type { CallResult, FakePayment } from '../support/fake-payment.js';

// Nothing here waits for a time: a run that left the workers' memory goes on when it is woken.
let rig: DevServerRig;
beforeAll(async () => {
  rig = await startDevServerRig({ oneWorker: true });
});
afterAll(async () => {
  await rig.close();
});

/** Starts a payment that is due now; resolves when its first run has left the workers' memory. */
async function left(id: string, ...results: CallResult[]): Promise<FakePayment> {
  const payment = rig.fakes.add(id, 0);
  payment.results.push(...results);
  await rig.publishStart(payment);
  await untilRun(payment, 2);
  return payment;
}

async function untilRun(payment: FakePayment, count: number): Promise<void> {
  await rig.until(async () => (await rig.runs(payment)).length >= count);
}

const eventNames = async (payment: FakePayment): Promise<readonly string[]> =>
  (await rig.events(payment)).map((event) => event.name);

describe('a payment whose outcome is open', () => {
  it.each([
    ['pending', 'Submitted: the workers ask the provider for the outcome'],
    ['ambiguous', 'Unknown: the workers ask the provider what became of it'],
  ] as const)(
    'leaves the workers: a run without a task waits, and says for what (%s)',
    async (result, text) => {
      const payment = await left(`pay_left_${result}`, result);
      expect(await eventNames(payment)).toEqual(['workflowExecutionStarted']);
      const shown = await rig.client.workflow.getHandle(payment.id).describe();
      expect(shown.status.name).toBe('RUNNING');
      expect(shown.memo).toEqual({ waits_for: text });
      expect(shown.typedSearchAttributes.get(SEARCH_PROVIDER)).toBe('simulated');
      expect(rig.fakes.names(payment).toSorted()).toEqual(['beginSubmission', 'submitPayment']);
    },
  );

  it('ends in a dozen events when the move that settled it wakes it', async () => {
    const payment = await left('pay_settled', 'ambiguous');
    payment.follow('failed');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('failed');
    expect(rig.fakes.names(payment).slice(2)).toEqual(['look']);
    expect((await rig.events(payment)).length).toBeLessThanOrEqual(12);
  });

  it('leaves again when a wake finds the outcome still open', async () => {
    const payment = await left('pay_still_open', 'pending');
    await rig.wake(payment, 'look');
    await untilRun(payment, 3);
    expect(await eventNames(payment)).toEqual(['workflowExecutionStarted']);
    payment.follow('succeeded');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.names(payment).slice(2)).toEqual(['look', 'look']);
  });

  it('that is sent again arms submitPayment alone, at once', async () => {
    const payment = await left('pay_resent', 'ambiguous', 'succeeded');
    payment.follow('resend');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(rig.fakes.names(payment).slice(2)).toEqual(['look', 'submitPayment']);
    expect(payment.calls).toHaveLength(2);
  });

  it('that is sent again and stays unknown leaves again', async () => {
    const payment = await left('pay_resent_unknown', 'ambiguous', 'ambiguous');
    payment.follow('resend');
    await rig.wake(payment, 'look');
    await untilRun(payment, 3);
    payment.follow('succeeded');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(2);
  });

  it('goes to people outside the workers too, and ends with their decision', async () => {
    const payment = await left('pay_to_people', 'ambiguous');
    payment.follow('review');
    await rig.wake(payment, 'look');
    await untilRun(payment, 3);
    const shown = await rig.client.workflow.getHandle(payment.id).describe();
    expect(shown.memo).toEqual({ waits_for: 'Needs review: two people decide' });
    payment.resolve('succeeded');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
  });

  it('refuses a cancel and goes on waiting', async () => {
    const payment = await left('pay_cancel_open', 'pending');
    expect(payment.cancel()).toBe(false);
    await rig.cancel(payment);
    await untilRun(payment, 3);
    expect(rig.fakes.names(payment)).toContain('cancelPayment');
    payment.follow('succeeded');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
  });

  it('stays as long as an activity of its pair is under way, and hears of its end meanwhile', async () => {
    const payment = rig.fakes.add('pay_pair_out', 0);
    const begun = Promise.withResolvers<{ kind: 'started' }>();
    rig.fakes.script(payment, 'beginSubmission', begun.promise);
    rig.fakes.script(payment, 'submitPayment', { kind: 'outcome_open', state: 'unknown' });
    await rig.publishStart(payment);
    await rig.recorded(payment, 'activityTaskCompleted');
    await rig.settled(payment);
    expect(await rig.details(payment)).toBe('Unknown: the workers ask the provider what became of it');
    expect(await rig.runs(payment)).toHaveLength(1);
    payment.begin();
    void payment.claim();
    payment.record('ambiguous');
    begun.resolve({ kind: 'started' });
    await untilRun(payment, 2);
    payment.follow('succeeded');
    await rig.wake(payment, 'look');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
  });
});
