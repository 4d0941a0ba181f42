import { Client, type Connection } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  Runtime,
  Worker,
  type NativeConnection,
  type WorkerOptions,
} from '@temporalio/worker';
import { readStackSettings, projectRoot } from '../../src/dev/stack-settings.js';
import { resolveTestServer } from '../../src/dev/temporal/binary-resolver.js';
import {
  OrchestratorUnavailable,
  type Wake,
  type WorkflowTarget,
} from '../../src/outbox/workflow-starter.js';
import { TemporalWorkflowStarter } from '../../src/orchestration/temporal-workflow-starter.js';
import { monotonicMs } from '../../src/platform/clock.js';
import { TASK_QUEUE, type FinalState } from '../../workflows/contract.js';
import { FakeActivities } from './fake-activities.js';
import type { FakePayment } from './fake-payment.js';
import {
  isSettled,
  payloadsIn,
  rigEvents,
  scheduled,
  unanswered,
  type RigEvent,
} from './workflow-history.js';
import { workflowBundle } from './workflow-bundle.js';

/** Shown in histories; the SDK's own would be process id and machine name. */
const IDENTITY = 'workflow-tests';
/** The SDK gives a test server five seconds to come up, which a busy machine may exceed. */
const START_TRIES = 5;
/** A start or signal that timed out may have happened and is repeated, as the relay does. */
const PUBLISH_TRIES = 20;
const CACHED = 1_000;
/** A test that failed may leave an activity that never ends; its file must not hang then. */
const SHUTDOWN_WITHIN_MS = 10_000;
/** Skipping a year takes under a second, and hundreds of polls on the way a few. */
const SKIP_WITHIN_MS = 40_000;

let isInstalled = false;

/** The core logs a warning for each test server, whose version it cannot tell. Once per process. */
export function installQuietRuntime(): void {
  if (isInstalled) return;
  isInstalled = true;
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR' }) } },
  });
}

export interface RigConnections {
  readonly connection: Connection;
  readonly native: NativeConnection;
}

export interface RigOptions {
  /** Workflows kept in the worker between their tasks; 0: each task replays the history from its start. */
  readonly maxCachedWorkflows?: number;
  /** One worker for workflows and activities, as in production. */
  readonly oneWorker?: boolean;
}

/**
 * The real workflow code in a real worker at a real server; only rows, provider and database clock
 * are fakes. Workflows are started and signalled through the product's own starter. Two workers unless
 * told otherwise: the one with the workflows can be stopped while the activities go on.
 */
export class WorkflowRig {
  readonly client: Client;
  readonly starter: TemporalWorkflowStarter;
  private deciding: { worker: Worker; done: Promise<void> } | null = null;
  private acting: { worker: Worker; done: Promise<void> } | null = null;

  constructor(
    protected readonly connections: RigConnections,
    private readonly options: RigOptions,
    readonly fakes = new FakeActivities(),
  ) {
    this.client = new Client({ connection: connections.connection, identity: IDENTITY });
    this.starter = new TemporalWorkflowStarter(this.client);
  }

  async startWorkers(): Promise<void> {
    if (!this.options.oneWorker) this.acting = await this.run({ activities: this.fakes.activities });
    await this.startDeciding();
  }

  /** The worker that runs workflow code; activities have one of their own. */
  async startDeciding(maxCachedWorkflows = this.options.maxCachedWorkflows ?? CACHED): Promise<void> {
    this.deciding = await this.run({
      workflowBundle: await workflowBundle(),
      maxCachedWorkflows,
      ...(this.options.oneWorker ? { activities: this.fakes.activities } : {}),
    });
  }

  async stopDeciding(): Promise<void> {
    await stop(this.deciding);
    this.deciding = null;
  }

  /** Stops the workers, then what `end` stops, also when an activity that never ends made them fail. */
  async close(): Promise<void> {
    try {
      await Promise.all([stop(this.deciding), stop(this.acting)]);
    } finally {
      await this.end();
    }
  }

  /** Ends connections and server. */
  protected async end(): Promise<void> {}

  /** A scheduled payment whose workflow is started as the relay does it, `armInMs` 3 s ahead of its time. */
  async start(id: string, dueInMs: number): Promise<FakePayment> {
    const payment = this.fakes.add(id, dueInMs);
    await this.publishStart(payment);
    return payment;
  }

  /** Starts the workflow of a payment that was added; without delay: as the sweep does it. */
  async publishStart(payment: FakePayment, how: 'relay' | 'without delay' = 'relay'): Promise<void> {
    const target = targetOf(payment);
    await this.publish(() => (how === 'relay' ? this.starter.start(target) : this.starter.restart(target)));
  }

  /** The signal of relay or sweep: the new times of the payment, or another word. */
  async wake(payment: FakePayment, news: Wake = 'times'): Promise<void> {
    await this.wakeWith(targetOf(payment), news);
  }

  /** As `wake`, with news as they were taken at some other time. */
  async wakeWith(target: WorkflowTarget, news: Wake = 'times'): Promise<'woken' | 'completed'> {
    return this.publish(() => this.starter.wake(target, news));
  }

  /** The relay's signal after a cancel. */
  async cancel(payment: FakePayment): Promise<void> {
    await this.publish(() => this.starter.cancel(targetOf(payment)));
  }

  /** Waits for the end of the payment's newest run. */
  async result(payment: FakePayment): Promise<FinalState> {
    return (await this.client.workflow.getHandle(payment.id).result()) as FinalState;
  }

  /** The events of the newest run so far. */
  async events(payment: Pick<FakePayment, 'id'>): Promise<readonly RigEvent[]> {
    return rigEvents(await this.client.workflow.getHandle(payment.id).fetchHistory());
  }

