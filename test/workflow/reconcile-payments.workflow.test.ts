import type { Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReconciliationActivities } from '../../activities/reconciliation.activities.js';
import { ensureReconciliationSchedule } from '../../src/orchestration/reconciliation-schedule.js';
import { StorageUnavailable } from '../../src/persistence/database-errors.js';
import { RECONCILE_PAYMENTS, TASK_QUEUE } from '../../workflows/contract.js';
import { startDevServerRig, type DevServerRig } from '../support/dev-server.js';
import { workflowBundle } from '../support/workflow-bundle.js';

const QUEUE = 'reconcile-test';
const NOTHING = { rejudged: 0, settled: 0, returned: 0, contradicted: 0, waiting: 0, failed: 0 };

// The time-skipping server has no schedules.
let rig: DevServerRig;
let native: NativeConnection;
beforeAll(async () => {
  rig = await startDevServerRig();
  const { address } = (rig.client.connection as Connection).options;
  native = await NativeConnection.connect(address === undefined ? {} : { address });
});
afterAll(async () => {
  await native.close();
  await rig.close();
});

/** Runs the workflow once, its services faked, in a worker of its own. */
async function reconcile(services: Parameters<typeof createReconciliationActivities>[0]) {
  const faults: string[] = [];
  const worker = await Worker.create({
    connection: native,
    taskQueue: QUEUE,
    workflowBundle: await workflowBundle(),
    activities: createReconciliationActivities(services, (operation) => void faults.push(operation)),
  });
  const workflowId = `reconcile-${Math.random()}`;
  const result = await worker.runUntil(() =>
    rig.client.workflow.execute(RECONCILE_PAYMENTS, { workflowId, taskQueue: QUEUE, args: [] }),
  );
  return { result: result as unknown, faults };
}

describe('reconcilePayments', () => {
  it('does what settlement lines wait for, then wakes overdue inquiries, and answers with counts alone', async () => {
    const order: string[] = [];
    const { result, faults } = await reconcile({
      followUpSettlement: async () => {
        order.push('settlement');
        return { ...NOTHING, settled: 3 };
      },
      wakeOverdue: async () => {
        order.push('overdue');
        return { woken: 2 };
      },
    });
    expect(order).toEqual(['settlement', 'overdue']);
    expect(result).toEqual({ ...NOTHING, settled: 3, woken: 2 });
    expect(faults).toEqual([]);
  });

  it('outlives a database that is away, and tells of it', async () => {
    let tries = 0;
    const { result, faults } = await reconcile({
      followUpSettlement: async () => {
        if (++tries < 3) throw new StorageUnavailable('away');
        return NOTHING;
      },
      wakeOverdue: async () => ({ woken: 0 }),
    });
    expect(result).toEqual({ ...NOTHING, woken: 0 });
    expect(faults).toEqual(['reconcile', 'reconcile']);
  });
});

describe('the schedule of reconciliation', () => {
  it('exists once however often it is ensured, every hour, and never overlaps itself', async () => {
    await Promise.all([ensureReconciliationSchedule(rig.client), ensureReconciliationSchedule(rig.client)]);
    await ensureReconciliationSchedule(rig.client);
    const { spec, policies, action } = await rig.client.schedule.getHandle('reconcile-payments').describe();
    expect(spec.intervals?.map((each) => Number(each.every))).toEqual([3_600_000]);
    expect(policies.overlap).toBe('SKIP');
    expect(action).toMatchObject({ workflowType: RECONCILE_PAYMENTS, taskQueue: TASK_QUEUE });
  });
});
