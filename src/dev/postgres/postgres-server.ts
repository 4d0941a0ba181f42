import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { z } from 'zod';
import { runCommand } from '../process/command.js';
import { until, untilOrTimeout } from '../pacing.js';
import type { PostgresPlacement } from './postgres-placement.js';
import { identify, processesIn } from '../process/process-identity.js';
import { StackError, systemCode } from '../stack-error.js';
import { readJsonFile, writePrivately, type StackFolder } from '../stack-folder.js';
import type { ProcessSpec } from '../process/supervised-process.js';

const OWNER = 'payments_owner';
const DATABASE = 'payments';
const SUPERUSER = 'postgres';

const INITIALISE_WITHIN_MS = 120_000;
const RECOVER_WITHIN_MS = 15_000;

/** The log-ins of the product. Which role may do what is the schema's business. */
const ROLES = [
  OWNER, 'payments_api', 'payments_worker', 'payments_relay', 'payments_read', 'payments_auditor', 'payments_admin',
  'payments_backup',
] as const; // prettier-ignore
export type StackRole = (typeof ROLES)[number];

const Credentials = z.object({
  superuser_password: z.string(),
  owner_password: z.string(),
  /** By role; a folder of a release with the owner alone gets the others at its next start. */
  role_passwords: z.record(z.string(), z.string()).default({}),
});
type Credentials = z.infer<typeof Credentials>;

export interface PostgresOptions {
  readonly folder: StackFolder;
  readonly placement: PostgresPlacement;
  readonly port: number;
  /** Server settings beside ours and instead of them, e.g. `{ shared_buffers: '64MB' }`. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * The server's cache: an eighth of the machine's memory, from Postgres's own default up to what holds the
 * indexes of a million payments; with the default each look-up of a settlement file reads its pages again.
 */
export function sharedBuffers(machineBytes: number): string {
  const mib = Math.floor(machineBytes / 8 / 1_048_576);
  return `${Math.min(512, Math.max(128, mib))}MB`;
}

/**
 * The database server of the local stack. Its data is kept; it is durable (fsync stays on) because
 * the product refuses to run on a database that could lose a commit.
 */
export class PostgresServer {
  #credentials: Credentials | null = null;

  constructor(private readonly options: PostgresOptions) {}

  /** Connection string of the superuser: for looks by hand, tests and measurements. No process gets it. */
  get superuserUrl(): string {
    return this.#url(SUPERUSER, this.#known().superuser_password, DATABASE);
  }

  /** Connection string of a role. Valid once `initialise` has run. */
  urlOf(role: StackRole): string {
    return this.#url(role, this.#passwordOf(role), DATABASE);
  }

  /**
   * Makes the data folder on the first start; later it only reads the passwords. A first start that
   * was interrupted left a draft, which is made anew.
   */
  async initialise(signal: AbortSignal): Promise<'created' | 'kept'> {
    const { folder, placement } = this.options;
    const stored = readJsonFile(folder.postgresFile);
    await this.recover();
    if (stored !== null && existsSync(join(placement.data, 'PG_VERSION'))) {
      this.#credentials = withRolePasswords(Credentials.parse(stored));
      writePrivately(folder.postgresFile, this.#credentials);
      return 'kept';
    }
    // Without the passwords in the local folder the data cannot be used: the folder was removed to
    // begin anew while the data lay elsewhere.
    rmSync(placement.data, { recursive: true, force: true });
    const credentials = withRolePasswords({
      superuser_password: newPassword(),
      owner_password: newPassword(),
      role_passwords: {},
    });
    await this.#initdb(credentials, signal);
    writePrivately(folder.postgresFile, credentials);
    this.#credentials = credentials;
    return 'created';
  }

  async #initdb(credentials: Credentials, signal: AbortSignal): Promise<void> {
    const { placement } = this.options;
    const draft = `${placement.data}.draft`;
    const passwordFile = `${placement.data}.password`;
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    writeFileSync(passwordFile, credentials.superuser_password, { mode: 0o600 });
    if (placement.user) {
      for (const path of [draft, passwordFile]) chownSync(path, placement.user.uid, placement.user.gid);
    }
    const flags = ['--encoding=UTF8', '--locale=C', '--auth=scram-sha-256', `--username=${SUPERUSER}`];
    try {
      await runCommand(
        join(placement.programs, 'bin', 'initdb'),
        [`--pgdata=${draft}`, `--pwfile=${passwordFile}`, ...flags],
        { cwd: draft, limitMs: INITIALISE_WITHIN_MS, signal, ...placement.user },
      );
      // initdb writes PG_VERSION first: only a complete folder may have the final name.
      renameSync(draft, placement.data);
    } finally {
      rmSync(passwordFile, { force: true });
    }
  }

