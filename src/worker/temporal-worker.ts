import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
  type LogLevel,
} from '@temporalio/worker';
import type { PaymentActivities, ReconciliationActivities } from '../../workflows/contract.js';
import { TASK_QUEUE } from '../../workflows/contract.js';
import type { TemporalSettings } from '../config/temporal-settings.js';
import { pause } from '../platform/clock.js';
import type { Log } from '../platform/logger.js';

/** Above the adapters' own deadline of 25 s, below the platform's kill. */
const SHUTDOWN_GRACE_MS = 35_000;
const SHUTDOWN_FORCE_MS = 45_000;
const CONNECT_AGAIN_MS = 500;
/** Less than a check of readiness may take, so that it says what failed. */
const ANSWER_MS = 800;
/** After a worker died its sticky tasks go to the others this soon; the default of 10 s makes recovery slow. */
const STICKY_MS = 2_000;
/** Starts and whatever a dead worker had come by the common queue; the default leaves it a fifth of the polls. */
const NON_STICKY_POLLS = 0.5;
const CACHED_WORKFLOWS = 12_000;
/** The bundle that the build wrote beside the compiled code. */
const BUNDLE = fileURLToPath(new URL('../../workflow-bundle.js', import.meta.url));

export interface TemporalWorkerOptions {
  readonly temporal: TemporalSettings;
  readonly activities: PaymentActivities & ReconciliationActivities;
  /** Payments armed at once; each takes two activity slots. */
  readonly maxArmed: number;
  readonly log: Log;
  readonly isStopping: () => boolean;
}

const LEVELS: Partial<Record<LogLevel, 'warn' | 'error'>> = { WARN: 'warn', ERROR: 'error' };

/** What the SDK says as a code; a message with anything but plain words could hold what must not leave. */
function codeOf(message: string): string {
  return /^[A-Za-z ,.'-]{1,80}$/.test(message) ? message.toLowerCase().replace(/[^a-z]+/g, '_') : 'other';
}

function installRuntime(log: Log): void {
  Runtime.install({
    shutdownSignals: [],
    // The native core writes to the console by itself unless its lines are forwarded.
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'WARN' }), forward: {} } },
    logger: new DefaultLogger('WARN', (entry) =>
      log[LEVELS[entry.level] ?? 'warn']({ code: codeOf(entry.message) }, 'temporal_sdk'),
    ),
  });
}

/** The worker's connection, by mutual TLS where the settings say so. @throws TransportError when there is none. */
export function connectWorker({ address, tls }: TemporalSettings): Promise<NativeConnection> {
  return NativeConnection.connect({ address, tls: tls ?? false });
}

async function connect(options: TemporalWorkerOptions): Promise<NativeConnection | null> {
  // NativeConnection rejects at once, and a worker must outlive an absent Temporal.
  while (!options.isStopping()) {
    try {
      return await connectWorker(options.temporal);
    } catch {
      options.log.warn({ operation: 'connect' }, 'temporal_away');
      await pause(CONNECT_AGAIN_MS);
    }
  }
  return null;
}

async function answers(connection: NativeConnection): Promise<boolean> {
  try {
    await connection.withDeadline(Date.now() + ANSWER_MS, () => connection.workflowService.getSystemInfo({}));
    return true;
  } catch {
    return false; // Why is in the SDK's own lines of the log.
  }
}

export interface RunningWorker {
  /** Resolves when the worker has stopped; rejects on a fatal fault of the SDK. */
  readonly done: Promise<void>;
  /** True while the SDK polls and Temporal answers it: the SDK alone goes on polling a server that is away. */
  readonly isPolling: () => Promise<boolean>;
  /** Stops polling; activities under way may end within the grace. Twice: nothing. */
  shutdown(): void;
  close(): Promise<void>;
}

/**
 * Runs the worker of the payments queue. One queue for all activities: eager dispatch is what
 * makes the armed pair cheap. @returns null when the process was told to stop before Temporal came.
 */
export async function runTemporalWorker(options: TemporalWorkerOptions): Promise<RunningWorker | null> {
  installRuntime(options.log);
  const connection = await connect(options);
  if (!connection) return null;
  const worker = await Worker.create({
    connection,
    namespace: options.temporal.namespace,
    taskQueue: TASK_QUEUE,
    workflowBundle: { code: readFileSync(BUNDLE, 'utf8') },
    activities: options.activities,
    shutdownGraceTime: SHUTDOWN_GRACE_MS,
    shutdownForceTime: SHUTDOWN_FORCE_MS,
    maxConcurrentActivityTaskExecutions: 2 * options.maxArmed + 200,
    activityTaskPollerBehavior: { type: 'simple-maximum', maximum: 10 },
    maxCachedWorkflows: CACHED_WORKFLOWS,
    maxConcurrentWorkflowTaskExecutions: 100,
    workflowTaskPollerBehavior: { type: 'simple-maximum', maximum: 20 },
    nonStickyToStickyPollRatio: NON_STICKY_POLLS,
    stickyQueueScheduleToStartTimeout: STICKY_MS,
  });
  return {
    done: worker.run(),
    isPolling: async () => worker.getState() === 'RUNNING' && (await answers(connection)),
    shutdown: () => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
    },
    close: () => connection.close(),
  };
}
