import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiParts } from './api.module.js';
import { admissionLimitsFor, AdmissionQueue, type Urgency } from './http/admission-queue.js';
import { ConnectionGate } from './http/connection-gate.js';
import { EventLoopLag } from './http/event-loop-lag.js';
import { shedOverload } from './http/shed-overload.js';
import { shedTotal } from './metrics/metrics.js';

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
