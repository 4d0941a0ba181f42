import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { LocalStack } from './dev/local-stack.js';
import { showDuration } from './dev/pacing.js';
import { isAlive, runners } from './dev/process/process-identity.js';
import { RESTART_DELAYS_MS, type ProcessEvent } from './dev/process/supervised-process.js';
import { explain, StackError } from './dev/stack-error.js';
import { showPlan, welcome } from './dev/stack-screen.js';
import { cacheFolder, localFolder, portBase, projectRoot, readStackSettings } from './dev/stack-settings.js';

/**
 * `npm start`: the whole product on this machine. Ends with 0 after Ctrl-C, with 1 and one sentence
 * when something cannot be started; nothing of the stack runs then.
 */

/** npm hands on the signal that the terminal has already sent: the same Ctrl-C arrives twice. */
const SAME_SIGNAL_WITHIN_MS = 800;
const NPM_LOOK_EVERY_MS = 1_000;

const say = (line: string) => void process.stdout.write(`${line}\n`);

function tell(event: ProcessEvent): void {
  switch (event.kind) {
    case 'ended':
      return say(`${event.name} ended by itself (${event.how}); its log is ${event.log}. Restarting it.`);
    case 'restarted':
      return say(`${event.name} runs again.`);
    case 'given-up':
      return say(`${event.name} stays down: ${event.why} Its log is ${event.log}. Ctrl-C, then start again.`);
  }
}

/** Resolves with the reason to stop. A second signal, later than an echo of the first, kills. */
function stopRequest(kill: () => Promise<void>): Promise<string> {
  return new Promise((resolve) => {
    let firstAt: number | null = null;
    const onSignal = (signal: string) => {
      if (firstAt === null) {
        firstAt = performance.now();
        resolve(signal);
      } else if (performance.now() - firstAt > SAME_SIGNAL_WITHIN_MS) {
        say('Killing everything. The next start recovers.');
        void kill().finally(() => process.exit(130));
      }
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => onSignal(signal));
    watchNpm(resolve);
    // A reader that has gone, as `| head`: nobody could stop the stack that this would leave behind.
    for (const stream of [process.stdout, process.stderr]) {
      stream.on('error', () => resolve('the reader of its output has gone'));
    }
  });
}

/** npm that is signalled by a program, not by the terminal, ends without handing the signal on. */
function watchNpm(onGone: (reason: string) => void): void {
  if (process.env['npm_lifecycle_event'] !== 'start') return;
  const watched = runners();
  const look = setInterval(() => {
    if (watched.every(isAlive)) return;
    clearInterval(look);
    onGone('npm has ended');
  }, NPM_LOOK_EVERY_MS);
  look.unref();
}

/** Options would suggest that something can be chosen here. @returns the exit code, or null to go on. */
function answerToArguments(given: readonly string[]): number | null {
  if (given.length === 0) return null;
  say(
    'npm start runs API, worker, simulator, Postgres and Temporal on this machine until Ctrl-C. It takes no',
  );
  say('arguments. Folder and ports: PAYMENTS_LOCAL_DIR, PAYMENTS_PORT_BASE (.env.example).');
  return given.every((each) => each === '--help' || each === '-h') ? 0 : 2;
}

async function main(): Promise<number> {
  const answered = answerToArguments(process.argv.slice(2));
  if (answered !== null) return answered;
  const startedAt = performance.now();
  const root = projectRoot();
  const settings = readStackSettings(root);
  const folder = localFolder(root, process.env);
  const stack = new LocalStack({
    root,
    settings,
    folder,
    cache: cacheFolder(process.env),
    portBase: portBase(settings, process.env),
    counts: { apis: 1, workers: 1 },
    env: process.env,
    postgresSettings: {},
    restartDelaysMs: RESTART_DELAYS_MS,
    onEvent: tell,
    sendsWebhooks: true,
  });
  const requested = stopRequest(() => stack.killAll());
  let isStarting = true;
  const stopWanted = requested.then((reason) => {
    if (isStarting) stack.abort(new StackError('The start was interrupted.'));
    return reason;
  });
  await showPlan(stack.plan(), () => stack.failure !== null);
  isStarting = false;
  const failure = stack.failure;
  if (failure === null) {
    say(`\nThe payment scheduler runs, ready after ${showDuration(performance.now() - startedAt)}.\n`);
    say(welcome(stack.describe(), { logs: join(folder, 'logs'), stackFile: join(folder, 'stack.json') }));
    say(`\nStopping (${await stopWanted}). A worker may take a while to finish its calls; again kills.`);
  } else {
    say(`\n${explain(failure)}`);
  }
  let stoppedCount = 0;
  await stack.stop((stopped) => {
    stoppedCount++;
    say(`  ${stopped.name} ${stopped.how} (${showDuration(stopped.tookMs)})`);
  });
  if (stoppedCount > 0) say('Everything is stopped; the data is kept.');
  return failure === null ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  say(explain(error));
  process.exitCode = 1;
}
// Nothing runs any more; what a library still holds open must not keep the terminal.
await sleep(0);
process.exit();
