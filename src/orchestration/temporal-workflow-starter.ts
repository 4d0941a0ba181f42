import {
  Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type WorkflowSignalWithStartOptions,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import {
  CANCEL_SIGNAL,
  EXECUTE_PAYMENT,
  TASK_QUEUE,
  WAKE_SIGNAL,
  type ExecutePaymentInput,
  type WakeNews,
} from '../../workflows/contract.js';
import {
  OrchestratorUnavailable,
  type Wake,
  type WorkflowStarter,
  type WorkflowTarget,
} from '../outbox/workflow-starter.js';
import { monotonicMs } from '../platform/clock.js';

/** None by default; a call that timed out may have happened and is repeated under the same id. */
const CALL_DEADLINE_MS = 2_000;

export const SEARCH_PROVIDER = defineSearchAttributeKey('provider', SearchAttributeType.KEYWORD);
export const SEARCH_TENANT = defineSearchAttributeKey('tenant', SearchAttributeType.KEYWORD);

type StartOptions = WorkflowStartOptions & { args: [ExecutePaymentInput] };

/** Starts, wakes and cancels workflows at Temporal. Start options come from here alone. */
export class TemporalWorkflowStarter implements WorkflowStarter {
  constructor(private readonly client: Client) {}

  async start(target: WorkflowTarget): Promise<void> {
    const options = startOptions(target);
    const delayMs = Math.floor(options.args[0].armInMs);
    try {
      await this.call(() =>
        this.client.workflow.start(
          EXECUTE_PAYMENT,
          delayMs > 0 ? { ...options, startDelay: delayMs } : options,
        ),
      );
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }

  async cancel(target: WorkflowTarget): Promise<void> {
    await this.signalWithStart(target, CANCEL_SIGNAL, []);
  }

  async wake(target: WorkflowTarget, news: Wake): Promise<'woken' | 'completed'> {
    return this.signalWithStart(target, WAKE_SIGNAL, newsOf(target, news));
  }

  async wakeExisting(paymentId: string): Promise<void> {
    try {
      await this.call(() => this.client.workflow.getHandle(paymentId).signal(WAKE_SIGNAL));
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }

  async restart(target: WorkflowTarget): Promise<void> {
    try {
      await this.call(() =>
        this.client.workflow.start(EXECUTE_PAYMENT, {
          ...startOptions(target),
          workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        }),
      );
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }

  async namespaceId(): Promise<string> {
    const { namespaceInfo } = await this.call(() =>
      this.client.workflowService.describeNamespace({ namespace: this.client.options.namespace }),
    );
    const id = namespaceInfo?.id;
    if (!id) throw new OrchestratorUnavailable('the namespace has no id');
    return id;
  }

  private async signalWithStart(
    target: WorkflowTarget,
    signal: string,
    signalArgs: readonly WakeNews[],
  ): Promise<'woken' | 'completed'> {
    const options: WorkflowSignalWithStartOptions<WakeNews[]> = {
      ...startOptions(target),
      signal,
      signalArgs: [...signalArgs],
    };
    try {
      await this.call(() => this.client.workflow.signalWithStart(EXECUTE_PAYMENT, options));
      return 'woken';
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return 'completed';
      throw error;
    }
  }

  private async call<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await this.client.withDeadline(Date.now() + CALL_DEADLINE_MS, run);
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError || error instanceof WorkflowNotFoundError)
        throw error;
      throw new OrchestratorUnavailable('Temporal did not do what was asked', { cause: error });
    }
  }
}

/** Durations as they stand now; whole milliseconds. */
function inputOf(target: WorkflowTarget): ExecutePaymentInput {
  const passedMs = monotonicMs() - target.readAtMs;
  return {
    paymentId: target.paymentId,
    lane: target.lane,
    version: target.version,
    dueInMs: Math.ceil(target.dueInMs - passedMs),
    armInMs: Math.ceil(target.armInMs - passedMs),
  };
}

function newsOf(target: WorkflowTarget, news: Wake): readonly WakeNews[] {
  if (news === 'look') return [];
  const { version, dueInMs, armInMs } = inputOf(target);
  return [{ version, dueInMs, armInMs }];
}

/**
 * A run that exists is joined; a terminated or failed one is replaced; a completed one is not,
 * since the unique key in Postgres is the guard and the id only keeps two runs from living at once.
 */
function startOptions(target: WorkflowTarget): StartOptions {
  return {
    workflowId: target.paymentId,
    taskQueue: TASK_QUEUE,
    args: [inputOf(target)],
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
    staticSummary: `Payment by ${target.provider}`,
    typedSearchAttributes: [
      { key: SEARCH_PROVIDER, value: target.provider },
      { key: SEARCH_TENANT, value: target.tenantPseudonym },
    ],
  };
}
