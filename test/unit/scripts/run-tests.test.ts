import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { projectRoot } from '../../../src/dev/stack-settings.js';

/**
 * Stands in for vitest: does for each tier what plan.json says, and notes its arguments. `counts` is
 * what the reporter would write; `leaves` starts a process that outlives it; `waits` never ends.
 */
const VITEST = `
import { spawn } from 'node:child_process';
import fs from 'node:fs';
const args = process.argv.slice(2);
const tier = args[args.indexOf('--project') + 1];
const plan = JSON.parse(fs.readFileSync('plan.json', 'utf8'))[tier] ?? {};
fs.appendFileSync('calls', JSON.stringify({ tier, args, folder: process.env.TMPDIR }) + '\\n');
fs.writeFileSync(process.env.TMPDIR + '/scrap', '');
const sleeper = ['-e', 'setInterval(() => {}, 1000)'];
const startSleeper = () => {
  const child = spawn(process.execPath, sleeper, { detached: true, stdio: 'ignore' });
  child.unref();
  fs.writeFileSync('sleeper', String(child.pid));
};
if (plan.leaves) startSleeper();
if (plan.counts) {
  const none = { files: 1, passed: 0, failed: 0, skipped: 0, problems: [] };
  fs.writeFileSync(process.env.TEST_COUNTS_FILE, JSON.stringify({ ...none, ...plan.counts }));
}
if (plan.dies) process.kill(process.pid, 'SIGKILL');
if (plan.waits) {
  process.on('SIGINT', () => process.exit(130));
  setInterval(() => {}, 1000);
  console.log('vitest waits');
} else process.exitCode = plan.code ?? 0;
`;

const TIERS = ['unit', 'replay', 'workflow', 'integration', 'e2e'] as const;
type Tier = (typeof TIERS)[number];
interface Plan {
  readonly counts?: { passed?: number; failed?: number; skipped?: number; problems?: readonly string[] };
  readonly code?: number;
  readonly dies?: boolean;
  readonly leaves?: boolean;
  readonly waits?: boolean;
}
const ONE_PASSES: Plan = { counts: { passed: 1 } };
const ALL_PASS = Object.fromEntries(TIERS.map((tier) => [tier, ONE_PASSES])) as Record<Tier, Plan>;

interface Call {
  readonly tier: Tier;
  readonly args: readonly string[];
  readonly folder: string;
}
interface Run {
  readonly code: number | null;
  readonly output: string;
  /** The last line of the output: what a caller reads. */
  readonly closing: string;
  readonly calls: readonly Call[];
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A container's first process may leave a dead one unburied: state Z behind the name in brackets.
    const stat = `/proc/${pid}/stat`;
    return !existsSync(stat) || !/[)] Z /.test(readFileSync(stat, 'utf8'));
  } catch {
    return false;
  }
}