  /** Ids of the payment's runs, oldest first. */
  async runs(payment: Pick<FakePayment, 'id'>): Promise<readonly string[]> {
    const { raw } = await this.client.workflow.getHandle(payment.id).describe();
    const ids: string[] = [];
    for (let id = raw.workflowExecutionInfo?.firstRunId ?? ''; id !== '';) {
      ids.push(id);
      const { events } = await this.client.workflow.getHandle(payment.id, id).fetchHistory();
      id = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? '';
    }
    return ids;
  }

  /** Every JSON value in the history: inputs, results, signals, summary and search attributes' values. */
  async payloads(payment: FakePayment): Promise<readonly unknown[]> {
    return (await this.events(payment)).flatMap((event) => payloadsIn(event.attributes));
  }

  /** Resolves when the history holds so many events of this name. */
  async recorded(payment: FakePayment, name: string, times = 1): Promise<void> {
    await this.until(async () => {
      const events = await this.events(payment);
      return events.filter((event) => event.name === name).length >= times;
    });
  }

  /** Looks until the condition holds; the caller's test bounds the wait. */
  async until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await pause();
  }

  /** Resolves when the workflow has handled everything that it was told, looks and cancels included. */
  async settled(payment: FakePayment): Promise<readonly RigEvent[]> {
    for (;;) {
      const events = await this.events(payment);
      if (isSettled(events)) return events;
      await pause();
    }
  }

  /** What the Web UI shows as the payment's current details. */
  async details(payment: FakePayment): Promise<string> {
    const handle = this.client.workflow.getHandle(payment.id);
    const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
    return metadata.currentDetails ?? '';
  }

  protected async publish<T>(call: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof OrchestratorUnavailable) || attempt === PUBLISH_TRIES) throw error;
      }
    }
  }

  private async run(options: Partial<WorkerOptions>): Promise<{ worker: Worker; done: Promise<void> }> {
    const worker = await Worker.create({
      connection: this.connections.native,
      taskQueue: TASK_QUEUE,
      identity: IDENTITY,
      maxConcurrentActivityTaskExecutions: 2_000,
      shutdownForceTime: SHUTDOWN_WITHIN_MS,
      ...options,
    });
    return { worker, done: worker.run() };
  }
}

/** What the relay would read of the payment now. */
export function targetOf(payment: FakePayment): WorkflowTarget {
  return {
    paymentId: payment.id,
    lane: 'simulated',
    provider: 'simulated',
    tenantPseudonym: 'p-tenant',
    ...payment.hint,
    readAtMs: monotonicMs(),
  };
}

/** A rig on the time-skipping server, whose clock is global: one per test file. */
export class TimeSkippingRig extends WorkflowRig {
  constructor(
    private readonly environment: TestWorkflowEnvironment,
    options: RigOptions,
  ) {
    const connections = { connection: environment.connection, native: environment.nativeConnection };
    // A run that ends while an activity is under way stops this server's skipping for good, so the
    // pair's results come one after the other here.
    super(connections, options, new FakeActivities((id, times) => this.beginsRecorded(id, times)));
  }

  private async beginsRecorded(paymentId: string, times: number): Promise<void> {
    await this.until(async () => {
      const events = await this.events({ id: paymentId });
      return (
        scheduled(events, ['beginSubmission']).length - unanswered(events, ['beginSubmission']).length >=
        times
      );
    });
  }

  /**
   * Lets time pass on both clocks, the server's by skipping; the database's goes ahead, so that what
   * the workflow wakes for is due. The server skips nothing while an activity is under way: with a
   * pair armed, move the database's clock alone (`fakes.pass`).
   */
  async sleep(ms: number): Promise<void> {
    this.fakes.pass(ms);
    const stuck = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      stuck.reject(
        new Error('The server skips no time: an activity is under way, or was when its run ended.'),
      );
    }, SKIP_WITHIN_MS);
    try {
      await Promise.race([this.environment.sleep(ms), stuck.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The server's clock, epoch milliseconds. */
  async serverMs(): Promise<number> {
    return this.environment.currentTimeMs();
  }

  protected override async end(): Promise<void> {
    await this.environment.teardown();
  }
}

/** Starts the server and the workers. @throws when the server cannot be found or started. */
export async function startTimeSkippingRig(options: RigOptions = {}): Promise<TimeSkippingRig> {
  installQuietRuntime();
  const { path } = await resolveTestServer();
  const environment = await startEnvironment(path);
  await environment.connection.operatorService.addSearchAttributes({
    namespace: 'default',
    searchAttributes: searchAttributes(),
  });
  const rig = new TimeSkippingRig(environment, options);
  await rig.startWorkers();
  return rig;
}

async function startEnvironment(path: string): Promise<TestWorkflowEnvironment> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await TestWorkflowEnvironment.createTimeSkipping({
        server: { executable: { type: 'existing-path', path } },
      });
    } catch (error) {
      if (attempt === START_TRIES) throw error;
    }
  }
}

/** The search attributes of the product; a start with an unknown one is refused. All are keywords. */
function searchAttributes(): Record<string, number> {
  const KEYWORD = 2;
  const wanted = Object.entries(readStackSettings(projectRoot()).temporal.search_attributes);
  return Object.fromEntries(
    wanted.map(([name, type]) => {
      if (type !== 'Keyword') throw new Error(`search attribute ${name} is ${type}: teach it to the rig`);
      return [name, KEYWORD];
    }),
  );
}

/** Between two looks at a history. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}

async function stop(running: { worker: Worker; done: Promise<void> } | null): Promise<void> {
  if (!running) return;
  if (running.worker.getState() === 'RUNNING') running.worker.shutdown();
  await running.done;
}
