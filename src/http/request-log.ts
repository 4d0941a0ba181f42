import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isPaymentId } from '../domain/payment-id.js';
import { httpRequestSeconds } from '../metrics/metrics.js';
import type { Log } from '../platform/logger.js';

/** What stands for the pattern of a request that fits no route: its path is the client's text. */
const UNROUTED = 'unrouted';

/**
 * One log line and one observation per request, when its answer has gone out or its connection
 * broke. A hook and no middleware: it sees every request, also those that were refused before a
 * handler, and costs no second pass over the request.
 */
export function installRequestLog(server: FastifyInstance, log: Log): void {
  server.addHook('onResponse', (request, reply, done) => {
    const route = request.is404 ? UNROUTED : (request.routeOptions.url ?? UNROUTED);
    httpRequestSeconds.observe(
      { route, method: request.method, code: String(reply.statusCode) },
      reply.elapsedTime / 1_000,
    );
    const failed = reply.statusCode >= 500;
    log[failed ? 'error' : 'info'](
      {
        request_id: request.id,
        operation: `${request.method} ${route}`,
        payment_id: paymentIdOf(request, reply),
        tenant_ref: request.principal?.tenantRef,
        code: reply.statusCode,
        duration_ms: reply.elapsedTime,
      },
      failed ? 'request_failed' : 'request_done',
    );
    done();
  });
}

/** From the path, or from the Location of a payment that was just made. */
function paymentIdOf(request: FastifyRequest, reply: FastifyReply): string | undefined {
  const fromPath = (request.params as { readonly id?: unknown } | null)?.id;
  if (typeof fromPath === 'string') return isPaymentId(fromPath) ? fromPath : undefined;
  const location = reply.getHeader('location');
  return typeof location === 'string' ? location.slice(location.lastIndexOf('/') + 1) : undefined;
}
