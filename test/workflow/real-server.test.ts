import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SEARCH_PROVIDER, SEARCH_TENANT } from '../../src/orchestration/temporal-workflow-starter.js';
import { startDevServerRig, type DevServerRig } from '../support/dev-server.js';
import { targetOf } from '../support/time-skipping.js';

const DAY_MS = 86_400_000;
const LEAD_MS = 3_000;
const DELAY_MS = 2_000;
/** The server's own limit is 4096; it terminates a run at 51,200. */
const MANY_EVENTS = 40;

// The real server: a plain signal during a start delay waits here, and does not on the time-skipping one.
let rig: DevServerRig;
beforeAll(async () => {
  rig = await startDevServerRig({
    dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': MANY_EVENTS },
  });
});
afterAll(async () => {
  await rig.close();
});

describe('during the start delay', () => {
  it('a cancel signal sent by hand is heard at the arm time, before submission start', async () => {
    const payment = await rig.start('pay_hand_signal', LEAD_MS + DELAY_MS);
    await rig.client.workflow.getHandle(payment.id).signal('cancel');
    expect(await rig.result(payment)).toBe('cancelled');
    expect(rig.fakes.names(payment)).toEqual(['cancelPayment']);
    const events = await rig.events(payment);
    const task = events.find((event) => event.name === 'workflowTaskScheduled')!;
    expect(events.slice(0, 2).map((event) => event.name)).toContain('workflowExecutionSignaled');
    expect(task.atMs - events[0]!.atMs).toBeGreaterThanOrEqual(DELAY_MS);
  });

  it('the cancel of the product ends the run at once', async () => {
    const payment = await rig.start('pay_delay_cancel', 30 * DAY_MS);
    payment.cancel();
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('cancelled');
    expect(rig.fakes.names(payment)).toEqual(['cancelPayment']);
  });

  it("Temporal's own Cancel ends the run at once, through the gate", async () => {
    const payment = await rig.start('pay_delay_ui', 30 * DAY_MS);
    await rig.client.workflow.getHandle(payment.id).cancel();
    expect(await rig.result(payment)).toBe('cancelled');
    expect(payment.state).toBe('cancelled');
  });

  it('a wake with an earlier time is heard at once', async () => {
    const payment = await rig.start('pay_delay_wake', 30 * DAY_MS);
    payment.reschedule(LEAD_MS);
    await rig.wake(payment);
    await rig.fakes.armed(payment);
    rig.fakes.pass(LEAD_MS);
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toEqual([payment.dueAtMs]);
  });

  it('a second start joins the run that waits', async () => {
    const payment = await rig.start('pay_delay_twice', 30 * DAY_MS);
    const before = await rig.client.workflow.getHandle(payment.id).describe();
    await rig.publishStart(payment);
    expect((await rig.client.workflow.getHandle(payment.id).describe()).runId).toBe(before.runId);
    payment.cancel();
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('cancelled');
  });
});

describe('a run that is gone', () => {
  it('because it was terminated is replaced by the next start or wake', async () => {
    const payment = await rig.start('pay_terminated', 30 * DAY_MS);
    const first = rig.client.workflow.getHandle(payment.id);
    await first.terminate();
    await rig.publishStart(payment);
    await rig.client.workflow.getHandle(payment.id).terminate();
    rig.fakes.pass(30 * DAY_MS);
    expect(await rig.wakeWith(targetOf(payment), 'look')).toBe('woken');
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
  });

  it('because it completed is not replaced by start, wake or cancel; the sweep restarts it on purpose', async () => {
    const payment = await rig.start('pay_completed', 0);
    expect(await rig.result(payment)).toBe('succeeded');
    const { runId } = await rig.client.workflow.getHandle(payment.id).describe();
    await rig.publishStart(payment);
    await rig.cancel(payment);
    expect(await rig.wakeWith(targetOf(payment), 'look')).toBe('completed');
    expect((await rig.client.workflow.getHandle(payment.id).describe()).runId).toBe(runId);
    await rig.publishStart(payment, 'without delay');
    expect(await rig.result(payment)).toBe('succeeded');
    expect((await rig.client.workflow.getHandle(payment.id).describe()).runId).not.toBe(runId);
    expect(payment.calls).toHaveLength(1);
  });

  it('is no fault for a plain wake of an unknown or completed run', async () => {
    await expect(rig.starter.wakeExisting('pay_never_started')).resolves.toBeUndefined();
    const payment = await rig.start('pay_wake_completed', 0);
    await rig.result(payment);
    await expect(rig.starter.wakeExisting(payment.id)).resolves.toBeUndefined();
  });
});

