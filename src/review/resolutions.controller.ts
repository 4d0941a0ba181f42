import { Body, Controller, HttpCode, Inject, Param, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { principalOf } from '../auth/authenticate.js';
import { NeedsScope } from '../auth/scopes.js';
import { DomainError } from '../domain/domain-error.js';
import type { PaymentId } from '../domain/payment-id.js';
import { entityTag, readIfMatch } from '../payments/entity-tag.js';
import { PaymentQueries } from '../payments/payment-query.service.js';
import { PaymentViews } from '../payments/payment-view.js';
import { NoMembers } from '../payments/schemas/no-members.schema.js';
import { PaymentIdParam } from '../payments/schemas/payment-id.schema.js';
import type { PaymentView } from '../payments/schemas/payment.schema.js';
import { LOG } from '../platform/tokens.js';
import type { Log } from '../platform/logger.js';
import type { Proposal } from './resolution.js';
import { Resolutions } from './resolution.service.js';
import { resolutionView } from './review-view.js';
import * as documented from './review.openapi.js';
import { ProposeResolution } from './schemas/propose-resolution.schema.js';
import { ResolutionIdParam } from './schemas/review-requests.schema.js';
import type { ResolutionView } from './schemas/review.schema.js';

/** Two people decide about one payment. */
@Controller('/v1/payments')
@documented.Controller()
export class ResolutionsController {
  constructor(
    @Inject(Resolutions) private readonly resolutions: Resolutions,
    @Inject(PaymentQueries) private readonly queries: PaymentQueries,
    @Inject(PaymentViews) private readonly views: PaymentViews,
    @Inject(LOG) private readonly log: Log,
  ) {}

  @Post(':id/resolutions')
  @HttpCode(202)
  @NeedsScope('payments:resolve')
  @documented.Propose()
  async proposeResolution(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) paymentId: PaymentId,
    @Body({ schema: ProposeResolution }) proposal: Proposal,
  ): Promise<ResolutionView> {
    const version = readIfMatch(request.headers['if-match']);
    if (version === null) throw new DomainError('if_match_required');
    const who = principalOf(request);
    const row = await this.resolutions.propose(who, { paymentId, version, proposal });
    this.tell(request, { payment_id: paymentId, version, code: row.outcome }, 'resolution_proposed');
    return resolutionView(row);
  }

  @Post(':id/resolutions/:rid/approve')
  @HttpCode(200)
  @NeedsScope('payments:resolve')
  @documented.Approve()
  async approveResolution(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) paymentId: PaymentId,
    @Param('rid', { schema: ResolutionIdParam }) resolutionId: string,
    @Body({ schema: NoMembers }) _none: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentView> {
    const who = principalOf(request);
    const expectedVersion = readIfMatch(request.headers['if-match']);
    await this.resolutions.approve(who, { paymentId, resolutionId, expectedVersion });
    const row = await this.queries.get(who.tenantId, paymentId);
    this.tell(
      request,
      { payment_id: paymentId, version: row.version, state: row.state },
      'resolution_approved',
    );
    reply.header('etag', entityTag(row.version));
    return this.views.of(row);
  }

  /** What people decide belongs into the security log; who they are stands in the history. */
  private tell(
    request: FastifyRequest,
    fields: Readonly<Record<string, string | number>>,
    event: 'resolution_proposed' | 'resolution_approved',
  ): void {
    const { tenantRef } = principalOf(request);
    this.log.info({ request_id: request.id, tenant_ref: tenantRef, ...fields }, event);
  }
}
