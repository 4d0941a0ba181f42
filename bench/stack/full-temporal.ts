import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { until, untilOrTimeout } from '../../src/dev/pacing.js';
import { reservePortBlock, type PortReservation } from '../../src/dev/ports.js';
import { SupervisedProcess, type ProcessSpec } from '../../src/dev/process/supervised-process.js';
import { StackError } from '../../src/dev/stack-error.js';
import { openStackFolder, type StackFolder } from '../../src/dev/stack-folder.js';
import type { StackSettings } from '../../src/dev/stack-settings.js';
import { prepareNamespace } from '../../src/dev/temporal/temporal-namespace.js';
import {
  buildTemporalServer,
  type BuildContext,
  type TemporalServerPrograms,
} from './temporal-server-build.js';
import { dynamicConfigYaml, temporalServerYaml, type TemporalServerPorts } from './temporal-server-config.js';
import { TemporalDatabases, type DatabaseNames } from './temporal-databases.js';

const CALL_WITHIN_MS = 5_000;
const READY_WITHIN_MS = 90_000;
const STOP_WITHIN_MS = 20_000;
const ATTRIBUTES_WITHIN_MS = 60_000;
const RETENTION_S = 86_400;
/** gRPC's number for ALREADY_EXISTS. */
const ALREADY_EXISTS = 6;

/**
 * The full Temporal server on a Postgres of its own, for loads that the development server cannot
 * carry. The database server lives as long as the bench; each run gets a server on fresh databases.
 */
export class FullTemporal {
  readonly #folder: StackFolder;
  readonly databases: TemporalDatabases;
  #server: SupervisedProcess | null = null;
  #names: DatabaseNames | null = null;
  #started = 0;

