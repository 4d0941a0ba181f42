import type { Measured, Scenario, World } from '../scenario.js';
import { pauseFor, waitForInstant, waitUntil } from '../waiting.js';
import { createAtRate, productCpuMs } from './payments-due.js';

const PAYMENTS = 2_000;
/** As payments come in life: what a burst leaves behind in memory is another scenario's figure. */
const RATE = 20;
/** Both results of a pair go back together, when calls leave them room. */
const PAPERWORK_S = 10;
/** From when all are unknown: for each of them one step or two of the ladder fall into it. */
const WATCH_S = 75;
const LOOK_EVERY_MS = 250;
const ALL_UNKNOWN_WITHIN_MS = 240_000;
const MIB = 1_048_576;

export const unknown: Scenario = {
  name: 'unknown',
  title: 'Payments whose outcome nobody knows',
  about:
    `At ${RATE} a second payments fall due that the provider executes; it cuts the connection and answers no lookup. ` +
    `One worker holds them all in \`unknown\` and goes on asking; the lane's breaker is off, or it would keep the ` +
    `calls back. Memory and CPU are those of ${WATCH_S} s after the last one became unknown. None may fail, succeed or be paid twice.`,
  columns: {
    payments: 'payments',
    unknown_s: 'all unknown after (s)',
    lookups_per_s: 'lookups a second',
    worker_mib: 'worker (MiB)',
    worker_idle_mib: 'worker, idle (MiB)',
    more_mib: 'more than idle (MiB)',
    worker_peak_mib: 'worker, peak RSS (MiB)',
    worker_cores: 'CPU of the worker (cores)',
    cores: 'CPU of the product (cores)',
    idle_cores: 'CPU of the idle product (cores)',
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
  world.say(`${count} payments at ${RATE}/s`);
  const payments = await createAtRate(world, RATE, count);
  await ledger.expect(new Map(payments.map((payment) => [payment.id, payment.dueAt])));
  const dueAt = Math.max(...payments.map((payment) => payment.dueAt));
  await waitForInstant(dueAt, signal);
  let found = 0;
  const areUnknown = async (): Promise<boolean> => (found = await rows.inState('unknown')) >= count;
  const waiting = { everyMs: LOOK_EVERY_MS, limitMs: ALL_UNKNOWN_WITHIN_MS, signal };
  const isHeld = await waitUntil(areUnknown, waiting);
  const unknownAt = Date.now();
  await pauseFor(PAPERWORK_S * 1_000, signal);
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
  const cores = (ms: number | null): number | null => (ms === null ? null : ms / 1_000 / share.seconds);
  const more = (held['worker']?.bytes ?? NaN) - (idle['worker']?.bytes ?? NaN);
  return {
    figures: {
      payments: count,
      unknown_s: (unknownAt - dueAt) / 1_000,
      lookups_per_s: lookups / share.seconds,
      worker_mib: mib(held['worker']?.bytes),
      worker_idle_mib: mib(idle['worker']?.bytes),
      more_mib: Number.isNaN(more) ? null : mib(more),
      worker_peak_mib: mib(load.peakRss()['worker']),
      worker_cores: cores(cpuMs === null ? null : (share.cpuMs['worker'] ?? 0)),
      cores: cores(cpuMs),
      idle_cores: world.idleCores,
      cpu_per_lookup_ms: cpuMs === null || lookups === 0 ? null : cpuMs / lookups,
    },
    failures: [
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
