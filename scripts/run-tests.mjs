// `npm test`: every tier in order, one vitest process each, and a closing line `N passed, N failed`.
//
//   npm test                          everything
//   npm test -- unit replay           these tiers
//   npm test -- money                 test files whose path contains "money", in every tier
//   npm test -- integration -t AM-03  from the first option on, everything goes to vitest
//
// Exit code 1 when anything failed. What counts as a failure besides a failed test: a file that does not
// load, a hook, a stray rejection, a tier that ran nothing, a crash, a process left behind.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { endMarked, waitForEnd } from './leftover-processes.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const at = (...parts) => path.join(root, ...parts);

/** From what needs nothing to what needs the whole stack: the first failure is the cheapest to read. */
const TIERS = ['unit', 'replay', 'workflow', 'integration', 'e2e'];
/** Longer than the longest tier on two cores; after it something hangs. */
const TIER_LIMIT_MS = 30 * 60 * 1000;
/** How long vitest may take to end after a signal, its servers included. */
const STOP_MS = 15 * 1000;
/** How long a process may outlive its tier: it was told to end and is on its way. */
const LEFTOVER_MS = 5 * 1000;
const RUN_VARIABLE = 'TEST_RUN_ID';

const runId = randomUUID();
const say = (line) => process.stdout.write(`${line}\n`);
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

/** The project's Node 24 where it is installed, else the Node that runs this. */
function nodeProgram() {
  const installed = at('node_modules', '.bin', 'node');
  return fs.existsSync(installed) ? installed : process.execPath;
}

/** @returns {{ tiers: string[], filters: string[], options: string[] }} */
function readArguments(words) {
  const firstOption = words.findIndex((word) => word.startsWith('-'));
  const plain = firstOption === -1 ? words : words.slice(0, firstOption);
  const tiers = TIERS.filter((tier) => plain.includes(tier));
  return {
    tiers: tiers.length > 0 ? tiers : TIERS,
    filters: plain
      .filter((word) => !TIERS.includes(word))
      .map((word) => (fs.existsSync(word) ? path.relative(root, path.resolve(word)) : word)),
    options: firstOption === -1 ? [] : words.slice(firstOption),
  };
}

function testFiles(tier) {
  const folder = at('test', tier);
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder, { recursive: true })
    .map((name) => path.join('test', tier, name))
    .filter((name) => name.endsWith('.test.ts'));
}

// The one process that runs now, and the signal that asked this run to end.
let child = null;
let endedBy = null;

/**
 * Runs a program to its end in a process group of its own, so that Ctrl-C reaches it once and through
 * here. At the limit, or when it takes too long after a signal, the whole group is killed.
 * @returns {Promise<{ code: number | null, signal: string | null, timedOut: boolean }>}
 */
function run(program, args, { env, limitMs }) {
  return new Promise((resolve, reject) => {
    child = spawn(program, args, { cwd: root, env, detached: true, stdio: ['ignore', 'inherit', 'inherit'] });
    const { pid } = child;
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(pid);
    }, limitMs);
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      child = null;
      killGroup(pid);
      resolve({ code, signal, timedOut });
    });
  });
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function endOn(signal) {
  process.on(signal, () => {
    // Ctrl-C arrives twice: from the terminal and from npm.
    if (endedBy !== null) return;
    endedBy = signal;
    say(`\n${signal}: ending the tests and what they started.`);
    if (child === null) return;
    const { pid } = child;
    child.kill('SIGINT');
    setTimeout(() => killGroup(pid), STOP_MS).unref();
  });
}

/** What the tier's vitest wrote; null when it ended before it could. */
function readCounts(file) {
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : null;
}

/**
 * Runs one tier. Its temporary files live in a folder of this run, which is removed.
 * @returns {Promise<{ tier, passed, failed, skipped, tookMs, problems }>}
 */
