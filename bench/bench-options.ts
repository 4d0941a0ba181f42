import { Command, InvalidArgumentError, Option } from 'commander';
import { SCENARIO_NAMES, type ScenarioName } from './scenarios/scenario-names.js';

export type TemporalKind = 'dev' | 'postgres';

/** What one run of the bench is asked to do. */
export interface BenchOptions {
  /** In the order in which they run; none twice. */
  readonly scenarios: readonly ScenarioName[];
  readonly temporal: TemporalKind;
  /** The whole list is run so often, one round after the other. */
  readonly rounds: number;
  /** Multiplies counts and durations; anything but 1 only shows that the bench works. */
  readonly scale: number;
  /** The report is also written here; null: only printed. */
  readonly report: string | null;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 100) throw new InvalidArgumentError('1 to 100.');
  return value;
}

function share(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 10)) throw new InvalidArgumentError('A number above 0, up to 10.');
  return value;
}

function scenarioName(text: string, previous: readonly ScenarioName[]): readonly ScenarioName[] {
  const name = SCENARIO_NAMES.find((each) => each === text);
  if (name === undefined) throw new InvalidArgumentError(`Known: ${SCENARIO_NAMES.join(', ')}.`);
  return previous.includes(name) ? previous : [...previous, name];
}

/**
 * Reads the command line (`process.argv`).
 * @throws CommanderError when it was wrong or asked for help; it has been printed by then.
 */
export function readBenchOptions(argv: readonly string[]): BenchOptions {
  const command = new Command('bench')
    .description('Measures this project on this machine. Every figure holds for this machine alone.')
    .argument('[scenarios...]', `of ${SCENARIO_NAMES.join(', ')}; all when none is named`, scenarioName, [])
    .addOption(
      new Option('--temporal <kind>', "Temporal's development server, or the full server on Postgres")
        .choices(['dev', 'postgres'])
        .default('dev'),
    )
    .option('--rounds <n>', 'run the list so often', wholeNumber, 1)
    .option('--scale <x>', 'multiply counts and durations; only to try the bench out', share, 1)
    .option('--report <file>', 'also write the report to a file, e.g. docs/benchmarks.md')
    .addHelpText(
      'after',
      '\nExample: npm run bench -- burst steady --temporal postgres --report docs/benchmarks.md',
    );
  command.exitOverride().parse([...argv]);
  const chosen = command.processedArgs[0] as readonly ScenarioName[];
  const options = command.opts<{ temporal: TemporalKind; rounds: number; scale: number; report?: string }>();
  return {
    scenarios: chosen.length === 0 ? SCENARIO_NAMES : chosen,
    temporal: options.temporal,
    rounds: options.rounds,
    scale: options.scale,
    report: options.report ?? null,
  };
}
