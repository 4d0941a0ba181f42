import { judgePaid } from '../judge/judge-run.js';
import type { GroupMemory } from '../sampling/process-group.js';
import type { Measured, Scenario, World } from '../scenario.js';
import { pauseFor, waitForInstant, waitUntil } from '../waiting.js';
import { armedCount, dueAfterSetUp, productCpuMs, settle, setUpPayments } from './payments-due.js';

/** Payments armed at once in one worker. */
const ARMED = { dev: 500, postgres: 5_000 } as const;
const IDLE_S = 10;
/** The workers tell their metrics once a second; reading memory must be over when payments fall due. */
const LOOK_BEFORE_DUE_MS = 1_800;
const LOOK_FOR_MS = 1_400;
const LOOK_EVERY_MS = 100;
const MIB = 1_048_576;
const GROUPS = ['api', 'worker', 'postgres', 'temporal', 'temporal-postgres', 'simulator'] as const;

export const memory: Scenario = {
  name: 'memory',
  title: 'Memory and idle CPU',
  about:
    `Idle: ${IDLE_S} s after the warm-up. Armed: just before the payments of one second fall due, all armed in one ` +
    'worker. Each group of processes by PSS (shared pages divided among their users), or by RSS where the system ' +
    'does not tell it. Peaks are the largest resident size of a single process until everything was paid.',
  columns: {
    armed: 'armed',
    worker_armed_mib: 'worker, armed (MiB)',
    worker_idle_mib: 'worker, idle (MiB)',
    worker_peak_mib: 'worker, peak RSS (MiB)',
    api_idle_mib: 'API, idle (MiB)',
    api_after_mib: 'API, after the creates (MiB)',
    api_peak_mib: 'API, peak RSS (MiB)',
    stack_idle_mib: 'whole stack, idle (MiB)',
    stack_armed_mib: 'whole stack, armed (MiB)',
    parts_idle_mib: 'idle by part (MiB)',
    kind: 'counted as',
    idle_cores: 'idle CPU of the product (cores)',
  },
  runs: ({ temporal, scaled }) => {
    const count = scaled(ARMED[temporal]);
    return [{ label: `${count} armed`, workers: 1, measure: (world) => measureMemory(world, count) }];
  },
};

async function measureMemory(world: World, count: number): Promise<Measured> {
  world.say(`idle for ${IDLE_S} s`);
  const from = world.load.mark();
  await pauseFor(IDLE_S * 1_000, world.signal);
  const idleEnd = world.load.mark();
  const idle = world.load.memory(true);
  const dueAt = dueAfterSetUp(world, count);
  const setUp = await setUpPayments(world, count, dueAt);
  await waitForInstant(dueAt - LOOK_BEFORE_DUE_MS, world.signal);
  const isArmed = await mostArmed(world, count);
  const armed = world.load.memory(true);
  await waitForInstant(dueAt, world.signal);
  const settled = await settle(world, setUp.payments);
  const peak = world.load.peakRss();
  const to = world.load.mark();
  const judged = await judgePaid(world, setUp.payments);
  const idleShare = world.load.between(from, idleEnd);
  const mib = (bytes: number | undefined): number | null => (bytes === undefined ? null : bytes / MIB);
  return {
    figures: {
      armed: isArmed,
      worker_armed_mib: mib(armed['worker']?.bytes),
      worker_idle_mib: mib(idle['worker']?.bytes),
      worker_peak_mib: mib(peak['worker']),
      api_idle_mib: mib(idle['api']?.bytes),
      api_after_mib: mib(armed['api']?.bytes),
      api_peak_mib: mib(peak['api']),
      stack_idle_mib: mib(sumOf(idle)),
      stack_armed_mib: mib(sumOf(armed)),
      parts_idle_mib: GROUPS.flatMap((group) =>
        idle[group] ? `${group} ${(idle[group].bytes / MIB).toFixed(0)}` : [],
      ).join(', '),
      kind: kindOf(idle, armed),
      idle_cores:
        idleShare.foreignCores === null ? null : productCpuMs(idleShare) / 1_000 / idleShare.seconds,
    },
    failures: [
      ...setUp.failures,
      ...(isArmed < count ? [`Only ${isArmed} of ${count} were armed: the figure is that of fewer`] : []),
      ...settled.failures,
      ...judged.failures,
    ],
    window: [from, to],
  };
}

/** @returns how many are armed once all are, or shortly before they fall due. */
async function mostArmed(world: World, count: number): Promise<number> {
  let armed = 0;
  const areAll = async (): Promise<boolean> => (armed = await armedCount(world)) >= count;
  await waitUntil(areAll, { everyMs: LOOK_EVERY_MS, limitMs: LOOK_FOR_MS, signal: world.signal });
  return armed;
}

type Memory = Readonly<Record<string, GroupMemory | null>>;

/** All groups but the bench itself; undefined where a system tells nothing. */
function sumOf(memory: Memory): number | undefined {
  const known = GROUPS.flatMap((group) => memory[group] ?? []);
  return known.length === 0 ? undefined : known.reduce((sum, each) => sum + each.bytes, 0);
}

function kindOf(...memories: readonly Memory[]): string | null {
  const kinds = new Set(memories.flatMap((memory) => GROUPS.flatMap((group) => memory[group]?.kind ?? [])));
  return kinds.size === 0 ? null : [...kinds].join(' and ');
}
