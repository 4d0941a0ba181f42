import { judgePaid } from '../judge/judge-run.js';
import type { CreatedPayment } from '../load/payment-creator.js';
import type { Measured, Scenario, World } from '../scenario.js';
import { waitForInstant } from '../waiting.js';
import { dueAfterSetUp, eventFigures, secondsAfter, settle, setUpPayments } from './payments-due.js';

const RATE = 20;
/** A quarter of a second of the rate: what the product gives a new lane. */
const BURST = RATE / 4;
const AT_ONCE = 300;
/** Due a moment after the others; each of them must wait for all of those. */
const BEHIND = 40;
const BEHIND_BY_MS = 5_000;
/** Histories are cheap to read here and a single payment armed again should be seen. */
const HISTORIES = 150;

export const lane: Scenario = {
  name: 'lane',
  title: 'A slow lane: more due at one instant than the provider may get',
  about:
    `The lane's rate is set to ${RATE} payments a second (burst ${BURST}). ${AT_ONCE} payments are due at one ` +
    `instant and ${BEHIND} more ${BEHIND_BY_MS / 1_000} s later. "Overtook" counts payments of the second group ` +
    'that were paid before the last of the first. A payment armed again has more events than the usual 14.',
  columns: {
    payments: 'payments',
    rate_per_s: 'rate (per s)',
    most_in_a_second: 'most in any second',
    last_call_s: 'last call after due (s)',
    overtook: 'overtook',
    events: 'events per payment',
    rearmed: 'armed again',
    closed_s: 'all workflows ended after (s)',
  },
  runs: ({ scaled }) => [
    {
      label: `${RATE}/s`,
      workers: 1,
      measure: (world) => measureLane(world, scaled(AT_ONCE), scaled(BEHIND)),
    },
  ],
};

async function measureLane(world: World, atOnce: number, behind: number): Promise<Measured> {
  await world.rows.setLaneRate(RATE, BURST);
  const from = world.load.mark();
  const dueAt = dueAfterSetUp(world, atOnce + behind);
  const first = await setUpPayments(world, atOnce, dueAt);
  const second = await setUpPayments(world, behind, dueAt + BEHIND_BY_MS);
  await waitForInstant(dueAt, world.signal);
  const payments = [...first.payments, ...second.payments];
  const settled = await settle(world, payments);
  const to = world.load.mark();
  const judged = await judgePaid(world, payments);
  const arrivals = (group: readonly CreatedPayment[]): number[] =>
    group.flatMap((payment) => judged.arrivals.get(payment.id) ?? []).sort((a, b) => a - b);
  const all = arrivals(payments);
  const lastOfFirst = arrivals(first.payments).at(-1) ?? dueAt;
  const spanS = ((all.at(-1) ?? dueAt) - (all[0] ?? dueAt)) / 1_000;
  return {
    figures: {
      payments: payments.length,
      rate_per_s: spanS > 0 ? (all.length - 1) / spanS : null,
      most_in_a_second: mostWithin(all, 1_000),
      last_call_s: secondsAfter(dueAt, all.at(-1) ?? null),
      overtook: arrivals(second.payments).filter((at) => at < lastOfFirst).length,
      ...(await eventFigures(world, payments, HISTORIES)),
      closed_s: secondsAfter(dueAt, settled.closedAt),
    },
    failures: [...first.failures, ...settled.failures, ...judged.failures],
    window: [from, to],
  };
}

/** The most instants (sorted, ms) in any window of a length. */
function mostWithin(instants: readonly number[], lengthMs: number): number {
  let most = 0;
  let oldest = 0;
  for (const [index, at] of instants.entries()) {
    while (at - (instants[oldest] ?? at) >= lengthMs) oldest++;
    most = Math.max(most, index - oldest + 1);
  }
  return most;
}
