import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import { describe, expect, it } from 'vitest';
import { OrchestratorUnavailable, type WorkflowTarget } from '../../../src/outbox/workflow-starter.js';
import { TemporalWorkflowStarter } from '../../../src/orchestration/temporal-workflow-starter.js';
import { monotonicMs } from '../../../src/platform/clock.js';

type Call = {
  readonly name: string;
  readonly options: Record<string, unknown>;
  readonly inDeadline: boolean;
};

/** A client that notes its calls; `fails` throws in every one of them. */
function client(fails?: Error, namespace: unknown = { namespaceInfo: { id: 'n-1' } }) {
  const calls: Call[] = [];
  const deadlines: number[] = [];
  let inDeadline = false;
  const note = async (name: string, options: unknown): Promise<unknown> => {
    calls.push({ name, options: options as Record<string, unknown>, inDeadline });
    if (fails) throw fails;
    return namespace;
  };
  const fake = {
    options: { namespace: 'default' },
    workflow: {
      start: (_type: string, options: unknown) => note('start', options),
      signalWithStart: (_type: string, options: unknown) => note('signalWithStart', options),
      getHandle: (id: string) => ({ signal: (signal: string) => note('signal', { id, signal }) }),
    },
    workflowService: { describeNamespace: (options: unknown) => note('describeNamespace', options) },
    withDeadline: async (deadline: number, run: () => Promise<unknown>) => {
      deadlines.push(deadline);
      inDeadline = true;
      return run().finally(() => (inDeadline = false));
    },
  };
  return { starter: new TemporalWorkflowStarter(fake as unknown as Client), calls, deadlines };
}

/** The options of the only call so far. */
function optionsOf(calls: readonly Call[]): Record<string, unknown> {
  expect(calls).toHaveLength(1);
  return calls[0]!.options;
}

function target(given: Partial<WorkflowTarget> = {}): WorkflowTarget {
  return {
    paymentId: 'pay_1',
    lane: 'simulated',
    provider: 'simulated',
    tenantPseudonym: 't-1',
    version: 4,
    dueInMs: 63_000.4,
    armInMs: 60_000.4,
    readAtMs: monotonicMs(),
    ...given,
  };
}

const alreadyStarted = new WorkflowExecutionAlreadyStartedError('started', 'pay_1', 'executePayment');
const notFound = new WorkflowNotFoundError('none', 'pay_1', undefined);
const fault = new Error('14 UNAVAILABLE');

const COMMANDS = {
  start: (starter: TemporalWorkflowStarter) => starter.start(target()),
  restart: (starter: TemporalWorkflowStarter) => starter.restart(target()),
  cancel: (starter: TemporalWorkflowStarter) => starter.cancel(target()),
  wake: (starter: TemporalWorkflowStarter) => starter.wake(target(), 'times'),
  wakeExisting: (starter: TemporalWorkflowStarter) => starter.wakeExisting('pay_1'),
  namespaceId: (starter: TemporalWorkflowStarter) => starter.namespaceId(),
} as const;

describe('every call', () => {
  it.each(Object.entries(COMMANDS))('has a deadline: %s', async (_name, command) => {
    const { starter, calls, deadlines } = client();
    await command(starter);
    expect(calls.map((call) => call.inDeadline)).toEqual([true]);
    expect(deadlines).toHaveLength(1);
  });

  it.each(Object.entries(COMMANDS))(
    'tells a fault as OrchestratorUnavailable with its cause: %s',
    async (_, command) => {
      const { starter } = client(fault);
      const thrown = await Promise.resolve(command(starter)).catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(OrchestratorUnavailable);
      expect((thrown as Error).cause).toBe(fault);
    },
  );
});

