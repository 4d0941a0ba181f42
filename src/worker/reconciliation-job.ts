import * as metrics from '../metrics/metrics.js';
import { createFaultLog } from '../platform/fault-log.js';
import type { Log } from '../platform/logger.js';
import type { ReconciliationEvents } from '../reconciliation/reconciliation-events.js';

/** How soon a schedule that was lost with Temporal's data comes back. */
const ENSURE_EVERY_MS = 10 * 60_000;
const ENSURE_AGAIN_MS = 10_000;

/** Turns what reconciliation tells into metrics and log lines. Never throws, never waits. */
export function createReconciliationEvents(log: Log): ReconciliationEvents {
  return {
    moved: ({ from, to, cause }) => metrics.transitionsTotal.add({ from, to, cause }),
    // The metric is read from the tables, which also know what the command line found.
    contradiction: (paymentId) => log.error({ payment_id: paymentId, code: 'settlement' }, 'contradiction'),
    fault: createFaultLog(log),
  };
}

/**
 * Ensures the schedule of reconciliation now and every ten minutes, sooner while Temporal is away.
 * @returns a function that stops it.
 */
export function keepReconciliationScheduled(
  ensure: () => Promise<void>,
  onFault: (operation: string, error: unknown) => void,
): () => void {
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  const again = (afterMs: number): void => {
    if (stopped) return;
    timer = setTimeout(() => void run(), afterMs);
    timer.unref();
  };
  const run = async (): Promise<void> => {
    try {
      await ensure();
      again(ENSURE_EVERY_MS);
    } catch (error) {
      onFault('reconcile-schedule', error);
      again(ENSURE_AGAIN_MS);
    }
  };
  void run();
  return () => {
    stopped = true;
    if (timer) clearTimeout(timer);
  };
}
