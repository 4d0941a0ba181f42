import { z } from 'zod';
import { isAnchored, TRANSITIONS_EACH, writeHistories } from '../load/history-load.js';
import { measureCommand } from '../load/measured-command.js';
import type { Measured, Scenario, World } from '../scenario.js';
import { waitUntil } from '../waiting.js';

const TRANSITIONS = 1_000_000;
const MOST_MIB = 300;
/** Two ticks of the job, and the time it takes for a million rows. */
const ANCHORED_WITHIN_MS = 240_000;
const MIB = 1_048_576;

export const audit: Scenario = {
  name: 'audit',
  title: 'Verification of the history',
  about:
    'Histories of four transitions each, written set by set with right hashes and anchored by the worker; then `payments ' +
    'audit verify` over all of them with anchors and copies. Transitions a second are over the whole time of the command, ' +
    'start, anchors and copies included; a core’s rate counts the processor time of the command alone, while Postgres ' +
    'sends on another one. The aim of 500,000 on one core is not reached.',
  columns: {
    transitions: 'transitions',
    seconds: 'verified in (s)',
    per_second: 'transitions/s',
    per_core: 'transitions/s of its own core',
    peak_mib: 'peak RSS (MiB)',
    anchors: 'anchors',
  },
  runs: ({ scaled }) => {
    const payments = scaled(TRANSITIONS / TRANSITIONS_EACH);
    return [
      {
        label: `${(payments * TRANSITIONS_EACH).toLocaleString('en-US')} transitions`,
        workers: 1,
        measure: (world) => measureAudit(world, payments),
      },
    ];
  },
};

const Report = z.object({ ok: z.boolean(), transitions: z.number(), anchors: z.number() });

async function measureAudit(world: World, payments: number): Promise<Measured> {
  world.say(`writing the histories of ${payments} payments`);
  await writeHistories(world.stack.postgres_url, payments);
  world.say('waiting for the anchor that holds them');
  const waiting = { everyMs: 1_000, limitMs: ANCHORED_WITHIN_MS, signal: world.signal };
  if (!(await waitUntil(() => isAnchored(world.stack.postgres_url), waiting))) {
    throw new Error('The worker anchored the histories not in time.');
  }
  world.say('verifying');
  const from = world.load.mark();
  const { seconds, cpuSeconds, peakBytes, exitCode, report } = await measureCommand(
    world,
    ['audit', 'verify', '--json'],
    Report,
  );
  const to = world.load.mark();
  const perCore = cpuSeconds === 0 ? null : report.transitions / cpuSeconds;
  const least = payments * TRANSITIONS_EACH;
  return {
    figures: {
      transitions: report.transitions,
      seconds,
      per_second: report.transitions / seconds,
      per_core: perCore,
      peak_mib: peakBytes === 0 ? null : peakBytes / MIB,
      anchors: report.anchors,
    },
    failures: [
      ...(exitCode === 0 && report.ok ? [] : [`the command ended with ${exitCode}`]),
      ...(report.transitions >= least ? [] : [`${report.transitions} of ${least} transitions were read`]),
      ...(peakBytes > MOST_MIB * MIB ? [`more than ${MOST_MIB} MiB were resident`] : []),
    ],
    window: [from, to],
  };
}
