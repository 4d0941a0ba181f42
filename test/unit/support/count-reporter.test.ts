import { describe, expect, it } from 'vitest';
import { countTests, type CountedModule } from '../../support/count-reporter.js';

type State = 'pending' | 'passed' | 'failed' | 'skipped';

/** A test file as vitest hands it to a reporter: states of its tests, messages of errors outside them. */
function file(options: {
  name?: string;
  states?: readonly State[];
  errors?: readonly string[];
  groupErrors?: readonly string[];
}): CountedModule {
  const asErrors = (messages: readonly string[] = []) => messages.map((message) => ({ message }));
  return {
    relativeModuleId: options.name ?? 'a.test.ts',
    errors: () => asErrors(options.errors),
    children: {
      allTests: () => (options.states ?? []).map((state) => ({ result: () => ({ state }) })),
      allSuites: () => [{ fullName: 'a gate', errors: () => asErrors(options.groupErrors) }],
    },
  };
}

describe('the counts of a run', () => {
  it('are sums over all files', () => {
    const files = [file({ states: ['passed', 'failed', 'skipped'] }), file({ states: ['passed', 'passed'] })];
    expect(countTests(files, [], 'failed')).toEqual({
      files: 2,
      passed: 3,
      failed: 1,
      skipped: 1,
      problems: [],
    });
  });

  it('take a test that did not finish for failed', () => {
    expect(countTests([file({ states: ['pending'] })], [], 'passed')).toMatchObject({ passed: 0, failed: 1 });
  });

  it('take a file that does not load for one failure', () => {
    const counts = countTests([file({ errors: ['no such module\nstack'] })], [], 'failed');
    expect(counts).toMatchObject({ failed: 1, problems: ['a.test.ts: no such module'] });
  });

  it('take a hook that failed for one failure beside its skipped tests', () => {
    const counts = countTests(
      [file({ states: ['skipped', 'skipped'], groupErrors: ['no rows'] })],
      [],
      'failed',
    );
    expect(counts).toMatchObject({ failed: 1, skipped: 2, problems: ['a.test.ts, a gate: no rows'] });
  });

  it('take a rejection outside any test for one failure', () => {
    const counts = countTests([file({ states: ['passed'] })], [{ message: 'stray' }], 'failed');
    expect(counts).toMatchObject({ passed: 1, failed: 1, problems: ['Outside any test: stray'] });
  });

  it('take a file without a test for one failure', () => {
    const counts = countTests([file({ name: 'empty.test.ts' })], [], 'passed');
    expect(counts).toMatchObject({ failed: 1, problems: ['empty.test.ts holds no test.'] });
  });

  it('take an interrupted run for one failure', () => {
    const counts = countTests([file({ states: ['passed'] })], [], 'interrupted');
    expect(counts).toMatchObject({ passed: 1, failed: 1 });
  });
});
