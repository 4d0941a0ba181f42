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
  expect(rig.fakes.faults).toEqual([]);
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
});
