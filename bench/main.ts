import { setTimeout as sleep } from 'node:timers/promises';
import { CommanderError } from 'commander';
import { isAlive, runners } from '../src/dev/process/process-identity.js';
import { explain, StackError } from '../src/dev/stack-error.js';
import { cacheFolder, projectRoot, readStackSettings } from '../src/dev/stack-settings.js';
import { readBenchOptions, type BenchOptions } from './bench-options.js';
import { runBench, type BenchRun } from './bench-run.js';
import { changedSettings, commitLine, machineLines, stackLines } from './report/machine.js';
import { markdownReport } from './report/markdown.js';
import { rawLine } from './report/run-record.js';
import { writeReport } from './report/write-report.js';
import { FullTemporal } from './stack/full-temporal.js';

/**
 * `npm run bench`: measures this project on this machine. Progress goes to stderr; stdout gets one raw
 * line per run as it ends, and the report last. Exit code 0: every run was right; 1: one failed or
 * nothing could be measured; 130: interrupted, with everything stopped.
 */

/** npm hands on the signal that the terminal has already sent: the same Ctrl-C arrives twice. */
const SAME_SIGNAL_WITHIN_MS = 800;
const NPM_LOOK_EVERY_MS = 1_000;

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** The first signal ends the run in order; a later one kills everything. */
function abortOnSignal(ending: AbortController): void {
  let firstAt: number | null = null;
  const onSignal = (): void => {
    if (firstAt === null) {
      firstAt = performance.now();
      say('Stopping. Again kills everything.');
      ending.abort(new StackError('The bench was interrupted.'));
    } else if (performance.now() - firstAt > SAME_SIGNAL_WITHIN_MS) process.exit(130);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  if (process.env['npm_lifecycle_event'] !== 'bench') return;
  // npm that is signalled by a program, not by the terminal, ends without handing the signal on.
  const watched = runners();
  const look = setInterval(() => {
    if (watched.every(isAlive)) return;
    clearInterval(look);
    onSignal();
  }, NPM_LOOK_EVERY_MS);
  look.unref();
}

async function measure(options: BenchOptions, root: string, signal: AbortSignal): Promise<BenchRun> {
  const context = { env: process.env, cache: cacheFolder(process.env), signal, say };
  const full =
    options.temporal === 'postgres' ? await FullTemporal.prepare(readStackSettings(root), context) : null;
  const onExit = (): void => full?.killNow();
  process.once('exit', onExit);
  try {
    const onRecord: Parameters<typeof runBench>[0]['onRecord'] = (record) => {
      process.stdout.write(`${rawLine(record)}\n`);
      for (const failure of record.failures) say(`  FAILED: ${failure}`);
    };
    return await runBench({ ...options, full, signal, say, onRecord });
  } finally {
    process.removeListener('exit', onExit);
    await full?.close();
  }
}

async function main(ending: AbortController): Promise<number> {
  const options = readBenchOptions(process.argv);
  const root = projectRoot();
  abortOnSignal(ending);
  const facts = [await commitLine(root), ...machineLines(), changedSettings(process.env)];
  for (const fact of facts) say(fact);
  const { scenarios, records, facts: stack } = await measure(options, root, ending.signal);
  if (records.length > 0) {
    const all = [...facts, ...(stack ? stackLines(stack) : [])];
    const report = markdownReport({ facts: all, scenarios, records, scale: options.scale });
    process.stdout.write(`\n${report}`);
    if (options.report !== null) await writeReport(options.report, report);
  }
  if (ending.signal.aborted) return 130;
  return records.every((record) => record.verdict === 'ok') ? 0 : 1;
}

const ending = new AbortController();
try {
  process.exitCode = await main(ending);
} catch (error) {
  // Commander has already printed what was wrong, or the help.
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else {
    say(explain(error));
    process.exitCode = ending.signal.aborted ? 130 : 1;
  }
}
// Everything is stopped; what a library still holds open must not keep the terminal.
await sleep(0);
process.exit();
