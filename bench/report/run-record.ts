import type { TemporalKind } from '../bench-options.js';
import type { LoadShare } from '../sampling/load-sampler.js';
import type { Figures } from '../scenario.js';
import type { ScenarioName } from '../scenarios/scenario-names.js';

/** One run, as it stands in the raw lines. */
export interface RunRecord {
  readonly at: string;
  readonly scenario: ScenarioName;
  readonly label: string;
  readonly round: number;
  readonly temporal: TemporalKind;
  readonly scale: number;
  readonly verdict: 'ok' | 'failed';
  readonly failures: readonly string[];
  readonly figures: Figures;
  /** Of the measured time; null when the run ended before it. */
  readonly load: LoadShare | null;
}

/** One line of JSON; numbers rounded to three digits after the point, which is finer than the clocks. */
export function rawLine(record: RunRecord): string {
  return JSON.stringify(record, (_key, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value,
  );
}
