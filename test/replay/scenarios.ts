import type { DevServerRig } from '../support/dev-server.js';
import type { FakePayment } from '../support/fake-payment.js';

const LEAD_MS = 3_000;
const DAY_MS = 86_400_000;
/** The rig's time is real: long enough for a timer, short enough to wait for. */
const SHORT_MS = 2_000;

/** One life of a payment whose history is kept. It ends unless its name says otherwise. */
export type Scenario = (rig: DevServerRig, id: string) => Promise<FakePayment>;

async function ended(rig: DevServerRig, payment: FakePayment): Promise<FakePayment> {
  await rig.result(payment);
  return payment;
}

async function armed(rig: DevServerRig, id: string): Promise<FakePayment> {
  const payment = await rig.start(id, LEAD_MS);
  await rig.fakes.armed(payment);
  await rig.settled(payment);
  return payment;
}

async function due(rig: DevServerRig, id: string, prepare: (row: FakePayment) => void): Promise<FakePayment> {
  const payment = rig.fakes.add(id, 0);
  prepare(payment);
  await rig.publishStart(payment);
  return payment;
}

/** Every scenario whose history each release records, by the name in its file's name. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  /** Woken out of its start delay by a reschedule; waits for its arm time by a timer. Not ended. */
  sleeping: async (rig, id) => {
    const payment = await rig.start(id, 30 * DAY_MS);
    payment.reschedule(29 * DAY_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    return payment;
  },

  'cancelled-early': async (rig, id) => {
    const payment = await rig.start(id, 30 * DAY_MS);
    payment.cancel();
    await rig.cancel(payment);
    return ended(rig, payment);
  },

  'cancelled-armed': async (rig, id) => {
    const payment = await armed(rig, id);
    payment.cancel();
    await rig.cancel(payment);
    return ended(rig, payment);
  },

  due: async (rig, id) => {
    const payment = await rig.start(id, LEAD_MS + SHORT_MS);
    await rig.fakes.armed(payment);
    rig.fakes.pass(LEAD_MS + SHORT_MS);
    return ended(rig, payment);
  },

  'lane-busy': async (rig, id) => {
    const payment = await due(rig, id, (row) => {
      row.laneIsOpen = false;
      row.laneRetryAfterMs = SHORT_MS;
    });
    await rig.recorded(payment, 'activityTaskCompleted', 2);
    payment.laneIsOpen = true;
    return ended(rig, payment);
  },

  rescheduled: async (rig, id) => {
    const payment = await armed(rig, id);
    payment.reschedule(LEAD_MS + SHORT_MS);
    await rig.wake(payment);
    await rig.settled(payment);
    rig.fakes.pass(LEAD_MS);
    await rig.fakes.armed(payment, 2);
    rig.fakes.pass(SHORT_MS);
    return ended(rig, payment);
  },

  'held-released': async (rig, id) => {
    const payment = await armed(rig, id);
    payment.hold();
    rig.fakes.pass(LEAD_MS);
    await rig.recorded(payment, 'activityTaskCompleted', 2);
    await rig.settled(payment);
    payment.release();
    await rig.wake(payment);
    return ended(rig, payment);
  },

  retried: async (rig, id) => {
    const waitMs = 12_000;
    const payment = await due(rig, id, (row) => row.results.push({ notSentMs: waitMs }));
    await rig.recorded(payment, 'activityTaskCompleted', 2);
    rig.fakes.pass(waitMs);
    return ended(rig, payment);
  },

  'unknown-resolved': async (rig, id) =>
    ended(
      rig,
      await due(rig, id, (row) => {
        row.results.push('ambiguous');
        row.askByActivity({ undecidedMs: 500 }, 'succeeded');
      }),
    ),

  resent: async (rig, id) =>
    ended(
      rig,
      await due(rig, id, (row) => {
        row.results.push('ambiguous', 'succeeded');
        row.askByActivity('resend');
      }),
    ),

  reviewed: async (rig, id) => {
    const payment = await due(rig, id, (row) => {
      row.results.push('ambiguous');
      row.askByActivity('review');
    });
    await rig.recorded(payment, 'activityTaskCompleted', 3);
    await rig.settled(payment);
    await rig.wake(payment, 'look');
    await rig.fakes.seen(payment, 'look');
    await rig.settled(payment);
    payment.resolve('succeeded');
    await rig.wake(payment, 'look');
    return ended(rig, payment);
  },

  /** The outcome stays open: the payment's first run, which leaves the workers' memory. */
  'outcome-open': (rig, id) => outside(rig, id),

  /** The run after it: woken while the outcome is open it leaves again. */
  'outcome-still-open': async (rig, id) => {
    const payment = await outside(rig, id);
    await rig.wake(payment, 'look');
    await rig.until(async () => (await rig.runs(payment)).length > 2);
    return payment;
  },

  /** The run after it: woken by the move that settled the payment. */
  'outcome-known': async (rig, id) => {
    const payment = await outside(rig, id);
    payment.follow('succeeded');
    await rig.wake(payment, 'look');
    return ended(rig, payment);
  },

  /** The run after it: woken by a resend. */
  'outcome-resent': async (rig, id) => {
    const payment = await outside(rig, id);
    payment.follow('resend');
    await rig.wake(payment, 'look');
    return ended(rig, payment);
  },
};

/** Which run of a scenario's payment is kept, the first being 0; absent: the newest. */
export const RUN_KEPT: Readonly<Record<string, number>> = { 'outcome-open': 0, 'outcome-still-open': 1 };

async function outside(rig: DevServerRig, id: string): Promise<FakePayment> {
  const payment = await due(rig, id, (row) => row.results.push('ambiguous'));
  await rig.until(async () => (await rig.runs(payment)).length > 1);
  return payment;
}
