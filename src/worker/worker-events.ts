import * as metrics from '../metrics/metrics.js';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../persistence/database-errors.js';
import type { Log } from '../platform/logger.js';
import { OrchestratorUnavailable } from '../outbox/workflow-starter.js';
import type { RelayEvents } from '../outbox/outbox-relay.js';
import { SKEW_ALARM_MS } from '../submission/database-clock.js';
import type { SubmissionEvents } from '../submission/submission-events.js';

/** A dependency is away: the log says so once in this time for each operation, not for each payment. */
const SAME_FAULT_MS = 5_000;

/** Turns what the worker and the relay tell into metrics and log lines. Never throws, never waits. */
export function createWorkerEvents(log: Log): SubmissionEvents & RelayEvents {
  const lastFault = new Map<string, number>();
  return {
    moved: ({ from, to, cause, count = 1 }) => {
      if (count > 0) metrics.transitionsTotal.add({ from, to, cause }, count);
    },
    gateLost: (cause) => metrics.gateLostTotal.add({ cause }),
    callStarted: (latenessMs) => metrics.latenessSeconds.observe({}, latenessMs / 1_000),
    callEnded: ({ provider, operation, evidence, durationMs }) =>
      metrics.providerSeconds.observe(
        { provider, operation, evidence: operation === 'lookup' ? 'none' : evidence },
        durationMs / 1_000,
      ),
    earlyRefusal: () => metrics.earlyRefusalsTotal.add({}),
    prepareFailed: (paymentId, code) => log.error({ payment_id: paymentId, code }, 'prepare_failed'),
    leaseLost: () => {
      metrics.leaseLostTotal.add({});
      log.warn({}, 'lease_lost');
    },
    lateAnswer: (paymentId) => log.warn({ payment_id: paymentId }, 'late_answer_filed'),
    contradiction: (paymentId) => {
      metrics.contradictionsTotal.add({ source: 'answer' });
      log.error({ payment_id: paymentId }, 'contradiction');
    },
    woken: (count) => metrics.sweepWokenTotal.add({}, count),
    restarted: (count) => {
      metrics.sweepRestartedTotal.add({}, count);
      if (count > 0) log.warn({}, 'workflows_restarted');
    },
    skew: (skewMs) => {
      metrics.clockSkewSeconds.set({ pair: 'process_database' }, skewMs / 1_000);
      if (Math.abs(skewMs) > SKEW_ALARM_MS) log.error({ duration_ms: Math.round(skewMs) }, 'clock_skew');
    },
    published: () => undefined,
    fault: (operation, error) => {
      const away =
        error instanceof StorageUnavailable ||
        error instanceof OutcomeUnknown ||
        error instanceof LockTimeout ||
        error instanceof OrchestratorUnavailable;
      const now = Date.now();
      if (away && now - (lastFault.get(operation) ?? 0) < SAME_FAULT_MS) return;
      lastFault.set(operation, now);
      const line = { operation, code: error instanceof Error ? error.name : 'unknown', err: error };
      if (away) log.warn(line, 'dependency_away');
      else log.error(line, 'fault');
    },
  };
}
