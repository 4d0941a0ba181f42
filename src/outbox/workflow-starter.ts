/** What it takes to start, wake or cancel a payment's workflow. Durations from `readAtMs` on. */
export interface WorkflowTarget {
  readonly paymentId: string;
  readonly lane: string;
  readonly provider: string;
  /** Stands for the tenant in the Web UI. */
  readonly tenantPseudonym: string;
  readonly version: number;
  /** Milliseconds until the due time, on the database's clock; may be negative. */
  readonly dueInMs: number;
  /** Milliseconds until the pair is to be armed; may be negative. */
  readonly armInMs: number;
  /** When the row was read, by this process's monotonic clock. */
  readonly readAtMs: number;
}

export type Wake = 'times' | 'look';

/**
 * The port to the orchestrator. Every call has a deadline and may have happened although it
 * failed; every call may be repeated. Faults are thrown as OrchestratorUnavailable.
 */
export interface WorkflowStarter {
  /** Starts with a delay until the arm time; a run that exists is success. */
  start(target: WorkflowTarget): Promise<void>;
  /** Signals by signal-with-start, which also ends a start delay. */
  cancel(target: WorkflowTarget): Promise<void>;
  /**
   * Wakes by signal-with-start. times: the workflow gets the new ones; look: it reads the row.
   * @returns completed when the payment's last run has completed, so that nothing was woken.
   */
  wake(target: WorkflowTarget, news: Wake): Promise<'woken' | 'completed'>;
  /** Wakes a run that exists, by plain signal; none: nothing. */
  wakeExisting(paymentId: string): Promise<void>;
  /** Starts although a completed run exists: only for a payment that is not final. */
  restart(target: WorkflowTarget): Promise<void>;
  /** Changes when the orchestrator lost its data. */
  namespaceId(): Promise<string>;
}

/** The orchestrator did not answer in time or cannot be reached. Nothing about the payment is known from it. */
export class OrchestratorUnavailable extends Error {
  override readonly name = 'OrchestratorUnavailable';
}