describe('start', () => {
  it('delays until the arm time in whole ms, joins a run that lives, replaces only a failed one', async () => {
    const { starter, calls } = client();
    await starter.start(target());
    const options = optionsOf(calls);
    expect(options).toMatchObject({
      workflowId: 'pay_1',
      taskQueue: 'payments',
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
    });
    expect(Number.isInteger(options['startDelay'])).toBe(true);
    expect(options).not.toHaveProperty('workflowRunTimeout');
    expect(options).not.toHaveProperty('workflowExecutionTimeout');
  });

  it.each([0, -1, -3_000, 0.4])('has no delay when the arm time is %s ms away', async (armInMs) => {
    const { starter, calls } = client();
    await starter.start(target({ armInMs, readAtMs: monotonicMs() - 1 }));
    expect(optionsOf(calls)).not.toHaveProperty('startDelay');
  });

  it('counts its durations from when the row was read', async () => {
    const { starter, calls } = client();
    await starter.start(target({ readAtMs: monotonicMs() - 10_000 }));
    const [input] = optionsOf(calls)['args'] as [Record<string, number>];
    expect(input['dueInMs']).toBeLessThanOrEqual(53_001);
    expect(input['armInMs']).toBeLessThanOrEqual(50_001);
    expect(optionsOf(calls)['startDelay']).toBe(input['armInMs']);
    for (const name of ['dueInMs', 'armInMs', 'version']) expect(Number.isInteger(input[name])).toBe(true);
  });

  it('hands over ids, lane, version and durations, whatever else the row held (TP-03)', async () => {
    const { starter, calls } = client();
    await starter.start({ ...target(), destination: 'GB29', amount: 1n } as WorkflowTarget);
    const [input] = optionsOf(calls)['args'] as [object];
    expect(Object.keys(input).sort()).toEqual(['armInMs', 'dueInMs', 'lane', 'paymentId', 'version']);
    expect(Object.keys(optionsOf(calls) ?? {})).not.toContain('memo');
  });

  it('is done when the run exists already', async () => {
    const { starter } = client(alreadyStarted);
    await expect(starter.start(target())).resolves.toBeUndefined();
  });
});

describe('restart', () => {
  it('starts at once, also beside a run that completed', async () => {
    const { starter, calls } = client();
    await starter.restart(target());
    expect(optionsOf(calls)).toMatchObject({
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    });
    expect(optionsOf(calls)).not.toHaveProperty('startDelay');
  });

  it('is done when another one was quicker', async () => {
    await expect(client(alreadyStarted).starter.restart(target())).resolves.toBeUndefined();
  });
});

describe('signals', () => {
  it('cancel goes by signal-with-start without delay, so that it ends a start delay', async () => {
    const { starter, calls } = client();
    await starter.cancel(target());
    expect(calls[0]).toMatchObject({
      name: 'signalWithStart',
      options: { signal: 'cancel', signalArgs: [] },
    });
    expect(optionsOf(calls)).toMatchObject({
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
    });
    expect(optionsOf(calls)).not.toHaveProperty('startDelay');
  });

  it('a wake with times carries version and durations, a look nothing', async () => {
    const { starter, calls } = client();
    expect(await starter.wake(target(), 'times')).toBe('woken');
    await starter.wake(target(), 'look');
    const [hint] = calls[0]!.options['signalArgs'] as [object];
    expect(Object.keys(hint).sort()).toEqual(['armInMs', 'dueInMs', 'version']);
    expect(calls[1]!.options['signalArgs']).toEqual([]);
  });

  it('say when the run has completed: wake answers it, cancel has nothing left to do', async () => {
    const { starter } = client(alreadyStarted);
    expect(await starter.wake(target(), 'look')).toBe('completed');
    await expect(starter.cancel(target())).resolves.toBeUndefined();
  });

  it('wakeExisting signals the run that lives, and none is no fault', async () => {
    const { starter, calls } = client();
    await starter.wakeExisting('pay_1');
    expect(calls[0]).toMatchObject({ name: 'signal', options: { id: 'pay_1', signal: 'wake' } });
    await expect(client(notFound).starter.wakeExisting('pay_1')).resolves.toBeUndefined();
  });
});

describe('the namespace', () => {
  it('is known by its id', async () => {
    expect(await client().starter.namespaceId()).toBe('n-1');
  });

  it.each([{}, { namespaceInfo: {} }, { namespaceInfo: { id: '' } }])(
    'without an id is a fault: %j',
    async (answer) => {
      await expect(client(undefined, answer).starter.namespaceId()).rejects.toBeInstanceOf(
        OrchestratorUnavailable,
      );
    },
  );
});
