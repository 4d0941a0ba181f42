import * as metrics from '../metrics/metrics.js';
import { createFaultLog } from '../platform/fault-log.js';
import type { Log } from '../platform/logger.js';
import type { RelayEvents } from '../outbox/outbox-relay.js';
import { SKEW_ALARM_MS } from '../submission/database-clock.js';
import type { SubmissionEvents } from '../submission/submission-events.js';

/** Turns what the worker and the relay tell into metrics and log lines. Never throws, never waits. */
export function createWorkerEvents(log: Log): SubmissionEvents & RelayEvents {
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
    fault: createFaultLog(log),
  };
}