describe('a lane that is closed for long', () => {
  it('makes new runs with short histories, each goes on with the same wait, and one call is made (TP-02)', async () => {
    const payment = rig.fakes.add('pay_lane_closed', 0);
    payment.laneIsOpen = false;
    payment.laneRetryAfterMs = 0;
    await rig.publishStart(payment);
    const { runId } = await rig.client.workflow.getHandle(payment.id).describe();
    await rig.fakes.seen(payment, 'submitPayment', 6);
    payment.laneRetryAfterMs = 1_500;
    await rig.until(async () => (await rig.client.workflow.getHandle(payment.id).describe()).runId !== runId);
    payment.laneIsOpen = true;
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
    const [input] = await rig.payloads(payment);
    expect(input).toMatchObject({ paymentId: payment.id, lane: 'simulated', version: 1 });
    const { armInMs } = input as { armInMs: number };
    expect(armInMs).toBeGreaterThan(1_000);
    expect(armInMs).toBeLessThanOrEqual(1_500);
    const first = await rig.client.workflow.getHandle(payment.id, runId).describe();
    expect(first.status.name).toBe('CONTINUED_AS_NEW');
    const last = await rig.client.workflow.getHandle(payment.id).describe();
    expect(last.typedSearchAttributes.get(SEARCH_TENANT)).toBe('p-tenant');
    expect((await rig.events(payment)).length).toBeLessThan(2 * MANY_EVENTS);
  });

  it('a long history makes no new run while a pair is under way, only after it', async () => {
    const payment = await rig.start('pay_long_history', LEAD_MS);
    await rig.fakes.armed(payment);
    payment.reschedule(DAY_MS);
    await rig.wake(payment);
    const { runId } = await rig.client.workflow.getHandle(payment.id).describe();
    for (let looks = 1; (await rig.events(payment)).length < 2 * MANY_EVENTS; looks++) {
      await rig.wake(payment, 'look');
      await rig.fakes.seen(payment, 'look', looks);
      await rig.settled(payment);
    }
    expect((await rig.client.workflow.getHandle(payment.id).describe()).runId).toBe(runId);
    rig.fakes.pass(LEAD_MS);
    // The wait after the next input is the one that is handed on.
    await rig.until(async () => {
      await rig.wake(payment, 'look');
      await rig.settled(payment);
      return (await rig.client.workflow.getHandle(payment.id).describe()).runId !== runId;
    });
    payment.cancel();
    await rig.cancel(payment);
    expect(await rig.result(payment)).toBe('cancelled');
    expect(payment.calls).toEqual([]);
  });
});

describe('what the Web UI shows', () => {
  it('is the final state, also after the end, with provider and tenant pseudonym as attributes', async () => {
    const payment = await rig.start('pay_shown', 0);
    await rig.result(payment);
    expect(await rig.details(payment)).toBe('Final: succeeded');
    const shown = await rig.client.workflow.getHandle(payment.id).describe();
    expect(shown.typedSearchAttributes.get(SEARCH_PROVIDER)).toBe('simulated');
    expect(shown.typedSearchAttributes.get(SEARCH_TENANT)).toBe('p-tenant');
    expect(await shown.staticSummary()).toBe('Payment by simulated');
  });

  it('of a fault is a code, without message or stack (TP-03)', async () => {
    const payment = rig.fakes.add('pay_fault', 0);
    const look = Promise.withResolvers<{ kind: 'stopped'; state: 'succeeded' }>();
    rig.fakes.script(payment, 'submitPayment', new Error(`destination GB29NWBK ${'x'.repeat(5_000_000)}`));
    rig.fakes.script(payment, 'submitPayment', look.promise);
    await rig.publishStart(payment);
    await rig.fakes.seen(payment, 'submitPayment', 2);
    expect(await lastFailure(payment.id)).toMatchObject({ message: 'internal', stackTrace: '' });
    expect(rig.fakes.faults.splice(0)).toHaveLength(1);
    look.resolve({ kind: 'stopped', state: 'succeeded' });
    expect(await rig.result(payment)).toBe('succeeded');
  });

  it('of an inquiry that is not decided yet is no error: its category is benign', async () => {
    const payment = rig.fakes.add('pay_benign', 0);
    payment.results.push('pending');
    payment.askByActivity({ undecidedMs: 500 }, { undecidedMs: DAY_MS });
    await rig.publishStart(payment);
    await rig.fakes.seen(payment, 'inquire', 2);
    await rig.until(async () => (await lastFailure(payment.id)) !== undefined);
    expect(await lastFailure(payment.id)).toMatchObject({
      message: 'undecided',
      stackTrace: '',
      applicationFailureInfo: { type: 'undecided', category: 1 },
    });
    await rig.client.workflow.getHandle(payment.id).terminate();
  });
});

/** The failure of the activity's last try, as the server keeps it while the activity is open. */
async function lastFailure(id: string): Promise<unknown> {
  const { raw } = await rig.client.workflow.getHandle(id).describe();
  return raw.pendingActivities?.find((activity) => activity.lastFailure)?.lastFailure;
}
