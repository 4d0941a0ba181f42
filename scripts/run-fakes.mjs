// `npm run test:fakes`: the Stripe adapter against stand-ins that nobody here wrote. Each is installed on
// demand into a cache folder, started as a process of its own on loopback, and stopped. What could not be
// had is said aloud and the others run. The last line is `N passed, N failed, N skipped`; exit code 1 when
// a test failed or no stand-in could be started.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { FAKES, installed } from './stripe-fakes.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const say = (line) => process.stdout.write(`${line}\n`);

const START_LIMIT_MS = 30 * 1000;
const TESTS_LIMIT_MS = 5 * 60 * 1000;
const STOP_MS = 3 * 1000;

const children = new Set();

function start(program, args, { env = {}, stdio = 'ignore' } = {}) {
  const child = spawn(program, args, { cwd: root, env: { ...process.env, ...env }, detached: true, stdio });
  children.add(child);
  child.ended = new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: null, why: error.message }));
    child.once('exit', (code, signal) => resolve({ code, why: `it ended with ${signal ?? `code ${code}`}` }));
  });
  void child.ended.then(() => children.delete(child));
  return child;
}

/** Its whole process group: a launcher may have started others. Twice: nothing. */
async function stop(child) {
  signalGroup(child, 'SIGTERM');
  const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), STOP_MS);
  await child.ended;
  clearTimeout(timer);
}

function signalGroup({ pid }, signal) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** @returns {Promise<string>} its URL. @throws Error with one sentence. */
async function startFake(fake) {
  const folder = await installed(fake);
  const port = await freePort();
  const { program, args, env } = fake.command(folder, port);
  const child = start(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (complaint = `${complaint}${text}`.slice(-2_000)));
  const end = child.ended.then(({ why }) => why);
  const until = Date.now() + START_LIMIT_MS;
  while (Date.now() < until) {
    if (await accepts(port)) return `http://127.0.0.1:${port}`;
    const why = await Promise.race([end, new Promise((next) => setTimeout(next, 50))]);
    if (why !== undefined)
      throw new Error(`it did not start: ${why}. ${complaint.trim().split('\n').at(-1) ?? ''}`);
  }
  await stop(child);
  throw new Error(`it did not accept connections within ${START_LIMIT_MS / 1000} s.`);
}

/** `stripe-stateful-mock` is known to its tests as FAKE_STRIPE_STATEFUL_MOCK. */
const variableOf = ({ name }) => `FAKE_${name.toUpperCase().replaceAll('-', '_')}`;

async function startAll() {
  const urls = {};
  const report = [];
  for (const fake of FAKES) {
    const title = `${fake.name} ${fake.version} (${fake.licence}, from ${fake.from})`;
    try {
      urls[variableOf(fake)] = await startFake(fake);
      report.push(`${title}\n  shows: ${fake.shows}\n  cannot show: ${fake.cannotShow}`);
    } catch (error) {
      say(`NOT RUN: ${title}: ${error.message}`);
      report.push(`${title}\n  NOT RUN: ${error.message}\n  would show: ${fake.shows}`);
    }
  }
  return { urls, report };
}

async function runTests(urls) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'payments-fakes-'));
  const countsFile = path.join(folder, 'counts.json');
  const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const args = [
    'run',
    '--project',
    'fakes',
    '--reporter=verbose',
    '--reporter=./test/support/count-reporter.ts',
  ];
  try {
    const env = { ...urls, TEST_COUNTS_FILE: countsFile };
    const child = start(process.execPath, [vitest, ...args], {
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), TESTS_LIMIT_MS);
    const { code, why } = await child.ended;
    clearTimeout(timer);
    if (!fs.existsSync(countsFile)) return { passed: 0, failed: 1, skipped: 0, problems: [`vitest: ${why}`] };
    const counts = JSON.parse(fs.readFileSync(countsFile, 'utf8'));
    const isUnexplained = code !== 0 && counts.failed === 0;
    return isUnexplained ? { ...counts, failed: 1, problems: [`vitest: ${why}`] } : counts;
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function main() {
  const { urls, report } = await startAll();
  const counts = await runTests(urls);
  say(`\n${report.join('\n')}`);
  if (Object.keys(urls).length === 0) {
    counts.failed += 1;
    counts.problems.push('No stand-in could be started, so nothing was shown.');
  }
  for (const problem of counts.problems) say(`- ${problem}`);
  return counts;
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    for (const child of children) signalGroup(child, 'SIGKILL');
    process.exit(128 + os.constants.signals[signal]);
  });
}

let counts = { passed: 0, failed: 1, skipped: 0 };
try {
  counts = await main();
} catch (error) {
  say(error.stack);
} finally {
  await Promise.all([...children].map(stop));
}
say(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exitCode = counts.failed > 0 ? 1 : 0;
