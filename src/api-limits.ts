import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiParts } from './api.module.js';
import { admissionLimitsFor, AdmissionQueue, type Urgency } from './http/admission-queue.js';
import { ConnectionGate } from './http/connection-gate.js';
import { EventLoopLag } from './http/event-loop-lag.js';
import { shedOverload } from './http/shed-overload.js';
import { rateLimitAloneTotal, rateLimitedTotal, shedTotal } from './metrics/metrics.js';
import { monotonicMs } from './platform/clock.js';
import { leaseTokens } from './rate-limits/lease.store.js';
import { limitRequests } from './rate-limits/limit-requests.js';
import { RateLimiter } from './rate-limits/rate-limiter.js';

/** What one payment is read by; a list or a history reads many rows. */
const READS_ONE = /\/:[a-z_]+$/;

function isCancel(request: FastifyRequest): boolean {
  const { access } = request.routeOptions.config;
  return access?.kind === 'scope' && access.scope === 'payments:cancel';
}

function urgencyOf(request: FastifyRequest): Urgency {
  if (isCancel(request)) return 'cancel';
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  return isRead && READS_ONE.test(request.routeOptions.url ?? '') ? 'read' : 'work';
}

/**
 * Shares the connections of this process out by urgency, and turns away what could not be begun soon.
 * Call it before every other hook.
 */
export function shedApiOverload(
  server: FastifyInstance,
  { config, database }: Pick<ApiParts, 'config' | 'database'>,
): void {
  const queue = new AdmissionQueue(admissionLimitsFor(config.database.poolSize));
  const waitedTooLong = (urgency: Urgency): void => shedTotal.add({ cause: 'waited_too_long', urgency });
  database.useGate(new ConnectionGate(queue, waitedTooLong));
  const lag = new EventLoopLag();
  lag.start();
  server.addHook('onClose', async () => lag.stop());
  shedOverload(server, {
    queue,
    lag,
    urgencyOf,
    shed: (cause, urgency) => shedTotal.add({ cause, urgency }),
  });
}

/** Counts the requests of every credential and tenant. Call it after the hook that authenticates. */
export function limitApiRequests(server: FastifyInstance, { config, database, log }: ApiParts): void {
  const { rateLimits } = config.edge;
  if (rateLimits === null) return;
  const limiter = new RateLimiter({
    lease: (request) => leaseTokens(database.ofTenant(request.tenantId), request),
    byDefault: rateLimits,
    nowMs: monotonicMs,
    events: {
      alone: (name, error) => {
        rateLimitAloneTotal.add({});
        log.warn({ code: name, err: error }, 'rate_limit_alone');
      },
    },
  });
  limitRequests(server, {
    limiter,
    callerOf: ({ principal }) =>
      principal === null
        ? null
        : { tenantId: principal.tenantId, client: `${principal.kind}:${principal.subject}` },
    callOf: (request) => (isCancel(request) ? 'cancel' : 'request'),
    refused: (name, request) => {
      rateLimitedTotal.add({ limit: name });
      log.info(
        { request_id: request.id, tenant_ref: request.principal?.tenantRef, code: name },
        'rate_limited',
      );
    },
  });
}
