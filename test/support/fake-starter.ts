import type { Wake, WorkflowStarter, WorkflowTarget } from '../../src/outbox/workflow-starter.js';

export interface StarterCall {
  readonly kind: 'start' | 'cancel' | 'wake' | 'wakeExisting' | 'restart';
  readonly paymentId: string;
  readonly target: WorkflowTarget | null;
  /** What a wake brings; null for every other call. */
  readonly news: Wake | null;
}

/** The orchestrator as relay and sweep see it: notes what it is asked, and fails when a test says so. */
export class FakeStarter implements WorkflowStarter {
  readonly calls: StarterCall[] = [];
  namespace = 'namespace-1';
  /** Payments whose last run has completed. */
  readonly completed = new Set<string>();
  /** Stands before each call: throws for an orchestrator that is away, waits for a slow one. */
  before: (kind: StarterCall['kind'] | 'namespaceId', paymentId: string) => Promise<void> = () =>
    Promise.resolve();

  async start(target: WorkflowTarget): Promise<void> {
    await this.note('start', target.paymentId, target);
  }

  async cancel(target: WorkflowTarget): Promise<void> {
    await this.note('cancel', target.paymentId, target);
  }

  async wake(target: WorkflowTarget, news: Wake): Promise<'woken' | 'completed'> {
    await this.note('wake', target.paymentId, target, news);
    return this.completed.has(target.paymentId) ? 'completed' : 'woken';
  }

  async wakeExisting(paymentId: string): Promise<void> {
    await this.note('wakeExisting', paymentId, null);
  }

  async restart(target: WorkflowTarget): Promise<void> {
    await this.note('restart', target.paymentId, target);
  }

  async namespaceId(): Promise<string> {
    await this.before('namespaceId', '');
    return this.namespace;
  }

  /** Payments of the calls of one kind, in order. */
  of(kind: StarterCall['kind']): readonly string[] {
    return this.calls.filter((call) => call.kind === kind).map((call) => call.paymentId);
  }

  private async note(
    kind: StarterCall['kind'],
    paymentId: string,
    target: WorkflowTarget | null,
    news: Wake | null = null,
  ): Promise<void> {
    await this.before(kind, paymentId);
    this.calls.push({ kind, paymentId, target, news });
  }
}
