import { monotonicMs } from './clock.js';
import type { Log } from './logger.js';

/** A dependency is away: the log says so once in this time for each operation, not for each payment. */
const SAME_FAULT_MS = 5_000;
/** Names of the faults that say "a dependency is away", not "the code is wrong". */
const AWAY = new Set(['StorageUnavailable', 'OutcomeUnknown', 'LockTimeout', 'OrchestratorUnavailable']);

/** Logs faults of background work: outages seldom and as warnings, everything else each time. */
export function createFaultLog(log: Log): (operation: string, error: unknown) => void {
  const last = new Map<string, number>();
  return (operation, error) => {
    const code = error instanceof Error ? error.name : 'unknown';
    if (!AWAY.has(code)) return log.error({ operation, code, err: error }, 'fault');
    const now = monotonicMs();
    if (now - (last.get(operation) ?? -Infinity) < SAME_FAULT_MS) return;
    last.set(operation, now);
    log.warn({ operation, code, err: error }, 'dependency_away');
  };
}
