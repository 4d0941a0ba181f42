import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalStack } from './local-stack.js';
import { reservePortBlock } from './ports.js';
import { RESTART_DELAYS_MS, type ProcessEvent } from './process/supervised-process.js';
import type { StackFile } from './stack-file.js';
import { cacheFolder, projectRoot, readStackSettings } from './stack-settings.js';

export interface TemporaryStackOptions {
  /** How many workers; default 1, 0 is a stack without one. */
  readonly workers?: number;
  /** How many APIs; default 1. */
  readonly apis?: number;
  /** More environment for the simulator, the APIs, the workers. TEMPORAL_ADDRESS counts only here. */
  readonly env?: Readonly<Record<string, string>>;
  /** More settings of the database server, e.g. `{ shared_buffers: '64MB' }`. */
  readonly postgresSettings?: Readonly<Record<string, string>>;
  /**
   * Default false: a process that ends by itself stays down, so that a crash is seen and not healed.
   * True: as behind `npm start`.
   */
  readonly restarts?: boolean;
  /** Default false, so that a measurement has only the calls that it makes. True: as behind `npm start`. */
  readonly sendsWebhooks?: boolean;
}

/** A whole stack for one test or one measurement: stack.json and the means to disturb it. */
export interface TemporaryStack extends StackFile {
  /** Temporary folder with data, logs and stack.json; gone after `stop`. */
  readonly folder: string;
  /** What happened to processes without our asking, oldest first. */
  readonly events: readonly ProcessEvent[];
  /** SIGKILL. The process ("worker", "api-2", "postgres", …) stays down until `restart`. */
  kill(name: string): Promise<void>;
  /** Starts a process, after stopping it in order when it runs; resolves when it is ready. */
  restart(name: string): Promise<void>;
  /** SIGTERM (Postgres: SIGINT) and the wait for its end. */
  stopProcess(name: string): Promise<'down' | 'stopped' | 'killed'>;
  /** SIGSTOP. */
  freeze(name: string): void;
  /** SIGCONT. */
  thaw(name: string): void;
  /** Everything that a process has written in this run, at most the last 1 MB. */
  log(name: string): string;
  /** Stops every process and removes the folder. Twice: the second call does nothing. */
  stop(): Promise<void>;
}

/**
 * Starts a stack on free ports in a temporary folder. Needs a build (`npm run build`). It is the
 * code behind `npm start`, so that tests and measurements run what people run.
 * @throws StackError when a process does not start; nothing is left behind then.
 */
export async function startTemporaryStack(options: TemporaryStackOptions = {}): Promise<TemporaryStack> {
  const root = projectRoot();
  const settings = readStackSettings(root);
  const ports = await reservePortBlock(settings);
  const folder = mkdtempSync(join(tmpdir(), 'payments-stack-'));
  chmodSync(folder, 0o711); // Root's Postgres runs as another user.
  const events: ProcessEvent[] = [];
  const stack = new LocalStack({
    root,
    settings,
    folder,
    cache: cacheFolder(process.env),
    portBase: ports.base,
    counts: { apis: options.apis ?? 1, workers: options.workers ?? 1 },
    env: { ...process.env, TEMPORAL_ADDRESS: undefined, ...options.env },
    postgresSettings: options.postgresSettings ?? {},
    restartDelaysMs: options.restarts ? RESTART_DELAYS_MS : [],
    onEvent: (event) => events.push(event),
    sendsWebhooks: options.sendsWebhooks ?? false,
  });
  // A test run that is ended from outside must not leave servers behind.
  const onExit = () => stack.killNow();
  process.once('exit', onExit);
  const cleanUp = async () => {
    process.removeListener('exit', onExit);
    await stack.stop();
    stack.removeData();
    rmSync(folder, { recursive: true, force: true });
    await ports.release();
  };
  try {
    await stack.start();
  } catch (error) {
    await cleanUp();
    throw error;
  }
  return {
    ...stack.describe(),
    get pids() {
      return stack.describe().pids;
    },
    folder,
    events,
    kill: (name) => stack.kill(name),
    restart: (name) => stack.restart(name),
    stopProcess: (name) => stack.process(name).stop(),
    freeze: (name) => stack.process(name).signal('SIGSTOP'),
    thaw: (name) => stack.process(name).signal('SIGCONT'),
    log: (name) => stack.process(name).log.recent(),
    stop: cleanUp,
  };
}
