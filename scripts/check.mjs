// `npm run check`: everything that must hold before a merge, besides the tests (`npm test`). One line per
// step with its time, the output of failed steps only, and a verdict. Exit code 1 when a step failed.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const bin = path.join(root, 'node_modules', '.bin');

/** Longer than a first install with its second try; after it a step hangs. */
const STEP_LIMIT_MS = 20 * 60 * 1000;
/** A step is a compiler's work: more of them at once than cores only makes each slower. */
const AT_ONCE = Math.min(os.availableParallelism(), 4);

const CODE = ['src', 'workflows', 'activities', 'bench'].filter((name) =>
  fs.existsSync(path.join(root, name)),
);

/** Brings what the other steps need: the tools, and a build that is newer than the sources. */
const BUILD = { name: 'build', command: [process.execPath, 'scripts/bootstrap.mjs'] };

/** The longest first, so that the short ones fill the gaps. `needsBuild`: it runs what was built. */
const STEPS = [
  { name: 'types', command: ['tsc', '--noEmit', '--pretty', 'false'] },
  { name: 'lint', command: ['oxlint', '--type-aware', '--disable-nested-config'] },
  { name: 'imports', command: ['depcruise', '--config', '.dependency-cruiser.cjs', ...CODE] },
  { name: 'format', command: ['prettier', '--check', '--log-level', 'warn', '.'] },
  { name: 'docs', command: ['node', 'scripts/generate-docs.mjs', '--check'], needsBuild: true },
];

const children = new Set();
const say = (line) => process.stdout.write(`${line}\n`);
const seconds = (sinceMs) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;

/** Runs a step in a process group of its own. @returns {Promise<{ ok: boolean, output: string }>} */
function run({ command: [program, ...args] }) {
  // The shell's Node may be an older one than the tools need; the project's comes first.
  const env = { ...process.env, PATH: `${bin}${path.delimiter}${process.env.PATH ?? ''}`, NO_COLOR: '1' };
  delete env.FORCE_COLOR;
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.add(child);
    let output = '';
    const take = (text) => (output += text);
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    const timer = setTimeout(() => {
      take(`It did not end within ${STEP_LIMIT_MS / 60_000} minutes and was killed.\n`);
      killGroup(child);
    }, STEP_LIMIT_MS);
    const finish = (ok) => {
      clearTimeout(timer);
      children.delete(child);
      resolve({ ok, output });
    };
    child.once('error', (error) => {
      take(`${program} could not be started: ${error.message}\n`);
      finish(false);
    });
    child.once('close', (code) => finish(code === 0));
  });
}

function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function endOn(signal) {
  process.once(signal, () => {
    for (const child of children) killGroup(child);
    say(`check was ended by ${signal}`);
    process.exit(128 + os.constants.signals[signal]);
  });
}

/** Runs a step and says its line. @returns {Promise<{ name: string, ok: boolean, output: string }>} */
async function take(step) {
  const startedAt = performance.now();
  const { ok, output } = await run(step);
  say(`${ok ? 'ok  ' : 'FAIL'}  ${step.name.padEnd(8)}${seconds(startedAt).padStart(9)}`);
  return { name: step.name, ok, output };
}

/** Runs the steps in order, so many at once. */
async function takeAll(steps) {
  const waiting = [...steps];
  const results = [];
  const lane = async () => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      results.push(await take(step));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return results;
}

['SIGINT', 'SIGTERM', 'SIGHUP'].forEach(endOn);
const startedAt = performance.now();
const build = await take(BUILD);
const runnable = STEPS.filter((step) => build.ok || !step.needsBuild);
const results = [build, ...(await takeAll(runnable))];
const failed = results.filter(({ ok }) => !ok);
const notRun = STEPS.filter((step) => !runnable.includes(step));
for (const { name } of notRun) say(`-     ${name.padEnd(8)}  not run: it needs the build`);
for (const { name, output } of failed) say(`\n--- ${name}\n${output.trimEnd()}`);
say('');
if (failed.length === 0) say(`check passed: ${results.length} steps in ${seconds(startedAt)}`);
else say(`check failed: ${failed.map(({ name }) => name).join(', ')} (${seconds(startedAt)})`);
process.exitCode = failed.length === 0 ? 0 : 1;
