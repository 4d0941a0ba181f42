// `npm run test:fuzz`: Schemathesis makes inputs from the API's own description and sends them to a stack of
// its own, as a client and as an operator. No answer may be a 5xx, undocumented, or of another form than the
// description says. Schemathesis (Python, MIT) is installed on demand into the cache folder, locked by hashes.
//   FUZZ_INPUTS   inputs to send, default 20000
//   FUZZ_MINUTES  time for all of it, default 20; whoever is slower says so and fails
//   FUZZ_SEED     repeats the inputs of a run
// The last line is `N passed, N failed, N skipped`; exit code 1 when something was found, 2 when it could not run.
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const at = (...parts) => path.join(root, ...parts);
const say = (line) => process.stdout.write(`${line}\n`);

const VERSION = '4.32.5';
const INSTALL_LIMIT_MS = 5 * 60 * 1000;
/** Everything that a conforming API promises; whether odd input is refused or taken is for other tests. */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];
/** Inputs of one run for each operation and kind: short runs show how far it is. */
const MOST_PER_OPERATION = 60;
/** Share of the inputs by who sends them: most routes are a client's. */
const CALLERS = [
  { name: 'client', share: 0.6 },
  { name: 'operator-1', share: 0.4 },
];

class CannotRun extends Error {}

function setting(name, byDefault, most) {
  const value = Number(process.env[name] ?? byDefault);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new CannotRun(`${name} must be a whole number from 1 to ${most}.`);
}

/** @returns {Promise<string>} the program. @throws CannotRun with one sentence. */
async function installSchemathesis() {
  const cache = process.env.PAYMENTS_CACHE_DIR ?? path.join(os.homedir(), '.cache', 'payments');
  const folder = path.join(cache, 'fuzz', `schemathesis-${VERSION}`);
  const program = path.join(folder, 'bin', 'schemathesis');
  const stamp = path.join(folder, '.installed');
  if (fs.existsSync(stamp)) return program;
  say(`Installing Schemathesis ${VERSION}, once.`);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(path.dirname(folder), { recursive: true });
  const limits = { timeout: INSTALL_LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 16 * 1024 * 1024 };
  const python = process.env.PYTHON ?? 'python3';
  const step = async (command, args, what) => {
    try {
      await run(command, args, limits);
    } catch (error) {
      fs.rmSync(folder, { recursive: true, force: true });
      if (error.code === 'ENOENT') {
        throw new CannotRun(
          `${command} is not on this machine. Install Python 3.11 or newer, or set PYTHON.`,
          {
            cause: error,
          },
        );
      }
      const last = `${error.stderr ?? ''}`.trim().split('\n').at(-1) || error.message;
      throw new CannotRun(`${what} failed: ${last}`, { cause: error });
    }
  };
  const version =
    'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed")';
  await step(python, ['-c', version], 'The look at Python');
  await step(python, ['-m', 'venv', folder], 'python -m venv (the package python3-venv may be missing)');
  const pip = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '--require-hashes',
    '--no-deps',
  ];
  const requirements = at('test', 'fuzz', 'requirements.txt');
  await step(
    path.join(folder, 'bin', 'python'),
    [...pip, '--only-binary=:all:', '-r', requirements],
    'pip install',
  );
  fs.writeFileSync(stamp, VERSION);
  return program;
}

/** The description that the API serves; the committed one must be the same. */
async function readDescription(stack, folder) {
  const served = await (await fetch(`${stack.api_url}/openapi.json`)).json();
  const committed = JSON.parse(fs.readFileSync(at('docs', 'openapi.json'), 'utf8'));
  const isSame = JSON.stringify(served) === JSON.stringify(committed);
  if (!isSame)
    say('docs/openapi.json is not what the API serves; the served one is used. Run `npm run docs`.');
  const file = path.join(folder, 'openapi.json');
  fs.writeFileSync(file, JSON.stringify(served));
  const methods = new Set(['get', 'put', 'post', 'delete', 'patch', 'head', 'options']);
  const operations = Object.values(served.paths).flatMap((item) =>
    Object.keys(item).filter((m) => methods.has(m)),
  );
  return { file, operations: operations.length };
}

async function credentialOf(stack, caller) {
  if (caller === 'client') return stack.api_keys.client;
  const env = { ...process.env, PAYMENTS_LOCAL_DIR: stack.folder };
  const args = [at('dist', 'src', 'main-ops.js'), 'token', '--as', caller, '--json'];
  const { stdout } = await run(process.execPath, args, { env });
  return JSON.parse(stdout).token;
}

/** Memory of a process in MiB; null where `ps` cannot say. */
async function residentMiB(pid) {
  try {
    return Math.round(Number((await run('ps', ['-o', 'rss=', '-p', String(pid)])).stdout) / 1024);
  } catch {
    return null;
  }
}

/** The times of all answers in a report, in ms, and how many had which status. */
async function readReport(file, times, statuses) {
  for await (const line of readline.createInterface({ input: fs.createReadStream(file) })) {
    visit(parsed(line), ({ elapsed, status_code: status }) => {
      times.push(elapsed * 1000);
      statuses[status] = (statuses[status] ?? 0) + 1;
    });
  }
}

/** null for half a line, which a run that was ended by its time leaves. */
function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

