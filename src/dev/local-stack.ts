import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { resolveTemporalCli } from './temporal/binary-resolver.js';
import { lockFolder } from './folder-lock.js';
import { ensureIssuer } from './local-issuer.js';
import { ensureWebhookSecrets } from './local-webhooks.js';
import { ensureApiKeys, ensureKeysFile, runOps } from './local-secrets.js';
import { stopOrphans } from './process/orphans.js';
import { portsFrom, requireFreePorts, type ProcessCounts, type StackPorts } from './ports.js';
import { placePostgres } from './postgres/postgres-placement.js';
import { PostgresServer } from './postgres/postgres-server.js';
import { StackError } from './stack-error.js';
import { describeStack, markStopped, writeStackFile, type ApiKeys, type StackFile } from './stack-file.js';
import { openStackFolder, type StackFolder } from './stack-folder.js';
import { runPlan, stepMaker, type PlanItem, type Report } from './stack-plan.js';
import {
  apiSpec,
  operationsEnvironment,
  operationsSettings,
  simulatorSpec,
  workerSpec,
  type ServiceContext,
} from './stack-services.js';
import type { StackSettings } from './stack-settings.js';
import { ProcessGroup, type StoppedProcess } from './process/process-group.js';
import type { ProcessEvent, ProcessSpec, SupervisedProcess } from './process/supervised-process.js';
import { foreignTemporal, prepareNamespace, type TemporalTarget } from './temporal/temporal-namespace.js';
import { temporalSpec } from './temporal/temporal-server.js';

export interface LocalStackOptions {
  /** Folder of the checkout, built. */
  readonly root: string;
  readonly settings: StackSettings;
  /** Data, logs and secrets of this stack. */
  readonly folder: string;
  /** Programs that were downloaded; shared by all stacks. */
  readonly cache: string;
  readonly portBase: number;
  /** How many API and worker processes; zero of a kind is a stack without it. */
  readonly counts: ProcessCounts;
  /** The environment that every process inherits, e.g. `process.env` with more. */
  readonly env: NodeJS.ProcessEnv;
  /** Settings of the database server beside ours. */
  readonly postgresSettings: Readonly<Record<string, string>>;
  /** See RESTART_DELAYS_MS; empty: a process that ends by itself stays down. */
  readonly restartDelaysMs: readonly number[];
  readonly onEvent: (event: ProcessEvent) => void;
  /** True: the simulator tells the first API what became of payouts. */
  readonly sendsWebhooks: boolean;
}

const MIGRATE_WITHIN_MS = 120_000;
/** Clients before their servers: a worker finishes its calls while everything still answers. */
const STOP_ORDER = [/^worker/, /^api/, /^simulator$/, /^temporal$/, /^postgres$/];

/**
 * Postgres, Temporal, the provider simulator, the API and the worker as processes on this machine.
 *
 * `plan` is the start in steps, run by whoever shows them; `start` runs it without showing. The first
 * step that fails ends the others; `stop` then leaves nothing running. One object is one run.
 */
export class LocalStack {
  readonly #ports: StackPorts;
  readonly #temporal: TemporalTarget;
  readonly #processes: ProcessGroup;
  readonly #ending = new AbortController();
  readonly #controlToken = randomBytes(24).toString('hex');
  readonly #removeLock: (() => void)[] = [];
  #openFolder: StackFolder | null = null;
  #postgres: PostgresServer | null = null;
  #databaseFolder: string | null = null;
  #apiKeys: ApiKeys | null = null;
  #isPublished = false;

