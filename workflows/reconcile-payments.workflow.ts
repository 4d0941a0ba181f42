import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import { RECONCILE } from './activity-policies.js';
import type { ReconciledPayments, ReconciliationActivities } from './contract.js';

const patient = proxyActivities<ReconciliationActivities>(RECONCILE);

/**
 * One scheduled run: what settlement lines wait for, then open outcomes that nobody asked after.
 * Files are imported by people, with `payments reconcile`; this goes on with what they left open.
 * @returns counts. Twice: the second finds nothing to do.
 */
export async function reconcilePayments(): Promise<ReconciledPayments> {
  setCurrentDetails('Settlement lines that wait');
  const settlement = await patient.followUpSettlement();
  setCurrentDetails('Overdue inquiries');
  const overdue = await patient.wakeOverdue();
  setCurrentDetails('Done');
  return { ...settlement, ...overdue };
}
