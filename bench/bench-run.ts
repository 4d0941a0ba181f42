import type { BenchOptions } from './bench-options.js';
import { readPostgresFacts } from './judge/payment-rows.js';
import type { StackFacts } from './report/machine.js';
import type { RunRecord } from './report/run-record.js';
import type { Scenario, ScenarioRun, World } from './scenario.js';
import { scenarioOf } from './scenarios/index.js';
import { withWorld } from './stack/bench-world.js';
import type { FullTemporal } from './stack/full-temporal.js';

export interface BenchRun {
  readonly scenarios: readonly Scenario[];
  readonly records: readonly RunRecord[];
  /** What the first stack said of itself; null when none came up. */
  readonly facts: StackFacts | null;
}

export interface BenchRunOptions extends BenchOptions {
  readonly full: FullTemporal | null;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  readonly onRecord: (record: RunRecord) => void;
}

/**
 * Runs every chosen scenario once per round, each run on a stack of its own, rounds one after the
 * other so that a slow hour of the machine hits all alike. A run that goes wrong is a failed record
 * and the next one follows; only an abort ends the list early.
 */
export async function runBench(options: BenchRunOptions): Promise<BenchRun> {
  const scenarios = options.scenarios.map(scenarioOf);
  const scaled = (value: number): number => Math.max(1, Math.round(value * options.scale));
  const records: RunRecord[] = [];
  let facts: StackFacts | null = null;
  const readFacts = async (world: World): Promise<void> => {
    facts ??= {
      temporal: await world.runs.facts(),
      postgres: await readPostgresFacts(world.stack.postgres_url),
      temporalPostgres: options.full ? await readPostgresFacts(options.full.databases.url) : null,
    };
  };
  for (let round = 1; round <= options.rounds; round++) {
    for (const scenario of scenarios) {
      for (const run of scenario.runs({ temporal: options.temporal, scaled })) {
        if (options.signal.aborted) return { scenarios, records, facts };
        const record = await recordRun({ options, scenario, run, round, readFacts });
        if (record === null) return { scenarios, records, facts };
        records.push(record);
        options.onRecord(record);
      }
    }
  }
  return { scenarios, records, facts };
}

interface RunToRecord {
  readonly options: BenchRunOptions;
  readonly scenario: Scenario;
  readonly run: ScenarioRun;
  readonly round: number;
  readonly readFacts: (world: World) => Promise<void>;
}

/** @returns null when the bench was told to end meanwhile. */
async function recordRun({
  options,
  scenario,
  run,
  round,
  readFacts,
}: RunToRecord): Promise<RunRecord | null> {
  const { temporal, scale, signal } = options;
  const name = `${scenario.name} ${run.label}`;
  options.say(`${name}${options.rounds > 1 ? `, round ${round}` : ''}`);
  const base = {
    at: new Date().toISOString(),
    scenario: scenario.name,
    label: run.label,
    round,
    temporal,
    scale,
  };
  const say = (line: string): void => options.say(`  ${line}`);
  try {
    return await withWorld(
      { temporal, full: options.full, workers: run.workers, env: run.env ?? {}, signal, say },
      async (world) => {
        await readFacts(world);
        const { figures, failures, window } = await run.measure(world);
        const load = world.load.between(...window);
        return { ...base, verdict: failures.length === 0 ? 'ok' : 'failed', failures, figures, load };
      },
    );
  } catch (error) {
    if (signal.aborted) return null;
    const failure = error instanceof Error ? error.message : String(error);
    return { ...base, verdict: 'failed', failures: [failure], figures: {}, load: null };
  }
}
