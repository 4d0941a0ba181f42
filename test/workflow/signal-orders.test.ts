import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
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

/** What clients and operators do to a payment; each that the row accepts leaves a signal to publish. */
const MOVES = {
  cancel: (payment: FakePayment) => payment.cancel(),
  hold: (payment: FakePayment) => payment.hold(),
  release: (payment: FakePayment) => payment.release(),
  postpone: (payment: FakePayment) => payment.reschedule(HOUR_MS),
  hasten: (payment: FakePayment) => payment.reschedule(LEAD_MS),
} as const;
type Move = keyof typeof MOVES;

/** Moves the row and says how the relay would publish it: cancel, news of the times, or "look". */
function moved(payment: FakePayment, move: Move): (() => Promise<unknown>) | null {
  if (!MOVES[move](payment)) return null;
  if (move === 'cancel') return () => rig.cancel(payment);
  const target = targetOf(payment);
  const kind = payment.state === 'scheduled' ? 'times' : 'look';
  return () => rig.wakeWith(target, kind);
}

const scenario = fc.record({
  isArmed: fc.boolean(),
  moves: fc.array(fc.constantFrom(...(Object.keys(MOVES) as Move[])), { minLength: 1, maxLength: 4 }),
  /** Which signal goes out next, by index: some twice, some never, in any order. */
  deliveries: fc.array(fc.nat({ max: 3 }), { maxLength: 6 }),
  atOnce: fc.boolean(),
});

let runs = 0;
it('signals sent twice, in any order or never: at most one call, and the run ends as its row does', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async ({ isArmed, moves, deliveries, atOnce }) => {
      const payment = await rig.start(`pay_orders_${runs++}`, isArmed ? LEAD_MS : HOUR_MS);
      if (isArmed) await rig.fakes.armed(payment);
      const signals = moves.map((move) => moved(payment, move));
      const sent = deliveries.map((index) => signals[index] ?? (async () => undefined));
      if (atOnce) await Promise.all(sent.map((send) => send()));
      else for (const send of sent) await send();
      expect(await ends(payment)).toBe(payment.state);
      expect(payment.calls).toHaveLength(payment.state === 'succeeded' ? 1 : 0);
      expect(['succeeded', 'cancelled']).toContain(payment.state);
      expect(rig.fakes.faults).toEqual([]);
    }),
    { numRuns: 100 },
  );
});

/** Lets everything become due; what was lost is found by the sweep, which sends a bare wake. */
async function ends(payment: FakePayment): Promise<string> {
  const end = rig.result(payment);
  payment.release();
  rig.fakes.pass(2 * HOUR_MS);
  await rig.wake(payment, 'look');
  return end;
}
