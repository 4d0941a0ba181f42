import { judgePaid } from '../judge/judge-run.js';
import type { Measured, Scenario, World } from '../scenario.js';
import { waitForInstant } from '../waiting.js';
import {
  armedCount,
  CPU_COLUMNS,
  cpuFigures,
  dueAfterSetUp,
  eventFigures,
  secondsAfter,
  settle,
  setUpPayments,
} from './payments-due.js';

/** Counts of one instant; a development server on SQLite arms far fewer than a full one. */
const COUNTS = { dev: [500], postgres: [1_000, 5_000] } as const;
/** The look at the workers' metrics is over when the payments fall due. */
const LOOK_BEFORE_DUE_MS = 500;

export const burst: Scenario = {
  name: 'burst',
  title: 'Burst: many payments due at one instant',
  about:
    'All payments have the same `execute_at`, are created through the API and armed before it. Lateness is ' +
    'the arrival at the provider minus `execute_at`. CPU is that of the whole product (API, worker, both ' +
    'databases, Temporal) from the first create until the last workflow has ended, divided by the payments.',
  columns: {
    payments: 'payments',
    last_call_ms: 'last call after due (ms)',
    late_p50_ms: 'p50 (ms)',
    late_p99_ms: 'p99 (ms)',
    final_s: 'all final after (s)',
    closed_s: 'all workflows ended after (s)',
    ...CPU_COLUMNS,
    events: 'events per payment',
    rearmed: 'armed again',
    armed: 'armed 0.5 s before due',
    created_per_s: 'created per s',
    set_up_before_due_s: 'set-up ended before due (s)',
  },
  runs: ({ temporal, scaled }) =>
    COUNTS[temporal].map(scaled).map((count) => ({
      label: count.toLocaleString('en'),
      workers: 1,
      measure: (world) => measureBurst(world, count),
    })),
};

async function measureBurst(world: World, count: number): Promise<Measured> {
  const from = world.load.mark();
  const dueAt = dueAfterSetUp(world, count);
  const setUp = await setUpPayments(world, count, dueAt);
  await waitForInstant(dueAt - LOOK_BEFORE_DUE_MS, world.signal);
  const armed = await armedCount(world);
  await waitForInstant(dueAt, world.signal);
  const settled = await settle(world, setUp.payments);
  const to = world.load.mark();
  const judged = await judgePaid(world, setUp.payments);
  return {
    figures: {
      payments: count,
      last_call_ms: judged.lateness.most,
      late_p50_ms: judged.lateness.p50,
      late_p99_ms: judged.lateness.p99,
      final_s: secondsAfter(dueAt, settled.finalAt),
      closed_s: secondsAfter(dueAt, settled.closedAt),
      ...cpuFigures(world, world.load.between(from, to), count),
      ...(await eventFigures(world, setUp.payments)),
      armed,
      ...setUp.figures,
    },
    failures: [...setUp.failures, ...settled.failures, ...judged.failures],
    window: [from, to],
  };
}
