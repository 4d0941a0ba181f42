import { execFileSync } from 'node:child_process';
import { chownSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { placePostgres, type PostgresPlacement } from '../../src/dev/postgres/postgres-placement.js';
import { PostgresServer } from '../../src/dev/postgres/postgres-server.js';
import { SupervisedProcess, type ProcessEvent } from '../../src/dev/process/supervised-process.js';
import { openStackFolder, type StackFolder } from '../../src/dev/stack-folder.js';

/** A supervised server of one test's own, which may be broken without harm to others. */
export interface OwnPostgres {
  /** Connection URL of a database; superuser. */
  url(database: string): string;
  /** The data folder. */
  readonly data: string;
  /** What happened to the server without our asking. */
  readonly events: readonly ProcessEvent[];
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Stops it and removes what it wrote. Twice: nothing. */
  remove(): Promise<void>;
}

export interface OwnPostgresOptions {
  readonly settings?: Readonly<Record<string, string>>;
  /** Gets the data folder moved into it after it was made; absent: it stays where it is. */
  readonly dataIn?: string;
}

/** How long the supervisor goes on restarting a server that cannot start: longer than a test. */
const RESTARTS = Array.from({ length: 120 }, () => 250);
const SOON = (): AbortSignal => AbortSignal.timeout(60_000);

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Copies the data folder, owner included: Postgres refuses one that is another user's. */
function moveData(placement: PostgresPlacement, into: string): PostgresPlacement {
  const data = join(into, 'data');
  cpSync(placement.data, data, { recursive: true, verbatimSymlinks: true });
  const { user } = placement;
  if (user) {
    chownSync(into, user.uid, user.gid);
    execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, data]);
  }
  rmSync(placement.data, { recursive: true, force: true });
  return { ...placement, data };
}

/** Makes the server's data and starts it, as the local stack does. @throws StackError when it does not start. */
export async function startOwnPostgres(options: OwnPostgresOptions = {}): Promise<OwnPostgres> {
  const folder: StackFolder = openStackFolder(mkdtempSync(join(tmpdir(), 'payments-own-postgres-')));
  const port = await freePort();
  const settings = { shared_buffers: '32MB', max_connections: '60', ...options.settings };
  let placement = placePostgres(folder);
  let server = new PostgresServer({ folder, placement, port, settings });
  await server.initialise(SOON());
  if (options.dataIn !== undefined) {
    placement = moveData(placement, options.dataIn);
    server = new PostgresServer({ folder, placement, port, settings });
    await server.initialise(SOON());
  }
  const events: ProcessEvent[] = [];
  const supervised = new SupervisedProcess(server.spec(), {
    folder,
    restartDelaysMs: RESTARTS,
    onEvent: (event) => events.push(event),
  });
  // A run that is ended from outside must not leave a server behind.
  const onExit = (): void => supervised.killNow();
  process.once('exit', onExit);
  const passwords = JSON.parse(readFileSync(folder.postgresFile, 'utf8')) as { superuser_password: string };
  await supervised.start(SOON());
  return {
    url: (database) => `postgres://postgres:${passwords.superuser_password}@127.0.0.1:${port}/${database}`,
    data: placement.data,
    events,
    start: () => supervised.start(SOON()),
    stop: async () => void (await supervised.stop()),
    remove: async () => {
      process.removeListener('exit', onExit);
      await supervised.stop();
      rmSync(placement.data, { recursive: true, force: true });
      rmSync(folder.path, { recursive: true, force: true });
    },
  };
}
