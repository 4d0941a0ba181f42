import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir, hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { projectRoot } from '../../src/dev/stack-settings.js';
import { startDevServerRig } from '../support/dev-server.js';
import { historyFileName, HISTORIES, withoutMachine } from './history-files.js';
import { RUN_KEPT, SCENARIOS } from './scenarios.js';

/**
 * Plays scenarios with the real workflow code at a development server and writes their histories for
 * this release. Existing files are replaced: only a release that nobody runs yet is recorded again.
 * @param wanted names of scenarios; empty: all.
 * @throws Error for an unknown name, or when a history names this machine.
 */
export async function recordHistories(
  wanted: readonly string[],
  report: (line: string) => void,
): Promise<void> {
  const unknown = wanted.filter((name) => !(name in SCENARIOS));
  if (unknown.length > 0) throw new Error(`no scenario ${unknown.join(', ')}`);
  const root = projectRoot();
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const traces = [hostname(), root, homedir(), tmpdir(), 'node_modules', '.ts:', '.js:'];
  mkdirSync(HISTORIES, { recursive: true });
  const rig = await startDevServerRig({ oneWorker: true });
  try {
    for (const [name, play] of Object.entries(SCENARIOS)) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      const payment = await play(rig, `pay_${name}`);
      const newest = rig.client.workflow.getHandle(payment.id);
      const run = (await rig.runs(payment))[RUN_KEPT[name] ?? -1];
      const handle = run === undefined ? newest : rig.client.workflow.getHandle(payment.id, run);
      // Temporal's own export format: the objects of the protocol, written by JSON.stringify, do not replay.
      const exported: unknown = JSON.parse(historyToJSON(await handle.fetchHistory()));
      const file = historyFileName(name, version);
      writeFileSync(join(HISTORIES, file), withoutMachine(exported, traces));
      report(file);
      if ((await newest.describe()).status.name === 'RUNNING') await newest.terminate();
    }
  } finally {
    await rig.close();
  }
}
