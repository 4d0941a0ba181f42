import type { Measured, Scenario, World } from '../scenario.js';
import { pauseFor, waitForInstant, waitUntil } from '../waiting.js';
import { dueAfterSetUp, productCpuMs, setUpPayments } from './payments-due.js';

const PAYMENTS = 2_000;
/** From when all are unknown: the steps at 15 s and 1 min of the ladder fall into it. */
const WATCH_S = 75;
const LOOK_EVERY_MS = 250;
const ALL_UNKNOWN_WITHIN_MS = 240_000;
const MIB = 1_048_576;

export const unknown: Scenario = {
  name: 'unknown',
  title: 'Payments whose outcome nobody knows',
  about:
    `The provider executes every payment, cuts the connection and answers no lookup. One worker holds them all in ` +
    `\`unknown\` and goes on asking; the lane's breaker is off, or it would keep the calls back. Memory and CPU are ` +
    `those of ${WATCH_S} s after the last one became unknown. None may fail, succeed or be paid twice.`,
  columns: {
    payments: 'payments',
    unknown_s: 'all unknown after (s)',
    lookups_per_s: 'lookups a second',
    worker_mib: 'worker (MiB)',
    worker_idle_mib: 'worker, idle (MiB)',
    worker_peak_mib: 'worker, peak RSS (MiB)',
    cores: 'CPU of the product (cores)',
    cpu_per_lookup_ms: 'CPU per lookup (ms)',
  },
  runs: ({ scaled }) => {
    const count = scaled(PAYMENTS);
    return [{ label: `${count} unknown`, workers: 1, measure: (world) => measureUnknown(world, count) }];
  },
};

async function measureUnknown(world: World, count: number): Promise<Measured> {
  const { load, ledger, rows, signal } = world;
  const idle = load.memory(true);
  await rows.disableBreakers();
  await ledger.stayUnknown();
  const dueAt = dueAfterSetUp(world, count);
  const setUp = await setUpPayments(world, count, dueAt);
  await waitForInstant(dueAt, signal);
  let found = 0;
  const areUnknown = async (): Promise<boolean> => (found = await rows.inState('unknown')) >= count;
  const waiting = { everyMs: LOOK_EVERY_MS, limitMs: ALL_UNKNOWN_WITHIN_MS, signal };
  const isHeld = await waitUntil(areUnknown, waiting);
  const unknownAt = Date.now();
  const from = load.mark();
  const lookupsBefore = await ledger.requests('lookup');
  await pauseFor(WATCH_S * 1_000, signal);
  const lookups = (await ledger.requests('lookup')) - lookupsBefore;
  const held = load.memory(true);
  const to = load.mark();
  const share = load.between(from, to);
  const view = await ledger.read();
  const stayed = await rows.inState('unknown');
  const mib = (bytes: number | undefined): number | null => (bytes === undefined ? null : bytes / MIB);
  const cpuMs = share.foreignCores === null ? null : productCpuMs(share);
  return {
    figures: {
      payments: count,
      unknown_s: (unknownAt - dueAt) / 1_000,
      lookups_per_s: lookups / share.seconds,
      worker_mib: mib(held['worker']?.bytes),
      worker_idle_mib: mib(idle['worker']?.bytes),
      worker_peak_mib: mib(load.peakRss()['worker']),
      cores: cpuMs === null ? null : cpuMs / 1_000 / share.seconds,
      cpu_per_lookup_ms: cpuMs === null || lookups === 0 ? null : cpuMs / lookups,
    },
    failures: [
      ...setUp.failures,
      ...(isHeld ? [] : [`Only ${found} of ${count} payments became unknown`]),
      ...(stayed === count ? [] : [`${count - stayed} payments left \`unknown\` although nobody could know`]),
      ...(view.duplicates.length === 0
        ? []
        : [`${view.duplicates.length} payments were paid more than once`]),
      ...(view.early.length === 0 ? [] : [`${view.early.length} payments were paid early`]),
      ...(lookups > 0 ? [] : ['No lookup arrived: nobody asked']),
    ],
    window: [from, to],
  };
}
