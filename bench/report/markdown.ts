import type { Scenario } from '../scenario.js';
import { percentile } from './distribution.js';
import { rawLine, type RunRecord } from './run-record.js';

export interface Report {
  /** Lines on machine, versions and settings. */
  readonly facts: readonly string[];
  readonly scenarios: readonly Scenario[];
  readonly records: readonly RunRecord[];
  /** Anything but 1: the figures mean nothing. */
  readonly scale: number;
}

const NOT_KNOWN = '–';

/** The whole report in Markdown: one table per scenario, its figures as rows, its runs as columns. */
export function markdownReport(report: Report): string {
  const { facts, scenarios, records, scale } = report;
  const sections = scenarios.flatMap((scenario) => {
    const own = records.filter((record) => record.scenario === scenario.name);
    return own.length === 0 ? [] : [section(scenario, own)];
  });
  const warning =
    scale === 1 ? [] : [`**Scale ${scale}: a trial of the bench itself. No figure means anything.**`];
  return [
    '# Benchmarks',
    'Written by `npm run bench`. Every figure holds for one machine and one run: compare ratios of one run, ' +
      'never figures of two machines. A failed run shows no figures, however fast it was.',
    ...warning,
    facts.map((fact) => `- ${fact}`).join('\n'),
    ...sections,
    '## Raw lines',
    ['```jsonl', ...records.map(rawLine), '```'].join('\n'),
    '',
  ].join('\n\n');
}

function section(scenario: Scenario, records: readonly RunRecord[]): string {
  const labels = [...new Set(records.map((record) => record.label))];
  const runs = labels.map((label) => records.filter((record) => record.label === label));
  const row = (title: string, cell: (own: readonly RunRecord[]) => string): string =>
    `| ${[title, ...runs.map(cell)].join(' | ')} |`;
  const figures = Object.entries(scenario.columns).map(([key, title]) =>
    row(title, (own) => spread(good(own).map((record) => record.figures[key] ?? null))),
  );
  const failures = records.flatMap((record) =>
    record.failures.map((failure) => `- **FAILED** ${record.label}, round ${record.round}: ${failure}.`),
  );
  return [
    `## ${scenario.title}`,
    scenario.about,
    [
      row('', (own) => own[0]?.label ?? ''),
      `|${' --- |'.repeat(labels.length + 1)}`,
      row('verdict', verdict),
      ...figures,
      ...loadRows(row),
    ].join('\n'),
    ...(failures.length === 0 ? [] : [failures.join('\n')]),
  ].join('\n\n');
}

type Row = (title: string, cell: (own: readonly RunRecord[]) => string) => string;

/** The load of others beside the figures. */
function loadRows(row: Row): readonly string[] {
  const of = (read: (load: NonNullable<RunRecord['load']>) => number | null) => (own: readonly RunRecord[]) =>
    spread(own.map((record) => (record.load === null ? null : read(record.load))));
  return [
    row(
      'CPU of other processes, mean (cores)',
      of((load) => load.foreignCores),
    ),
    row(
      '… in the worst second (cores)',
      of((load) => load.foreignCoresMost),
    ),
    row(
      'CPU taken by the host, mean (cores)',
      of((load) => load.stolenCores),
    ),
    row(
      'load average at the start',
      of((load) => load.loadAverage[0]),
    ),
    row(
      'load average at the end',
      of((load) => load.loadAverage[1]),
    ),
  ];
}

function good(records: readonly RunRecord[]): readonly RunRecord[] {
  return records.filter((record) => record.verdict === 'ok');
}

function verdict(records: readonly RunRecord[]): string {
  const failed = records.length - good(records).length;
  if (failed === 0) return records.length === 1 ? 'ok' : `ok, ${records.length} rounds`;
  return records.length === 1 ? '**FAILED**' : `**FAILED** ${failed} of ${records.length}`;
}

/** One value as it is; several as their median with the lowest and the highest. */
function spread(values: readonly (number | string | null)[]): string {
  const numbers = values.filter((value) => typeof value === 'number');
  if (numbers.length > 1 && numbers.length === values.length) {
    const [low, middle, high] = [0, 0.5, 1].map((p) => show(percentile(numbers, p)));
    return `${middle} (${low}–${high})`;
  }
  return [...new Set(values.map(show))].join('; ') || NOT_KNOWN;
}

/** Three figures that matter, at most two digits after the point. */
function show(value: number | string | null): string {
  if (value === null) return NOT_KNOWN;
  if (typeof value === 'string') return value.replaceAll('|', '\\|');
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}