  /** How the server process is run; `initialise` must have been called. */
  spec(): ProcessSpec {
    const { placement, port, settings } = this.options;
    const all: Record<string, string> = {
      listen_addresses: '127.0.0.1',
      // No socket file: its folder would have to be writable for another user, and its path short.
      unix_socket_directories: '',
      // Ten workers and ten APIs with their pools.
      max_connections: '400',
      shared_buffers: sharedBuffers(totalmem()),
      timezone: 'UTC',
      log_timezone: 'UTC',
      ...settings,
    };
    return {
      name: 'postgres',
      command: join(placement.programs, 'bin', 'postgres'),
      args: [
        '-D',
        placement.data,
        '-p',
        String(port),
        ...Object.entries(all).flatMap(([k, v]) => ['-c', `${k}=${v}`]),
      ],
      env: { ...process.env, LC_MESSAGES: 'C' },
      cwd: placement.data,
      ...(placement.user ? { user: placement.user } : {}),
      prepare: () => this.recover(),
      ready: (_output, signal) => until(() => this.#answers(), signal),
      // After a kill it replays the log first.
      readyWithinMs: 90_000,
      // Fast shutdown: ends the sessions, writes a checkpoint.
      stopSignal: 'SIGINT',
      stopWithinMs: 20_000,
    };
  }

  /** Creates the roles' log-ins and the database where they are missing. Twice changes nothing. */
  async createDatabase(): Promise<void> {
    const client = await this.#connect();
    try {
      const found = await client.query<{ name: string }>(
        'SELECT rolname AS name FROM pg_roles WHERE rolname = ANY ($1) AND rolcanlogin',
        [[...ROLES]],
      );
      const known = new Set(found.rows.map(({ name }) => name));
      for (const role of ROLES.filter((each) => !known.has(each))) {
        const password = client.escapeLiteral(this.#passwordOf(role));
        // The schema's migrations make roles too, without a log-in.
        const isThere = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [role]);
        await client.query(
          `${isThere.rowCount === 0 ? 'CREATE' : 'ALTER'} ROLE ${role} LOGIN PASSWORD ${password}`,
        );
      }
      const database = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
      if (database.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE} OWNER ${OWNER}`);
    } finally {
      await client.end();
    }
  }

  /**
   * Frees the data folder of a server whose parent was killed: such a server lives on, and a second
   * one refuses to start beside it.
   * @throws StackError when its processes do not end.
   */
  async recover(): Promise<void> {
    const { data } = this.options.placement;
    const pidFile = join(data, 'postmaster.pid');
    if (!existsSync(pidFile)) return;
    const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
    if (processesIn(data).includes(pid)) process.kill(pid, 'SIGINT');
    // The server's own processes notice its end by themselves, a moment later.
    if (!(await untilOrTimeout(() => processesIn(data).length === 0, RECOVER_WITHIN_MS))) {
      throw new StackError(
        `Processes ${processesIn(data).join(', ')} still use ${data}. End them and start again.`,
      );
    }
    // A stranger or a zombie with the number in the file makes Postgres refuse for ever. On other
    // systems than Linux nothing was looked at: there Postgres decides by itself.
    if (process.platform === 'linux' && (identify(pid) !== null || isZombie(pid)))
      rmSync(pidFile, { force: true });
  }

  async #answers(): Promise<boolean> {
    try {
      const client = await this.#connect();
      await client.end();
      return true;
    } catch (error) {
      // Refused: not listening yet. 57P03: recovering. Anything else is told to the person.
      if (['ECONNREFUSED', 'ECONNRESET', '57P03'].includes(systemCode(error) ?? '')) return false;
      throw new StackError(
        `Postgres answers, but not as expected: ${error instanceof Error ? error.message : String(error)}.`,
      );
    }
  }

  async #connect(): Promise<pg.Client> {
    const connectionString = this.#url(SUPERUSER, this.#known().superuser_password, 'postgres');
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000 });
    // A server that goes away under an idle client must not end this program.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  #passwordOf(role: StackRole): string {
    const { owner_password: owner, role_passwords: others } = this.#known();
    const password = role === OWNER ? owner : others[role];
    if (password === undefined) throw new Error(`The role ${role} has no password.`);
    return password;
  }

  #known(): Credentials {
    if (this.#credentials === null) throw new Error('PostgresServer.initialise has not run.');
    return this.#credentials;
  }

  #url(user: string, password: string, database: string): string {
    return `postgres://${user}:${password}@127.0.0.1:${this.options.port}/${database}`;
  }
}

function withRolePasswords(credentials: Credentials): Credentials {
  const made = ROLES.filter((role) => role !== OWNER).map((role) => [
    role,
    credentials.role_passwords[role] ?? newPassword(),
  ]);
  return { ...credentials, role_passwords: Object.fromEntries(made) as Record<string, string> };
}

/** Letters and digits only, so that it stands in a URL as it is. */
function newPassword(): string {
  return randomBytes(24).toString('hex');
}

function isZombie(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return identify(pid) === null;
  } catch {
    return false;
  }
}
