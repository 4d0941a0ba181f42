import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { measureCommand, type MeasuredCommand } from '../load/measured-command.js';
import { writeSettledPayments, writeSettlementFile, type SettledPayments } from '../load/settlement-load.js';
import type { Measured, Scenario, World } from '../scenario.js';

const ROWS = 1_000_000;
/** The aim for a file of that size. */
const ROWS_PER_SECOND = 20_000;
const MOST_MIB = 300;
const MIB = 1_048_576;
const PROVIDER = 'settled';
const LANE = 'settled/bench';

export const settlement: Scenario = {
  name: 'settlement',
  title: 'Settlement file',
  about:
    'One file with a right row for each of as many payments, in an order of its own, read by the command line into the ' +
    'stack’s Postgres; one payment in a thousand waits for its row. Rows a second are rows over the whole time of the ' +
    'command: start, identification, rows, settling, the look for missing payments, report. The peak is the largest ' +
    'resident size of the command’s process.',
  columns: {
    rows: 'rows',
    file_mib: 'file (MiB)',
    seconds: 'first import (s)',
    rows_per_second: 'rows/s',
    peak_mib: 'peak RSS (MiB)',
    settled: 'settled by their row',
    again_seconds: 'same file again (s)',
  },
  runs: ({ scaled }) => {
    const count = scaled(ROWS);
    return [
      {
        label: `${count.toLocaleString('en-US')} rows`,
        workers: 1,
        measure: (world) => measureSettlement(world, count),
      },
    ];
  },
};

const Report = z.object({
  rows: z.number(),
  imported_before: z.boolean(),
  buckets: z.record(z.string(), z.number()),
  payments: z.object({ settled: z.number() }),
});

async function measureSettlement(world: World, count: number): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'payments-bench-settlement-'));
  try {
    world.say(`writing ${count} payments`);
    const tenant = 'bench';
    const payments = await writeSettledPayments(world.stack.postgres_url, {
      tenant,
      lane: LANE,
      provider: PROVIDER,
      count,
    });
    await world.rows.addLane(LANE, PROVIDER);
    const path = join(folder, 'activity.csv');
    const bytes = await writeSettlementFile(path, count);
    world.signal.throwIfAborted();
    world.say('importing the file');
    const from = world.load.mark();
    const first = await reconcile(world, path);
    const to = world.load.mark();
    const again = await reconcile(world, path);
    return {
      figures: {
        rows: count,
        file_mib: bytes / MIB,
        seconds: first.seconds,
        rows_per_second: count / first.seconds,
        peak_mib: first.peakBytes === 0 ? null : first.peakBytes / MIB,
        settled: first.report.payments.settled,
        again_seconds: again.seconds,
      },
      failures: faultsOf(payments, first, again),
      window: [from, to],
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Imported = MeasuredCommand<z.infer<typeof Report>>;

function faultsOf({ count, open }: SettledPayments, first: Imported, again: Imported): readonly string[] {
  const { report } = first;
  return [
    ...(report.rows === count ? [] : [`${report.rows} of ${count} rows were read`]),
    ...(report.buckets['matched'] === count ? [] : [`${report.buckets['matched']} of ${count} rows matched`]),
    ...(report.payments.settled === open
      ? []
      : [`${report.payments.settled} of ${open} payments were settled`]),
    ...(first.exitCode === 0 ? [] : [`the command ended with ${first.exitCode}`]),
    ...(again.report.imported_before && again.report.payments.settled === 0
      ? []
      : ['the same file was not known when it was read again']),
    ...(first.peakBytes > MOST_MIB * MIB ? [`more than ${MOST_MIB} MiB were resident`] : []),
    ...(count >= ROWS && count / first.seconds < ROWS_PER_SECOND
      ? [`fewer than ${ROWS_PER_SECOND} rows a second`]
      : []),
  ];
}

function reconcile(world: World, path: string): Promise<Imported> {
  return measureCommand(world, ['reconcile', '--file', path, '--provider', PROVIDER, '--json'], Report);
}