  constructor(private readonly options: LocalStackOptions) {
    this.#processes = new ProcessGroup({
      restartDelaysMs: options.restartDelaysMs,
      stopOrder: STOP_ORDER,
      onEvent: (event) => {
        this.#publish();
        options.onEvent(event);
      },
    });
    const { apis, workers } = options.counts;
    const counts = { apis: Math.max(apis, 1), workers: Math.max(workers, 1) };
    this.#ports = portsFrom(options.settings, options.portBase, counts);
    this.#temporal = foreignTemporal(options.env, options.settings.temporal) ?? {
      address: `127.0.0.1:${this.#ports.temporal}`,
      namespace: options.settings.temporal.namespace,
      isOurs: true,
    };
  }

  /** Why the start was given up; null while it was not. */
  get failure(): unknown {
    const reason: unknown = this.#ending.signal.reason;
    return this.#ending.signal.aborted ? reason : null;
  }

  /** Gives up a start that is under way; its steps end soon. The first reason counts. */
  abort(reason: unknown): void {
    this.#ending.abort(reason);
  }

  /** The whole start. What needs nothing of each other is marked concurrent. */
  plan(): readonly PlanItem[] {
    const step = stepMaker(this.#ending);
    const { apis, workers } = this.options.counts;
    const database: PlanItem[] = [
      step('Postgres', (report) => this.#startPostgres(report)),
      step('Schema', () => this.#migrate()),
      step('API keys', () => this.#seed()),
    ];
    const servers: PlanItem[] = [
      { title: 'Database', concurrent: false, steps: database },
      step('Temporal', (report) => this.#startTemporal(report)),
      step('Provider simulator', () => this.#run(simulatorSpec(this.#context()))),
    ];
    const title = (kind: string, index: number, count: number) => (count > 1 ? `${kind} ${index + 1}` : kind);
    const payments: PlanItem[] = [
      ...Array.from({ length: apis }, (_, i) =>
        step(title('API', i, apis), () => this.#run(apiSpec(this.#context(), i))),
      ),
      ...Array.from({ length: workers }, (_, i) =>
        step(title('Worker', i, workers), () => this.#run(workerSpec(this.#context(), i))),
      ),
    ];
    return [
      step('Local folder', (report) => this.#takeFolder(report)),
      { title: 'Servers', concurrent: true, steps: servers },
      { title: 'Payments', concurrent: true, steps: payments },
      step('Addresses and keys', async () => {
        this.#isPublished = true;
        this.#publish();
        return this.#folder.stackFile;
      }),
    ];
  }

  /**
   * Runs the plan. When it fails, everything is stopped again.
   * @throws the first failure: a StackError where a person can act on it.
   */
  async start(): Promise<void> {
    try {
      await runPlan(this.plan());
    } catch (error) {
      await this.stop();
      throw this.failure ?? error;
    }
  }

  /** What stack.json says now. Only after a start that ended well. */
  describe(): StackFile {
    if (this.#apiKeys === null) throw new StackError('The stack has not started.');
    return describeStack({
      ports: this.#ports,
      counts: this.options.counts,
      temporal: this.#temporal,
      postgresUrl: this.#server.superuserUrl,
      simulatorControlToken: this.#controlToken,
      apiKeys: this.#apiKeys,
      issuerKeyFile: this.#folder.issuerKeyFile,
      environment: operationsSettings(this.#context()),
      pids: this.#processes.pids(),
    });
  }

  /**
   * Stops every process in order, each within its limit, and says so in stack.json. Also ends a
   * start under way: call it when the plan has settled. Twice: the second call finds nothing.
   */
  async stop(onStopped: (process: StoppedProcess) => void = () => undefined): Promise<void> {
    this.abort(new StackError('The stack is being stopped.'));
    await this.#processes.stop(onStopped);
    this.#release();
  }

  /** Kills every process at once. The next start recovers as after a power cut. */
  async killAll(): Promise<void> {
    this.abort(new StackError('The stack is being killed.'));
    await this.#processes.killAll();
    this.#release();
  }

  /** As `killAll`, without waiting: for a program that is about to exit. */
  killNow(): void {
    this.#processes.killNow();
  }

  /** Forgets the database, which may lie outside the folder. Only after a stop. */
  removeData(): void {
    if (this.#databaseFolder !== null) rmSync(this.#databaseFolder, { recursive: true, force: true });
  }

  /** Kills one process; it stays down until `restart`. */
  async kill(name: string): Promise<void> {
    await this.process(name).kill();
    this.#publish();
  }

  /** Starts one process, after stopping it when it runs, and waits until it is ready. */
  async restart(name: string): Promise<void> {
    const process = this.process(name);
    await process.stop();
    await process.start(this.#ending.signal);
    this.#publish();
  }

  /** @throws StackError naming the processes there are. */
  process(name: string): SupervisedProcess {
    return this.#processes.get(name);
  }

  get #folder(): StackFolder {
    if (this.#openFolder === null) throw new Error('The folder of the stack is not open yet.');
    return this.#openFolder;
  }

  get #server(): PostgresServer {
    if (this.#postgres === null) throw new Error('The database server of the stack is not set up yet.');
    return this.#postgres;
  }

  #context(): ServiceContext {
    return {
      root: this.options.root,
      folder: this.#folder,
      ports: this.#ports,
      env: this.options.env,
      databaseUrl: this.#postgres === null ? null : (role) => this.#server.urlOf(role),
      temporal: this.#temporal,
      simulatorControlToken: this.#controlToken,
      sendsWebhooks: this.options.sendsWebhooks,
    };
  }

  async #takeFolder(report: Report): Promise<string> {
    const folder = openStackFolder(this.options.folder);
    this.#removeLock.push(lockFolder(folder.lockFile));
    this.#openFolder = folder;
    // After a kill the file still claims that the stack runs.
    markStopped(folder.stackFile);
    const orphans = await stopOrphans(folder, report);
    ensureKeysFile(folder);
    ensureIssuer(folder);
    ensureWebhookSecrets(folder);
    const own = this.#temporal.isOurs ? [] : [this.#ports.temporal, this.#ports.temporalUi];
    await requireFreePorts(this.#ports, own);
    return orphans.length === 0
      ? folder.path
      : `${folder.path}; stopped of an earlier run: ${orphans.join(', ')}`;
  }

  async #startPostgres(report: Report): Promise<string> {
    const placement = placePostgres(this.#folder);
    const { postgresSettings } = this.options;
    const server = new PostgresServer({
      folder: this.#folder,
      placement,
      port: this.#ports.postgres,
      settings: postgresSettings,
    });
    report('data folder');
    this.#databaseFolder = placement.data;
    const data = await server.initialise(this.#ending.signal);
    // A new database knows none of the old keys.
    if (data === 'created') rmSync(this.#folder.apiKeysFile, { force: true });
    this.#postgres = server;
    await this.#run(server.spec());
    await server.createDatabase();
    return placement.notice ?? (data === 'kept' ? 'data kept' : 'new data');
  }

  async #migrate(): Promise<void> {
    await runOps(['migrate'], { ...this.#opsOptions(), limitMs: MIGRATE_WITHIN_MS });
  }

  async #seed(): Promise<void> {
    this.#apiKeys = await ensureApiKeys(this.#folder, this.#opsOptions());
  }

  #opsOptions(): { root: string; env: NodeJS.ProcessEnv; signal: AbortSignal } {
    const env = operationsEnvironment(this.#context());
    return { root: this.options.root, env, signal: this.#ending.signal };
  }

  async #startTemporal(report: Report): Promise<string> {
    const settings = this.options.settings.temporal;
    if (!this.#temporal.isOurs) {
      await prepareNamespace(this.#temporal, settings, this.#ending.signal);
      return `server at ${this.#temporal.address} (TEMPORAL_ADDRESS)`;
    }
    const binary = await resolveTemporalCli({
      env: this.options.env,
      cache: this.options.cache,
      signal: this.#ending.signal,
      report,
    });
    report('starting');
    await this.#run(
      temporalSpec({
        binary,
        folder: this.#folder,
        port: this.#ports.temporal,
        uiPort: this.#ports.temporalUi,
        namespace: this.#temporal.namespace,
        settings,
      }),
    );
    await prepareNamespace(this.#temporal, settings, this.#ending.signal);
    return `${binary.version} (${ORIGINS[binary.origin]}: ${binary.path})`;
  }

  #run(spec: ProcessSpec): Promise<void> {
    return this.#processes.run(spec, this.#folder, this.#ending.signal);
  }

  #publish(): void {
    if (this.#isPublished) writeStackFile(this.#folder.stackFile, this.describe());
  }

  #release(): void {
    this.#isPublished = false;
    const removeLock = this.#removeLock.pop();
    if (removeLock === undefined) return;
    markStopped(this.#folder.stackFile);
    removeLock();
  }
}

const ORIGINS = {
  path: 'from the PATH',
  cache: 'cached',
  wheel: 'downloaded from PyPI',
  sdk: "downloaded by Temporal's SDK",
} as const;