  private constructor(
    private readonly settings: StackSettings,
    private readonly programs: TemporalServerPrograms,
    private readonly reservation: PortReservation,
    private readonly signal: AbortSignal,
  ) {
    const path = mkdtempSync(join(tmpdir(), 'payments-bench-'));
    chmodSync(path, 0o711); // Root's Postgres runs as another user.
    this.#folder = openStackFolder(path);
    const port = this.#port('postgres', 0);
    this.databases = new TemporalDatabases({ folder: this.#folder, port, signal });
  }

  /** Builds what is missing and starts the database server. @throws StackError; nothing runs then. */
  static async prepare(settings: StackSettings, context: BuildContext): Promise<FullTemporal> {
    const programs = await buildTemporalServer(context);
    const full = new FullTemporal(settings, programs, await reservePortBlock(settings), context.signal);
    try {
      context.say("starting Postgres for Temporal and making Temporal's tables");
      await full.databases.start(programs.sqlTool);
      return full;
    } catch (error) {
      await full.close();
      throw error;
    }
  }

  get address(): string {
    return `127.0.0.1:${this.#ports().frontend}`;
  }

  /** Process ids now, by group. */
  get pids(): { readonly server: readonly number[]; readonly postgres: readonly number[] } {
    const known = (pid: number | null | undefined): readonly number[] => (pid == null ? [] : [pid]);
    return { server: known(this.#server?.pid), postgres: known(this.databases.pid) };
  }

  /** Starts a server on fresh databases; serves the namespace with its search attributes then. */
  async startServer(): Promise<void> {
    this.#names = await this.databases.copy(++this.#started);
    const server = new SupervisedProcess(this.#spec(this.#writeConfig(this.#names)), {
      folder: this.#folder,
      restartDelaysMs: [],
      onEvent: () => undefined,
    });
    server.log.rotate();
    this.#server = server;
    await server.start(this.signal);
    const { namespace } = this.settings.temporal;
    await prepareNamespace(
      { address: this.address, namespace, isOurs: false },
      this.settings.temporal,
      this.signal,
    );
    await this.#attributesAreKnown(namespace);
  }

  /** Stops the server and forgets its databases. Twice: the second call does nothing. */
  async stopServer(): Promise<void> {
    await this.#server?.stop();
    this.#server = null;
    if (this.#names !== null) await this.databases.drop(this.#names);
    this.#names = null;
  }

  /** Stops everything and removes the folder. Never throws for what is already gone. */
  async close(): Promise<void> {
    await this.#server?.stop();
    await this.databases.stop();
    rmSync(this.#folder.path, { recursive: true, force: true });
    await this.reservation.release();
  }

  /** Without waiting: for a program that is about to exit. */
  killNow(): void {
    this.#server?.killNow();
    this.databases.killNow();
  }

  #spec(configFile: string): ProcessSpec {
    return {
      name: 'temporal',
      command: this.programs.server,
      args: ['--config-file', configFile, '--allow-no-auth', 'start'],
      env: process.env,
      cwd: this.#folder.path,
      ready: (_output, signal) => until(() => this.#registerNamespace(), signal),
      readyWithinMs: READY_WITHIN_MS,
      stopSignal: 'SIGTERM',
      stopWithinMs: STOP_WITHIN_MS,
    };
  }

  #writeConfig(databases: DatabaseNames): string {
    const dynamicConfigFile = join(this.#folder.path, 'dynamic-config.yaml');
    writeFileSync(dynamicConfigFile, dynamicConfigYaml(this.settings.temporal.dynamic_config));
    const { port, user, password } = this.databases;
    const yaml = temporalServerYaml({
      ports: this.#ports(),
      database: { port, user, password },
      databases,
      dynamicConfigFile,
    });
    const file = join(this.#folder.path, 'temporal-server.yaml');
    writeFileSync(file, yaml, { mode: 0o600 });
    return file;
  }

  /** @returns whether the namespace exists now; false while the server does not serve. */
  async #registerNamespace(): Promise<boolean> {
    const { namespace } = this.settings.temporal;
    const workflowExecutionRetentionPeriod = { seconds: RETENTION_S as never };
    return this.#withConnection(async (connection) => {
      try {
        await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
      } catch (error) {
        if ((error as { code?: unknown }).code !== ALREADY_EXISTS) return false; // Not serving yet.
      }
      return true;
    });
  }

  /** New attributes are unknown to the services until their caches are refreshed. */
  async #attributesAreKnown(namespace: string): Promise<void> {
    const names = Object.keys(this.settings.temporal.search_attributes);
    const query = names.map((name) => `${name} = 'none'`).join(' AND ');
    const isKnown = await untilOrTimeout(
      () =>
        this.#withConnection(async (connection) => {
          this.signal.throwIfAborted();
          try {
            await connection.workflowService.countWorkflowExecutions({ namespace, query });
            return true;
          } catch {
            return false; // Invalid attribute, until the caches are refreshed.
          }
        }),
      ATTRIBUTES_WITHIN_MS,
    );
    if (!isKnown) throw new StackError(`The Temporal server does not know ${names.join(', ')}.`);
  }

  async #withConnection<T>(use: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = Connection.lazy({
      address: this.address,
      channelArgs: { 'grpc.enable_http_proxy': 0 },
    });
    try {
      return await connection.withDeadline(Date.now() + CALL_WITHIN_MS, () => use(connection));
    } finally {
      await connection.close();
    }
  }

  /** Ports of the reserved block; a stack's own ones of the same number are in another block. */
  #ports(): TemporalServerPorts {
    return {
      frontend: this.#port('temporal', 0),
      frontendHttp: this.#port('temporal_ui', 0),
      history: this.#port('api', 0),
      matching: this.#port('api', 1),
      worker: this.#port('api', 2),
      membership: [this.#port('api', 3), this.#port('api', 4), this.#port('api', 5), this.#port('api', 6)],
    };
  }

  #port(name: keyof StackSettings['ports']['offsets'], index: number): number {
    return this.reservation.base + this.settings.ports.offsets[name] + index;
  }
}