/** A project in a temporary folder with the real runner, one test file per tier and stand-ins for the rest. */
function project(options: { plan: Partial<Record<Tier, Plan>>; setupCode?: number }) {
  const root = mkdtempSync(join(tmpdir(), 'payments-run-tests-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const write = (name: string, content: string): void => {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  };
  const source = (name: string): string => readFileSync(join(projectRoot(), 'scripts', name), 'utf8');
  const impatient = source('run-tests.mjs').replace('LEFTOVER_MS = 5 * 1000', 'LEFTOVER_MS = 300');
  expect(impatient).not.toBe(source('run-tests.mjs'));
  write('scripts/run-tests.mjs', impatient);
  write('scripts/leftover-processes.mjs', source('leftover-processes.mjs'));
  write('scripts/bootstrap.mjs', `process.exit(${options.setupCode ?? 0});`);
  write('node_modules/vitest/vitest.mjs', VITEST);
  write('plan.json', JSON.stringify(options.plan));
  for (const tier of TIERS) write(`test/${tier}/a/${tier}-claim.test.ts`, '');

  const run = async (
    args: readonly string[] = [],
    onOutput: (text: string, kill: (signal: NodeJS.Signals) => void) => void = () => undefined,
  ): Promise<Run> => {
    const child = spawn(process.execPath, [join(root, 'scripts', 'run-tests.mjs'), ...args], { cwd: root });
    let output = '';
    const take = (text: Buffer): void => {
      output += text.toString();
      onOutput(text.toString(), (signal) => child.kill(signal));
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    const file = join(root, 'calls');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    const calls = lines.map((line) => JSON.parse(line) as Call);
    return { code, output, closing: output.trimEnd().split('\n').at(-1) ?? '', calls };
  };
  const sleeperLives = (): boolean => isAlive(Number(readFileSync(join(root, 'sleeper'), 'utf8')));
  return { run, sleeperLives };
}

// Each test starts several programs one after the other.
describe('npm test', { timeout: 60_000 }, () => {
  it('runs the tiers in order and closes with the sum of their counts', async () => {
    const plan = { ...ALL_PASS, unit: { counts: { passed: 5, skipped: 2 } } };
    const { code, closing, calls } = await project({ plan }).run();
    expect(calls.map(({ tier }) => tier)).toEqual(TIERS);
    expect(closing).toBe('9 passed, 0 failed, 2 skipped');
    expect(code).toBe(0);
  });

  it('closes with two counts when nothing was skipped', async () => {
    expect((await project({ plan: ALL_PASS }).run()).closing).toBe('5 passed, 0 failed');
  });

  it('runs the later tiers after a failure, and exits with 1', async () => {
    const plan = { ...ALL_PASS, unit: { counts: { passed: 3, failed: 2 }, code: 1 } };
    const { code, closing, calls } = await project({ plan }).run();
    expect(calls).toHaveLength(5);
    expect(closing).toBe('7 passed, 2 failed');
    expect(code).toBe(1);
  });

  it('repeats the problems outside tests above the closing line', async () => {
    const problems = ['a.test.ts: no such module'];
    const plan = { ...ALL_PASS, e2e: { counts: { failed: 1, problems }, code: 1 } };
    const { output, closing } = await project({ plan }).run();
    expect(output).toContain('- a.test.ts: no such module\n\n4 passed, 1 failed\n');
    expect(closing).toBe('4 passed, 1 failed');
  });

  it.each([
    ['a vitest that is killed', { dies: true }, 'vitest ended by SIGKILL before it had counted'],
    ['a vitest that fails before it counts', { code: 1 }, 'vitest ended with code 1 before it had counted'],
    ['a tier without a test', { counts: {} }, 'replay ran no test'],
    ['a tier with only skipped tests', { counts: { skipped: 3 } }, 'replay ran no test'],
    [
      'a failing exit code without a failed test',
      { counts: { passed: 1 }, code: 1 },
      'though no test failed',
    ],
  ] satisfies readonly (readonly [string, Plan, string])[])(
    '%s counts as one failure with a sentence',
    async (_, replay, sentence) => {
      const { code, output, closing } = await project({ plan: { ...ALL_PASS, replay } }).run();
      expect(output).toContain(sentence);
      expect(closing).toMatch(/^[45] passed, 1 failed/);
      expect(code).toBe(1);
    },
  );

  it('a project that does not build fails with a counted line and runs nothing', async () => {
    const { code, output, closing, calls } = await project({ plan: ALL_PASS, setupCode: 1 }).run();
    expect(output).toContain('not installed or does not build');
    expect(closing).toBe('0 passed, 1 failed');
    expect([code, calls]).toEqual([1, []]);
  });

  it('takes names of tiers, and hands options on', async () => {
    const { calls, closing } = await project({ plan: ALL_PASS }).run(['e2e', 'unit', '-t', 'AM-03']);
    expect(calls.map(({ tier }) => tier)).toEqual(['unit', 'e2e']);
    expect(calls[0]?.args.slice(-2)).toEqual(['-t', 'AM-03']);
    expect(closing).toBe('2 passed, 0 failed');
  });

  it('takes a path or a part of one, and leaves tiers without such a file out', async () => {
    const { run } = project({ plan: ALL_PASS });
    const { calls } = await run(['./test/replay/a/replay-claim.test.ts']);
    expect(calls.map(({ tier, args }) => [tier, args.at(-1)])).toEqual([
      ['replay', 'test/replay/a/replay-claim.test.ts'],
    ]);
    expect((await run(['claim'])).calls).toHaveLength(6);
  });

  it('fails when nothing matches', async () => {
    const { code, output, closing, calls } = await project({ plan: ALL_PASS }).run(['nowhere']);
    expect(output).toContain('No test matches nowhere.');
    expect([code, closing, calls]).toEqual([1, '0 passed, 1 failed', []]);
  });

  it('refuses a forgotten .only', async () => {
    const { calls } = await project({ plan: ALL_PASS }).run(['unit']);
    expect(calls[0]?.args).toContain('--allowOnly=false');
  });

  it('gives each tier a temporary folder and removes it', async () => {
    const { calls } = await project({ plan: ALL_PASS }).run();
    expect(new Set(calls.map(({ folder }) => folder)).size).toBe(5);
    expect(calls.filter(({ folder }) => existsSync(folder))).toEqual([]);
  });

  it.runIf(existsSync('/proc/self/environ'))('ends a process left behind, and counts it', async () => {
    const plan = { ...ALL_PASS, integration: { ...ONE_PASSES, leaves: true } };
    const { run, sleeperLives } = project({ plan });
    const { code, output, closing } = await run();
    expect(output).toMatch(/integration left behind .*: \d+ \(/);
    expect([code, closing]).toEqual([1, '5 passed, 1 failed']);
    expect(sleeperLives()).toBe(false);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends vitest and what it started, and starts no further tier', async (signal, exitCode) => {
    const plan = { ...ALL_PASS, replay: { waits: true, leaves: true } };
    const { run, sleeperLives } = project({ plan });
    const { code, closing, calls } = await run([], (text, kill) => {
      if (text.includes('vitest waits')) kill(signal);
    });
    expect(calls.map(({ tier }) => tier)).toEqual(['unit', 'replay']);
    expect(closing).toBe('1 passed, 1 failed');
    expect(code).toBe(exitCode);
    expect(sleeperLives()).toBe(false);
  });
});
