import { Body, Controller, Get, HttpCode, Inject, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { principalOf } from '../auth/authenticate.js';
import { NeedsScope } from '../auth/scopes.js';
import type { PaymentId } from '../domain/payment-id.js';
import { NoMembers } from '../payments/schemas/no-members.schema.js';
import { PaymentIdParam } from '../payments/schemas/payment-id.schema.js';
import { reviewDetailView, reviewView } from './review-view.js';
import { Reviews } from './review.service.js';
import * as documented from './review.openapi.js';
import {
  CloseReview,
  ListReviews,
  type CloseReviewCommand,
  type ListReviewsQuery,
} from './schemas/review-requests.schema.js';
import type { ReviewDetailView, ReviewListView } from './schemas/review.schema.js';

/** What people look into, and who does. Decisions about a payment stand beside the payment. */
@Controller('/v1/reviews')
@documented.Controller()
export class ReviewsController {
  constructor(@Inject(Reviews) private readonly reviews: Reviews) {}

  @Get()
  @NeedsScope('payments:read')
  @documented.List()
  async listReviews(
    @Req() request: FastifyRequest,
    @Query({ schema: ListReviews }) query: ListReviewsQuery,
  ): Promise<ReviewListView> {
    const { rows, nextCursor } = await this.reviews.list(principalOf(request).tenantId, query);
    return { data: rows.map(reviewView), next_cursor: nextCursor };
  }

  @Get(':payment_id')
  @NeedsScope('payments:read')
  @documented.Read()
  async readReview(
    @Req() request: FastifyRequest,
    @Param('payment_id', { schema: PaymentIdParam }) id: PaymentId,
  ): Promise<ReviewDetailView> {
    return reviewDetailView(await this.reviews.get(principalOf(request).tenantId, id));
  }

  @Post(':payment_id/own')
  @HttpCode(200)
  @NeedsScope('payments:resolve')
  @documented.Own()
  async ownReview(
    @Req() request: FastifyRequest,
    @Param('payment_id', { schema: PaymentIdParam }) id: PaymentId,
    @Body({ schema: NoMembers }) _none: unknown,
  ): Promise<ReviewDetailView> {
    const { tenantId, actor } = principalOf(request);
    return reviewDetailView(await this.reviews.own(tenantId, id, actor));
  }

  @Post(':payment_id/close')
  @HttpCode(200)
  @NeedsScope('payments:resolve')
  @documented.Close()
  async closeReview(
    @Req() request: FastifyRequest,
    @Param('payment_id', { schema: PaymentIdParam }) id: PaymentId,
    @Body({ schema: CloseReview }) { reason }: CloseReviewCommand,
  ): Promise<ReviewDetailView> {
    const { tenantId, actor } = principalOf(request);
    return reviewDetailView(await this.reviews.close(tenantId, { paymentId: id, actor, reason }));
  }
}
