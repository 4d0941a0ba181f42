import type { ReconciliationActivities, SettlementFollowedUp } from '../workflows/contract.js';
import { toFailure } from './failure-mapping.js';

/** The services behind the activities; each says what happens when it runs twice. */
export interface ReconciliationServices {
  followUpSettlement(): Promise<SettlementFollowedUp>;
  wakeOverdue(): Promise<{ readonly woken: number }>;
}

/**
 * The activities of `reconcilePayments`: thin, and the only place where their faults become Temporal's.
 * @param onFault told of every fault before it is translated, for log and metrics.
 */
export function createReconciliationActivities(
  services: ReconciliationServices,
  onFault: (operation: string, error: unknown) => void,
): ReconciliationActivities {
  const guarded =
    <Out>(run: () => Promise<Out>) =>
    async (): Promise<Out> => {
      try {
        return await run();
      } catch (error) {
        onFault('reconcile', error);
        throw toFailure(error);
      }
    };
  return {
    followUpSettlement: guarded(() => services.followUpSettlement()),
    wakeOverdue: guarded(() => services.wakeOverdue()),
  };
}