function visit(value, found) {
  if (typeof value !== 'object' || value === null) return;
  if (typeof value.elapsed === 'number' && typeof value.status_code === 'number') found(value);
  for (const member of Object.values(value)) visit(member, found);
}

let child = null;
/** One run as one caller. @returns {Promise<{ code: number | null, output: string }>} */
function fuzz(program, args, limitMs) {
  return new Promise((resolve, reject) => {
    child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    let output = '';
    const take = (text) => (output = (output + text).slice(-200_000));
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    const timer = setTimeout(() => killChild(), limitMs);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      child = null;
      resolve({ code, output });
    });
  });
}

function killChild() {
  if (child?.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

async function fuzzStack(program, stack, folder) {
  const inputs = setting('FUZZ_INPUTS', 20_000, 10_000_000);
  const endsAt = Date.now() + setting('FUZZ_MINUTES', 20, 24 * 60) * 60 * 1000;
  let seed = setting('FUZZ_SEED', 1 + Math.floor(Math.random() * 1_000_000), 2 ** 31);
  const { file, operations } = await readDescription(stack, folder);
  say(`${inputs} inputs for ${operations} operations, seed ${seed}.`);
  const before = await residentMiB(stack.pids.api);
  const times = [];
  const statuses = {};
  const failures = [];
  for (const { name, share } of CALLERS) {
    const wanted = times.length + inputs * share;
    while (times.length < wanted && failures.length === 0 && Date.now() < endsAt) {
      // For each run anew: a token of a person lives for minutes.
      const credential = await credentialOf(stack, name);
      const report = path.join(folder, 'report.ndjson');
      fs.rmSync(report, { force: true });
      const perOperation = Math.min(
        MOST_PER_OPERATION,
        Math.max(5, Math.ceil((wanted - times.length) / operations / 2)),
      );
      const args = [
        'run', file, '--url', stack.api_url, '--checks', CHECKS.join(','), '--seed', String(seed++),
        '--phases', 'examples,coverage,fuzzing', '--max-examples', String(perOperation), '--workers', '1',
        '--continue-on-failure', '--no-shrink', '--suppress-health-check', 'all', '--warnings', 'off', '--no-color',
        '--generation-database', 'none', '--request-timeout', '15', '--report', 'ndjson',
        '--report-ndjson-path', report, '--header', `Authorization: Bearer ${credential}`,
      ]; // prettier-ignore
      const already = times.length;
      const { code, output } = await fuzz(program, args, Math.max(1, endsAt - Date.now()));
      if (fs.existsSync(report)) await readReport(report, times, statuses);
      say(`  as ${name}: ${times.length - already} inputs, ${times.length} in all`);
      if (code === 1) failures.push(`As ${name}, seed ${seed - 1}:\n${output}`);
      else if (code !== 0 && Date.now() < endsAt)
        throw new CannotRun(`Schemathesis ended with ${code}:\n${output}`);
      if (code === 0 && times.length === already) throw new CannotRun('Schemathesis sent nothing.');
    }
  }
  const after = await residentMiB(stack.pids.api);
  return { inputs, times, statuses, failures, before, after };
}

/** What the database says of the payments that the inputs made: nothing may be broken. */
async function invariantsHold(stack) {
  const env = { ...process.env, PAYMENTS_LOCAL_DIR: stack.folder };
  try {
    await run(process.execPath, [at('dist', 'src', 'main-ops.js'), 'invariants'], { env });
    return null;
  } catch (error) {
    return `payments invariants: ${error.stdout || error.message}`;
  }
}

async function main() {
  const program = await installSchemathesis();
  const { startTemporaryStack } = await import(at('dist', 'src', 'dev', 'temporary-stack.js'));
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'payments-fuzz-'));
  const stack = await startTemporaryStack({ workers: 1 });
  try {
    const { inputs, times, statuses, failures, before, after } = await fuzzStack(program, stack, folder);
    const broken = await invariantsHold(stack);
    if (broken !== null) failures.push(broken);
    for (const event of stack.events) failures.push(`A process ended by itself: ${JSON.stringify(event)}`);
    if (times.length < inputs && failures.length === 0) {
      failures.push(`Only ${times.length} of ${inputs} inputs were sent in time. FUZZ_MINUTES allows more.`);
    }
    for (const failure of failures) say(`- ${failure}`);
    times.sort((a, b) => a - b);
    const quantile = (q) => (times[Math.min(times.length - 1, Math.floor(times.length * q))] ?? 0).toFixed(1);
    say(`\ninputs ${times.length}; answers ${JSON.stringify(statuses)}`);
    say(`p50 ${quantile(0.5)} ms, p99 ${quantile(0.99)} ms, slowest ${quantile(1)} ms`);
    say(`memory of the API: ${before ?? '?'} MiB before, ${after ?? '?'} MiB after`);
    return failures.length;
  } finally {
    await stack.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    killChild();
    process.exit(128 + os.constants.signals[signal]);
  });
}

try {
  const failed = await main();
  say(`\n${failed === 0 ? 1 : 0} passed, ${failed} failed, 0 skipped`);
  process.exitCode = failed > 0 ? 1 : 0;
} catch (error) {
  say(error instanceof CannotRun ? `NOT RUN: ${error.message}` : error.stack);
  say('\n0 passed, 1 failed, 0 skipped');
  process.exitCode = 2;
}
