import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestModule, TestRunEndReason } from 'vitest/node';

/** Where the counts go; `npm test` sets it for each tier. */
const FILE_VARIABLE = 'TEST_COUNTS_FILE';

/** What one run of vitest did, as scripts/run-tests.mjs reads it. */
export interface TestCounts {
  readonly files: number;
  readonly passed: number;
  /** Tests that failed or did not finish, and one for each entry of `problems`. */
  readonly failed: number;
  /** Skipped in the text, or because an earlier failure or a filter kept them from running. */
  readonly skipped: number;
  /** Failures outside a test, one sentence each: a file that does not load, a hook, a stray rejection. */
  readonly problems: readonly string[];
}

/** What of a module's tree is counted; all of it is final when the run has ended. */
export type CountedModule = Pick<TestModule, 'moduleId' | 'errors'> & {
  readonly children: Pick<TestModule['children'], 'allTests' | 'allSuites'>;
};

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

/**
 * Counts a finished run. A file or group that failed outside its tests has only skipped tests, so its
 * error is counted as a failure of its own: a run must not look green because nothing could run.
 */
export function countTests(
  modules: readonly CountedModule[],
  strayErrors: readonly Pick<SerializedError, 'message'>[],
  reason: TestRunEndReason,
): TestCounts {
  const problems: string[] = [];
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const module of modules) {
    for (const error of module.errors()) problems.push(`${module.moduleId}: ${firstLine(error.message)}`);
    for (const suite of module.children.allSuites()) {
      for (const error of suite.errors()) problems.push(`${suite.fullName}: ${firstLine(error.message)}`);
    }
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') passed += 1;
      else if (state === 'skipped') skipped += 1;
      else failed += 1;
    }
  }
  for (const error of strayErrors) problems.push(`Outside any test: ${firstLine(error.message)}`);
  if (reason === 'interrupted') problems.push('The run was interrupted.');
  return { files: modules.length, passed, failed: failed + problems.length, skipped, problems };
}

/** A vitest reporter that writes the counts of the run as JSON into the file named by TEST_COUNTS_FILE. */
export default class CountReporter implements Reporter {
  onTestRunEnd(
    modules: readonly TestModule[],
    strayErrors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    const file = process.env[FILE_VARIABLE];
    if (file === undefined) throw new Error(`${FILE_VARIABLE} is not set: run the tests by npm test.`);
    writeFileSync(file, JSON.stringify(countTests(modules, strayErrors, reason)));
  }
}
