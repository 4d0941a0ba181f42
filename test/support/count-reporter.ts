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

interface Counted {
  errors(): readonly Pick<SerializedError, 'message'>[];
}

/** What of a test file's tree is counted; all of it is final when the run has ended. */
export interface CountedModule extends Counted {
  /** Path from the project's root. */
  readonly relativeModuleId: string;
  readonly children: {
    allSuites(): Iterable<Counted & { readonly fullName: string }>;
    allTests(): Iterable<{ result(): { readonly state: 'pending' | 'passed' | 'failed' | 'skipped' } }>;
  };
}

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
  const problems = modules.flatMap(problemsOf);
  for (const error of strayErrors) problems.push(`Outside any test: ${firstLine(error.message)}`);
  if (reason === 'interrupted') problems.push('The run was interrupted.');
  const states = modules.flatMap((module) =>
    [...module.children.allTests()].map((test) => test.result().state),
  );
  const passed = states.filter((state) => state === 'passed').length;
  const skipped = states.filter((state) => state === 'skipped').length;
  const failed = states.length - passed - skipped + problems.length;
  return { files: modules.length, passed, failed, skipped, problems };
}

function problemsOf(module: CountedModule): string[] {
  const file = module.relativeModuleId;
  const problems = module.errors().map((error) => `${file}: ${firstLine(error.message)}`);
  for (const suite of module.children.allSuites()) {
    for (const error of suite.errors()) {
      problems.push(`${file}, ${suite.fullName}: ${firstLine(error.message)}`);
    }
  }
  const isEmpty = [...module.children.allTests()].length === 0;
  return isEmpty && problems.length === 0 ? [`${file} holds no test.`] : problems;
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