async function runTier(tier, { filters, options }) {
  say(`\n${tier}`);
  const startedAt = performance.now();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'payments-tests-'));
  fs.chmodSync(folder, 0o711); // Root's Postgres runs as another user.
  const countsFile = path.join(folder, 'counts.json');
  const args = [
    at('node_modules', 'vitest', 'vitest.mjs'),
    'run',
    ...['--project', tier],
    ...['--reporter=dot', '--reporter=./test/support/count-reporter.ts'],
    // A forgotten `.only` would hide every other test.
    ...['--allowOnly=false', '--silent=passed-only', '--passWithNoTests'],
    ...filters,
    ...options,
  ];
  const env = {
    ...process.env,
    ...(process.stdout.isTTY ? {} : { NO_COLOR: '1' }),
    PATH: `${at('node_modules', '.bin')}${path.delimiter}${process.env.PATH ?? ''}`,
    TMPDIR: folder,
    TEST_COUNTS_FILE: countsFile,
    [RUN_VARIABLE]: runId,
  };
  try {
    const end = await run(nodeProgram(), args, { env, limitMs: TIER_LIMIT_MS });
    const counts = readCounts(countsFile);
    const problems = [...failuresOfRun(tier, { end, counts, options }), ...(await failuresOfLeftovers(tier))];
    return {
      tier,
      passed: counts?.passed ?? 0,
      failed: (counts?.failed ?? 0) + problems.length,
      skipped: counts?.skipped ?? 0,
      tookMs: performance.now() - startedAt,
      problems: [...(counts?.problems ?? []), ...problems],
    };
  } finally {
    await endMarked(RUN_VARIABLE, runId, LEFTOVER_MS);
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Sentences for what the counts do not show; each is one failure. */
function failuresOfRun(tier, { end, counts, options }) {
  if (endedBy !== null) return [];
  if (end.timedOut) return [`${tier} did not end within ${seconds(TIER_LIMIT_MS)} and was killed.`];
  const how = end.signal === null ? `with code ${end.code}` : `by ${end.signal}`;
  if (counts === null) return [`${tier}: vitest ended ${how} before it had counted.`];
  const ran = counts.passed + counts.failed > 0;
  if (!ran && options.length === 0) return [`${tier} ran no test.`];
  if (end.code !== 0 && counts.failed === 0) return [`${tier}: vitest ended ${how} though no test failed.`];
  return [];
}

async function failuresOfLeftovers(tier) {
  if (endedBy !== null) return [];
  const left = await waitForEnd(RUN_VARIABLE, runId, LEFTOVER_MS);
  if (left.length === 0) return [];
  const commands = left.map(({ pid, command }) => `${pid} (${command})`).join(', ');
  return [`${tier} left behind and had to have ended: ${commands}.`];
}

function tierLine({ tier, passed, failed, skipped, tookMs }) {
  const column = (n, word) => `${String(n).padStart(6)} ${word}`;
  const counts = column(passed, 'passed') + column(failed, 'failed') + column(skipped, 'skipped');
  return `${tier.padEnd(12)}${counts}${seconds(tookMs).padStart(11)}`;
}

/** The closing line, alone and last: whoever runs this reads no more than that. */
function close({ passed, failed, skipped }) {
  say(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  if (endedBy !== null) process.exitCode = 128 + os.constants.signals[endedBy];
  else process.exitCode = failed > 0 ? 1 : 0;
}

async function main() {
  ['SIGINT', 'SIGTERM', 'SIGHUP'].forEach(endOn);
  const setup = await run(process.execPath, [at('scripts', 'bootstrap.mjs')], {
    env: process.env,
    limitMs: TIER_LIMIT_MS,
  });
  const total = { passed: 0, failed: 0, skipped: 0 };
  const problems = [];
  const results = [];
  if (setup.code !== 0) problems.push('The project is not installed or does not build, so no test ran.');
  else {
    const { tiers, filters, options } = readArguments(process.argv.slice(2));
    for (const tier of tiers) {
      if (endedBy !== null) break;
      const isChosen = (file) => filters.some((filter) => file.includes(filter));
      if (filters.length > 0 && !testFiles(tier).some(isChosen)) continue;
      results.push(await runTier(tier, { filters, options }));
      say(tierLine(results.at(-1)));
    }
    const ran = results.some(({ passed, failed }) => passed + failed > 0);
    if (!ran && endedBy === null) problems.push(`No test matches ${[...filters, ...options].join(' ')}.`);
  }
  if (endedBy !== null) problems.push(`Ended by ${endedBy}; what had not run yet did not run.`);
  total.failed += problems.length;
  for (const result of results) {
    total.passed += result.passed;
    total.failed += result.failed;
    total.skipped += result.skipped;
  }
  if (results.length > 1) say(`\n${results.map(tierLine).join('\n')}`);
  for (const problem of [...results.flatMap((result) => result.problems), ...problems]) say(`- ${problem}`);
  close(total);
}

try {
  await main();
} catch (error) {
  say(error.stack);
  close({ passed: 0, failed: 1, skipped: 0 });
}
