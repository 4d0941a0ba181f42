import type { TemporaryStack } from '../src/dev/temporary-stack.js';
import type { TemporalKind } from './bench-options.js';
import type { PaymentRows } from './judge/payment-rows.js';
import type { SimulatorLedger } from './judge/simulator-ledger.js';
import type { WorkflowRuns } from './judge/workflow-runs.js';
import type { PaymentCreator } from './load/payment-creator.js';
import type { LoadMark, LoadSampler } from './sampling/load-sampler.js';
import type { ScenarioName } from './scenarios/scenario-names.js';

/** One stack, warmed up, with everything that loads, disturbs and judges it. */
export interface World {
  readonly stack: TemporaryStack;
  readonly temporal: TemporalKind;
  readonly creator: PaymentCreator;
  readonly ledger: SimulatorLedger;
  readonly rows: PaymentRows;
  readonly runs: WorkflowRuns;
  readonly load: LoadSampler;
  /** Payments of the warm-up: final, their workflows ended. They are judged with the others. */
  readonly warmUpIds: readonly string[];
  /** CPU of the product after the warm-up, with nothing to do; null: not known here. */
  readonly idleCores: number | null;
  /** Aborts when the bench is to end. */
  readonly signal: AbortSignal;
  /** A line for the person who waits. */
  say(line: string): void;
}

/** Figures by column; null: could not be measured here. Text only where no number says it. */
export type Figures = Readonly<Record<string, number | string | null>>;

export interface Measured {
  readonly figures: Figures;
  /** Sentences; any of them makes the run failed, however fast it was. */
  readonly failures: readonly string[];
  /** The measured time, for the load of other processes beside the figures. */
  readonly window: readonly [LoadMark, LoadMark];
}

/** One line of a scenario's table. */
export interface ScenarioRun {
  /** What sets this line apart, e.g. "20/s" or "5,000". */
  readonly label: string;
  readonly workers: number;
  /** Settings of the stack's processes beside the usual ones. */
  readonly env?: Readonly<Record<string, string>>;
  measure(world: World): Promise<Measured>;
}

export interface ScenarioSetup {
  readonly temporal: TemporalKind;
  /** Turns a count or a duration into this run's, at least 1. */
  readonly scaled: (value: number) => number;
}

export interface Scenario {
  readonly name: ScenarioName;
  readonly title: string;
  /** What is measured, how, and what the words of the table mean. */
  readonly about: string;
  /** Key of a figure to the heading of its column, in order; keys end in their unit. */
  readonly columns: Readonly<Record<string, string>>;
  runs(setup: ScenarioSetup): readonly ScenarioRun[];
}
