import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { runCommand } from '../../src/dev/process/command.js';
import type { PostgresFacts } from '../judge/payment-rows.js';
import type { TemporalFacts } from '../judge/workflow-runs.js';

const GIT_WITHIN_MS = 10_000;
const GIB = 1_073_741_824;

/** What a stack said of itself; read from the running servers, not from our settings. */
export interface StackFacts {
  readonly temporal: TemporalFacts;
  readonly postgres: PostgresFacts;
  /** Of Temporal's own Postgres; null with the development server. */
  readonly temporalPostgres: PostgresFacts | null;
}

/** Lines "name: value" on this machine and program. */
export function machineLines(): readonly string[] {
  const model = cpus()[0]?.model ?? 'unknown';
  return [
    `Machine: ${availableParallelism()} cores (${model}), ${(totalmem() / GIB).toFixed(1)} GiB, ${type()} ${release()} ${process.arch}`,
    `Node ${process.versions.node}`,
  ];
}

/** The commit, and whether files differ from it. "unknown" outside a repository. */
export async function commitLine(root: string): Promise<string> {
  const options = { cwd: root, env: process.env, limitMs: GIT_WITHIN_MS };
  try {
    const head = (await runCommand('git', ['rev-parse', '--short', 'HEAD'], options)).stdout.trim();
    const changed = (await runCommand('git', ['status', '--porcelain', '--untracked-files=no'], options))
      .stdout;
    return `Commit ${head}${changed.trim() === '' ? '' : ', with changes that are not committed'}`;
  } catch {
    return 'Commit unknown: not a git repository'; // A packed copy has none; the figures still hold.
  }
}

/** Lines on the servers and the settings that decide what a commit costs. */
export function stackLines(facts: StackFacts): readonly string[] {
  const { temporal } = facts;
  const settings = (postgres: PostgresFacts): string =>
    Object.entries(postgres.settings)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  return [
    `Temporal server ${temporal.version}, stores in ${temporal.persistence}, ${temporal.historyShards} history shards`,
    `Postgres ${facts.postgres.version}: ${settings(facts.postgres)}`,
    ...(facts.temporalPostgres
      ? [`Temporal's own Postgres ${facts.temporalPostgres.version}: ${settings(facts.temporalPostgres)}`]
      : []),
  ];
}

/** Settings of the product that the environment changed, e.g. PAYMENTS_LOG_LEVEL. */
export function changedSettings(env: NodeJS.ProcessEnv): string {
  const own = Object.entries(env).filter(([name]) =>
    /^PAYMENTS_(?!CACHE_DIR|LOCAL_DIR|PORT_BASE)/.test(name),
  );
  return own.length === 0
    ? 'Settings of the product: its defaults'
    : `Settings of the product that differ: ${own.map(([name, value]) => `${name}=${value}`).join(', ')}`;
}
