import { judgePaid } from '../judge/judge-run.js';
import type { Measured, Scenario, World } from '../scenario.js';
import { waitForInstant } from '../waiting.js';
import {
  AHEAD_MS,
  CPU_COLUMNS,
  cpuFigures,
  createAtRate,
  eventFigures,
  secondsAfter,
  settle,
} from './payments-due.js';

/** Payments per second. */
const RATES = [20, 40] as const;
const SECONDS = 30;

export const steady: Scenario = {
  name: 'steady',
  title: 'Steady: payments created and due at a constant rate',
  about:
    `For ${SECONDS} s payments are created at the given rate, at even distances and without waiting for each ` +
    `other's answers, each due ${AHEAD_MS / 1_000} s later. So creating, starting, arming and paying all run at ` +
    'that rate at once. Lateness is the arrival at the provider minus `execute_at`.',
  columns: {
    payments: 'payments',
    late_p50_ms: 'p50 (ms)',
    late_p99_ms: 'p99 (ms)',
    late_most_ms: 'latest (ms)',
    ...CPU_COLUMNS,
    events: 'events per payment',
    closed_s: 'all workflows ended after the last due (s)',
  },
  runs: ({ scaled }) =>
    RATES.map((rate) => ({
      label: `${rate}/s`,
      workers: 1,
      measure: (world) => measureSteady(world, rate, Math.max(1, Math.round(rate * scaled(SECONDS)))),
    })),
};

async function measureSteady(world: World, rate: number, count: number): Promise<Measured> {
  world.say(`${count} payments at ${rate}/s`);
  const from = world.load.mark();
  const payments = await createAtRate(world, rate, count);
  await world.ledger.expect(new Map(payments.map((payment) => [payment.id, payment.dueAt])));
  const lastDueAt = Math.max(...payments.map((payment) => payment.dueAt));
  await waitForInstant(lastDueAt, world.signal);
  const settled = await settle(world, payments);
  const to = world.load.mark();
  const judged = await judgePaid(world, payments);
  return {
    figures: {
      payments: count,
      late_p50_ms: judged.lateness.p50,
      late_p99_ms: judged.lateness.p99,
      late_most_ms: judged.lateness.most,
      ...cpuFigures(world, world.load.between(from, to), count),
      ...(await eventFigures(world, payments)),
      closed_s: secondsAfter(lastDueAt, settled.closedAt),
    },
    failures: [...settled.failures, ...judged.failures],
    window: [from, to],
  };
}
