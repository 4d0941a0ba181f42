import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyFromJSON, type History } from '@temporalio/common/lib/proto-utils.js';

/** Where recorded histories are kept. */
export const HISTORIES = join(import.meta.dirname, 'histories');

/** A committed history; its file is `<workflow>.<scenario>.<release>.json`. */
export interface HistoryFile {
  readonly file: string;
  readonly workflow: string;
  readonly scenario: string;
  readonly release: string;
  readonly text: string;
  readonly history: History;
}

/** The name of a scenario's history in this release. */
export function historyFileName(scenario: string, release: string): string {
  return `execute-payment.${scenario}.${release}.json`;
}

/** Every committed history, by name. @throws Error for a file that is not named like one. */
export function readHistoryFiles(): readonly HistoryFile[] {
  return readdirSync(HISTORIES)
    .sort()
    .map((file) => {
      const match = /^([a-z-]+)\.([a-z-]+)\.(\d+\.\d+\.\d+)\.json$/.exec(file);
      if (!match) throw new Error(`${file} is not named <workflow>.<scenario>.<release>.json`);
      const [, workflow = '', scenario = '', release = ''] = match;
      const text = readFileSync(join(HISTORIES, file), 'utf8');
      return { file, workflow, scenario, release, text, history: historyFromJSON(JSON.parse(text)) };
    });
}

/**
 * Takes out of a history, as Temporal exports it, who recorded it.
 * @throws Error when it still names something of the machine.
 */
export function withoutMachine(exported: unknown, traces: readonly string[]): string {
  const text = `${JSON.stringify(exported, (name, value) => (name === 'identity' ? 'recorder' : value), 2)}\n`;
  const found = traces.filter((trace) => trace.length > 1 && text.includes(trace));
  if (found.length > 0) throw new Error(`the history names this machine: ${found.join(', ')}`);
  return text;
}
