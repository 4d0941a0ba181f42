import { describe, expect, it } from 'vitest';
import { markdownReport } from '../../../../bench/report/markdown.js';
import type { RunRecord } from '../../../../bench/report/run-record.js';
import type { Scenario } from '../../../../bench/scenario.js';

const scenario: Scenario = {
  name: 'burst',
  title: 'Burst',
  about: 'Many at once.',
  columns: { last_call_ms: 'last call (ms)', events: 'events' },
  runs: () => [],
};

function record(changes: Partial<RunRecord> = {}): RunRecord {
  return {
    at: '2026-01-01T00:00:00.000Z',
    scenario: 'burst',
    label: '500',
    round: 1,
    temporal: 'dev',
    scale: 1,
    verdict: 'ok',
    failures: [],
    figures: { last_call_ms: 180.25, events: '14/14/16' },
    load: {
      seconds: 20,
      cpuMs: { worker: 5_000 },
      foreignCores: 0.1234,
      foreignCoresMost: 0.5,
      stolenCores: null,
      loadAverage: [0.5, 1.25],
    },
    ...changes,
  };
}

function report(records: readonly RunRecord[], scale = 1): string {
  return markdownReport({ facts: ['Machine: 2 cores'], scenarios: [scenario], records, scale });
}

/** The cells of a row of the table, without its title. */
function row(text: string, title: string): readonly string[] {
  const line = text.split('\n').find((each) => each.startsWith(`| ${title} |`)) ?? '';
  return line
    .split(' | ')
    .slice(1)
    .map((cell) => cell.replace(/ \|$/, ''));
}

describe('the report of the bench', () => {
  it('shows each figure of a run in a column of its own, and the load of others beside it', () => {
    const text = report([record(), record({ label: '1,000', figures: { last_call_ms: 7, events: null } })]);
    expect(row(text, 'last call (ms)')).toEqual(['180', '7']);
    expect(row(text, 'events')).toEqual(['14/14/16', '–']);
    expect(row(text, 'verdict')).toEqual(['ok', 'ok']);
    expect(row(text, 'CPU of other processes, mean (cores)')).toEqual(['0.12', '0.12']);
    expect(row(text, 'CPU taken by the host, mean (cores)')).toEqual(['–', '–']);
    expect(text).toContain('- Machine: 2 cores');
  });

  it('hides the figures of a failed run and says why it failed', () => {
    const failed = record({ verdict: 'failed', failures: ['1 payments were paid more than once'] });
    const text = report([failed]);
    expect(row(text, 'verdict')).toEqual(['**FAILED**']);
    expect(row(text, 'last call (ms)')).toEqual(['–']);
    expect(text).toContain('**FAILED** 500, round 1: 1 payments were paid more than once.');
  });

  it('shows median, lowest and highest of several rounds, without those that failed', () => {
    const round = (number: number, last_call_ms: number): RunRecord =>
      record({ round: number, figures: { last_call_ms, events: '14/14/14' } });
    const failed = record({ round: 4, verdict: 'failed', failures: ['x'], figures: { last_call_ms: 1 } });
    const text = report([round(1, 300), round(2, 100), round(3, 200), failed]);
    expect(row(text, 'last call (ms)')).toEqual(['200 (100–300)']);
    expect(row(text, 'events')).toEqual(['14/14/14']);
    expect(row(text, 'verdict')).toEqual(['**FAILED** 1 of 4']);
  });

  it('says aloud that figures of another scale mean nothing', () => {
    expect(report([record({ scale: 0.1 })], 0.1)).toContain('No figure means anything');
    expect(report([record()])).not.toContain('No figure means anything');
  });

  it('ends with the raw lines, each of them JSON, also those of failed runs', () => {
    const records = [record(), record({ verdict: 'failed', failures: ['x'] })];
    const block = /```jsonl\n([\s\S]*?)\n```/.exec(report(records))?.[1] ?? '';
    const lines = block.split('\n').map((line) => JSON.parse(line) as RunRecord);
    expect(lines.map((line) => line.verdict)).toEqual(['ok', 'failed']);
    expect(lines[0]?.figures['last_call_ms']).toBe(180.25);
    expect(lines[0]?.load?.foreignCores).toBe(0.123);
  });
});
