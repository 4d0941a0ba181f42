import { afterEach, describe, expect, it, vi } from 'vitest';
import { readBenchOptions } from '../../../bench/bench-options.js';
import { SCENARIO_NAMES } from '../../../bench/scenarios/scenario-names.js';

const read = (...args: readonly string[]) => readBenchOptions(['node', 'bench', ...args]);

afterEach(() => vi.restoreAllMocks());

describe('the command line of the bench', () => {
  it('runs every scenario once on the development server when nothing is said', () => {
    expect(read()).toEqual({
      scenarios: SCENARIO_NAMES,
      temporal: 'dev',
      rounds: 1,
      scale: 1,
      report: null,
    });
  });

  it('runs the named scenarios in the given order, none twice', () => {
    const options = read(
      'lane',
      'burst',
      'lane',
      '--temporal',
      'postgres',
      '--rounds',
      '3',
      '--report',
      'r.md',
    );
    expect(options).toEqual({
      scenarios: ['lane', 'burst'],
      temporal: 'postgres',
      rounds: 3,
      scale: 1,
      report: 'r.md',
    });
  });

  it.each([
    ['an unknown scenario', ['brust']],
    ['an unknown server', ['--temporal', 'cassandra']],
    ['no rounds', ['--rounds', '0']],
    ['half a round', ['--rounds', '1.5']],
    ['a scale of nothing', ['--scale', '0']],
    ['a scale that is no number', ['--scale', 'small']],
    ['an unknown option', ['--fast']],
  ])('refuses %s', (_what, args) => {
    const complaint = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    expect(() => read(...args)).toThrow();
    expect(complaint).toHaveBeenCalled();
  });
});
