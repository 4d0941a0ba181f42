import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FakePayment } from '../support/fake-payment.js';
import { startTimeSkippingRig, type TimeSkippingRig } from '../support/time-skipping.js';

const DAY_MS = 86_400_000;
const LEAD_MS = 3_000;
/** Around the limits of 32-bit timers, and the horizon. */
const DELAYS_MS = [
  24 * DAY_MS,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 31 + 1,
  25 * DAY_MS,
  2 ** 32 + 5_000,
  366 * DAY_MS,
].sort((a, b) => a - b);

let rig: TimeSkippingRig;
const warnings: Error[] = [];
const onWarning = (warning: Error): void => void warnings.push(warning);
beforeAll(async () => {
  process.on('warning', onWarning);
  rig = await startTimeSkippingRig();
});
afterAll(async () => {
  await rig.close();
  process.off('warning', onWarning);
});

/** When the run was started and when its first activity was scheduled, on the server's clock. */
async function times(payment: FakePayment): Promise<{ startedAtMs: number; armedAtMs: number | null }> {
  const events = await rig.events(payment);
  const first = (name: string): number | null => events.find((event) => event.name === name)?.atMs ?? null;
  return { startedAtMs: first('workflowExecutionStarted')!, armedAtMs: first('activityTaskScheduled') };
}

it.each([
  ['by its start delay', 'relay'],
  ['by a timer of the workflow', 'without delay'],
] as const)('a payment that sleeps for up to 366 days %s is never armed early (TM-01)', async (name, how) => {
  const payments = DELAYS_MS.map((ms) => rig.fakes.add(`pay_${ms}_${how.replaceAll(' ', '_')}`, ms));
  for (const payment of payments) await rig.publishStart(payment, how);
  for (const [i, payment] of payments.entries()) {
    const armInMs = (DELAYS_MS[i] ?? 0) - LEAD_MS;
    const { startedAtMs } = await times(payment);
    const sleepMs = startedAtMs + armInMs - (await rig.serverMs());
    if (sleepMs > 0) await rig.sleep(sleepMs);
    await rig.fakes.armed(payment);
    const { armedAtMs } = await times(payment);
    expect(armedAtMs! - startedAtMs, name).toBeGreaterThanOrEqual(armInMs);
    expect(payment.calls).toEqual([]);
    // The database's clock stood still while the starts took their real time.
    rig.fakes.pass(Math.max(0, payment.dueAtMs - rig.fakes.clock.nowMs));
    expect(await rig.result(payment)).toBe('succeeded');
    expect(payment.calls).toHaveLength(1);
  }
  expect(warnings).toEqual([]);
});
