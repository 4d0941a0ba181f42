import { ScheduleAlreadyRunning, ScheduleOverlapPolicy, type Client } from '@temporalio/client';
import { RECONCILE_PAYMENTS, TASK_QUEUE } from '../../workflows/contract.js';
import { OrchestratorUnavailable } from '../outbox/workflow-starter.js';

const SCHEDULE_ID = 'reconcile-payments';
/** Often enough that a line which waited for its payment does not wait for a day. */
const EVERY = '1 hour';
const CALL_DEADLINE_MS = 5_000;

/**
 * Sees to it that reconciliation runs every hour; one that still runs is not started twice.
 * @throws OrchestratorUnavailable. Twice, and from several workers: one schedule.
 */
export async function ensureReconciliationSchedule(client: Client): Promise<void> {
  try {
    await client.withDeadline(Date.now() + CALL_DEADLINE_MS, () =>
      client.schedule.create({
        scheduleId: SCHEDULE_ID,
        spec: { intervals: [{ every: EVERY }] },
        action: {
          type: 'startWorkflow',
          workflowType: RECONCILE_PAYMENTS,
          workflowId: SCHEDULE_ID,
          taskQueue: TASK_QUEUE,
          args: [],
        },
        policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: EVERY },
      }),
    );
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return;
    throw new OrchestratorUnavailable('Temporal did not take the schedule of reconciliation', {
      cause: error,
    });
  }
}
