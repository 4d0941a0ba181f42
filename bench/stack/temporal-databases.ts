import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { placePostgres } from '../../src/dev/postgres/postgres-placement.js';
import { PostgresServer } from '../../src/dev/postgres/postgres-server.js';
import { runCommand } from '../../src/dev/process/command.js';
import { SupervisedProcess } from '../../src/dev/process/supervised-process.js';
import { readJsonFile, type StackFolder } from '../../src/dev/stack-folder.js';

const TEMPLATES = { temporal: 'temporal_template', visibility: 'visibility_template' } as const;
type Store = keyof typeof TEMPLATES;
const STORES = ['temporal', 'visibility'] as const satisfies readonly Store[];
const USER = 'temporal';
const SCHEMA_WITHIN_MS = 120_000;

/** The two databases of one Temporal server. */
export type DatabaseNames = Readonly<Record<Store, string>>;

/**
 * A second database server for Temporal alone, as a cluster has one: its load must not hide in
 * the product's. Each run gets fresh databases, copied from two that hold the tables.
 */
export class TemporalDatabases {
  readonly user = USER;
  readonly password = randomBytes(24).toString('hex');
  readonly #server: PostgresServer;
  #process: SupervisedProcess | null = null;

  constructor(
    private readonly options: {
      readonly folder: StackFolder;
      readonly port: number;
      readonly signal: AbortSignal;
    },
  ) {
    const { folder, port } = options;
    this.#server = new PostgresServer({ folder, placement: placePostgres(folder), port, settings: {} });
  }

  get port(): number {
    return this.options.port;
  }

  /** The running server's process id; null while it is down. */
  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** Any database of the server, as its superuser. */
  get url(): string {
    return this.#url('postgres');
  }

  /** Starts the server and makes the templates with Temporal's own tool. */
  async start(sqlTool: string): Promise<void> {
    await this.#server.initialise(this.options.signal);
    this.#process = new SupervisedProcess(this.#server.spec(), {
      folder: this.options.folder,
      restartDelaysMs: [],
      onEvent: () => undefined,
    });
    await this.#process.start(this.options.signal);
    await this.#query('postgres', [`CREATE ROLE ${USER} LOGIN PASSWORD '${this.password}'`]);
    for (const store of STORES) {
      await this.#query('postgres', [`CREATE DATABASE ${TEMPLATES[store]} OWNER ${USER}`]);
      await this.#makeTables(sqlTool, store);
    }
  }

  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  /** Without waiting: for a program that is about to exit. */
  killNow(): void {
    this.#process?.killNow();
  }

  /** Copies the templates. Names with another number are other databases. */
  async copy(number: number): Promise<DatabaseNames> {
    const names = { temporal: `temporal_${number}`, visibility: `visibility_${number}` };
    for (const store of STORES) {
      const name = names[store];
      await this.#query('postgres', [`CREATE DATABASE ${name} TEMPLATE ${TEMPLATES[store]} OWNER ${USER}`]);
      // The server looks its schema's version up by the name of the database.
      await this.#query(name, [`UPDATE schema_version SET db_name = '${name}'`]);
    }
    // Written out now, so that the copy's pages do not go to disk in the middle of a measurement.
    await this.#query('postgres', ['CHECKPOINT']);
    return names;
  }

  async drop(names: DatabaseNames): Promise<void> {
    for (const store of STORES) await this.#query('postgres', [`DROP DATABASE ${names[store]} WITH (FORCE)`]);
  }

  async #makeTables(sqlTool: string, store: Store): Promise<void> {
    const schema = `postgresql/v12/${store}`;
    for (const step of [
      ['setup-schema', '--version', '0.0'],
      ['update-schema', '--schema-name', schema],
    ]) {
      await runCommand(
        sqlTool,
        ['--plugin', 'postgres12_pgx', '--endpoint', '127.0.0.1', '--port', String(this.port), ...step],
        {
          cwd: this.options.folder.path,
          env: {
            ...process.env,
            SQL_USER: USER,
            SQL_PASSWORD: this.password,
            SQL_DATABASE: TEMPLATES[store],
          },
          limitMs: SCHEMA_WITHIN_MS,
          signal: this.options.signal,
        },
      );
    }
  }

  async #query(database: string, statements: readonly string[]): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url(database) });
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  }

  #url(database: string): string {
    const file = this.options.folder.postgresFile;
    const { superuser_password } = readJsonFile(file) as { superuser_password: string };
    return `postgres://postgres:${superuser_password}@127.0.0.1:${this.port}/${database}`;
  }
}
