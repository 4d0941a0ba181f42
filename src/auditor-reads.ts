import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiParts } from './api.module.js';
import { recordAudit } from './audit/audit-log.js';
import { isPaymentId } from './domain/payment-id.js';

/**
 * Writes down each look of an auditor before it is answered: what cannot be written down is not shown.
 * Call it after the hooks that authenticate and limit.
 */
export function recordAuditorReads(server: FastifyInstance, { database }: Pick<ApiParts, 'database'>): void {
  server.addHook('preHandler', async (request) => {
    const { principal } = request;
    if (principal === null || !principal.isAuditor || !isRead(request)) return;
    const { tenantId, actor } = principal;
    const { url = '' } = request.routeOptions;
    await recordAudit(database.ofTenant(tenantId), {
      tenantId,
      actor,
      action: 'auditor_read',
      target: paymentOf(request) ?? url.slice(1),
      detail: { route: `GET:${url}`, request_id: request.id },
    });
  });
}

function isRead(request: FastifyRequest): boolean {
  const { access } = request.routeOptions.config;
  return access?.kind === 'scope' && access.scope === 'payments:read';
}

function paymentOf(request: FastifyRequest): string | null {
  const { id, payment_id: ofReview } = (request.params ?? {}) as { readonly id?: unknown; readonly payment_id?: unknown }; // prettier-ignore
  const named = id ?? ofReview;
  return typeof named === 'string' && isPaymentId(named) ? named : null;
}
