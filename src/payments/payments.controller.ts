import { Body, Controller, Get, HttpCode, Inject, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { principalOf } from '../auth/authenticate.js';
import { NeedsScope } from '../auth/scopes.js';
import { DomainError } from '../domain/domain-error.js';
import { parseIdempotencyKey, type IdempotencyKey } from '../domain/idempotency-key.js';
import type { PaymentId } from '../domain/payment-id.js';
import { entityTag, isNoneMatch, readIfMatch } from './entity-tag.js';
import { PaymentIntake } from './payment-intake.service.js';
import { PaymentLifecycle, type CommandTarget } from './payment-lifecycle.service.js';
import { PaymentQueries } from './payment-query.service.js';
import { historyEntryView, PaymentViews } from './payment-view.js';
import type { PaymentRow } from './payment.store.js';
import * as documented from './payments.openapi.js';
import { NoMembers } from './schemas/no-members.schema.js';
import { CreatePayment, type CreatePaymentCommand } from './schemas/create-payment.schema.js';
import { ListPayments, type ListPaymentsQuery } from './schemas/list-payments.schema.js';
import { PaymentIdParam } from './schemas/payment-id.schema.js';
import type { PaymentHistoryView, PaymentListView, PaymentView } from './schemas/payment.schema.js';
import { ReschedulePayment, type ReschedulePaymentCommand } from './schemas/reschedule-payment.schema.js';

const PATH = '/v1/payments';

/** Reads requests and writes answers; every decision is made in the services. */
@Controller(PATH)
@documented.Controller()
export class PaymentsController {
  constructor(
    @Inject(PaymentIntake) private readonly intake: PaymentIntake,
    @Inject(PaymentLifecycle) private readonly lifecycle: PaymentLifecycle,
    @Inject(PaymentQueries) private readonly queries: PaymentQueries,
    @Inject(PaymentViews) private readonly views: PaymentViews,
  ) {}

  @Post()
  @NeedsScope('payments:create')
  @documented.Create()
  async create(
    @Req() request: FastifyRequest,
    @Body({ schema: CreatePayment }) command: CreatePaymentCommand,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentView> {
    const { tenantId, actor } = principalOf(request);
    const key = readIdempotencyKey(request);
    const { kind, row } = await this.intake.create({ tenantId, actor, key, command });
    reply.code(kind === 'created' ? 201 : 200).header('location', `${PATH}/${row.id}`);
    if (kind === 'replayed') reply.header('idempotency-replayed', 'true');
    return this.answer(row, reply);
  }

  @Get()
  @NeedsScope('payments:read')
  @documented.List()
  async list(
    @Req() request: FastifyRequest,
    @Query({ schema: ListPayments }) query: ListPaymentsQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentListView> {
    const { rows, nextCursor } = await this.queries.list(principalOf(request).tenantId, query);
    if (nextCursor !== null) reply.header('link', nextLink(request, nextCursor));
    const data = await Promise.all(rows.map((row) => this.views.of(row)));
    return { data, next_cursor: nextCursor };
  }

  @Get(':id')
  @NeedsScope('payments:read')
  @documented.Read()
  async read(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) id: PaymentId,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentView | undefined> {
    const row = await this.queries.get(principalOf(request).tenantId, id);
    if (!isNoneMatch(request.headers['if-none-match'], row.version)) return this.answer(row, reply);
    reply.code(304).header('etag', entityTag(row.version));
    return undefined;
  }

  @Get(':id/history')
  @NeedsScope('payments:read')
  @documented.History()
  async history(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) id: PaymentId,
  ): Promise<PaymentHistoryView> {
    const { entries, hasMore } = await this.queries.history(principalOf(request).tenantId, id);
    return { payment_id: id, data: entries.map(historyEntryView), has_more: hasMore };
  }

  @Post(':id/cancel')
  @HttpCode(200)
  @NeedsScope('payments:cancel')
  @documented.Cancel()
  async cancel(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) id: PaymentId,
    @Body({ schema: NoMembers }) _none: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentView> {
    return this.answer(await this.lifecycle.cancel(targetOf(request, id)), reply);
  }

  @Post(':id/reschedule')
  @HttpCode(200)
  @NeedsScope('payments:update')
  @documented.Reschedule()
  async reschedule(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) id: PaymentId,
    @Body({ schema: ReschedulePayment }) times: ReschedulePaymentCommand,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentView> {
    const target = targetOf(request, id);
    const { expectedVersion } = target;
    if (expectedVersion === null) throw new DomainError('if_match_required');
    return this.answer(await this.lifecycle.reschedule({ ...target, expectedVersion }, times), reply);
  }

  @Post(':id/hold')
  @HttpCode(200)
  @NeedsScope('payments:operate')
  @documented.Hold()
  async hold(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) id: PaymentId,
    @Body({ schema: NoMembers }) _none: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentView> {
    return this.answer(await this.lifecycle.hold(targetOf(request, id)), reply);
  }

  @Post(':id/release')
  @HttpCode(200)
  @NeedsScope('payments:operate')
  @documented.Release()
  async release(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) id: PaymentId,
    @Body({ schema: NoMembers }) _none: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentView> {
    return this.answer(await this.lifecycle.release(targetOf(request, id)), reply);
  }

  @Post(':id/escalate')
  @HttpCode(200)
  @NeedsScope('payments:operate')
  @documented.Escalate()
  async escalate(
    @Req() request: FastifyRequest,
    @Param('id', { schema: PaymentIdParam }) id: PaymentId,
    @Body({ schema: NoMembers }) _none: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PaymentView> {
    return this.answer(await this.lifecycle.escalate(targetOf(request, id)), reply);
  }

  private answer(row: PaymentRow, reply: FastifyReply): Promise<PaymentView> {
    reply.header('etag', entityTag(row.version));
    return this.views.of(row);
  }
}

function targetOf(request: FastifyRequest, paymentId: PaymentId): CommandTarget {
  const { tenantId, actor } = principalOf(request);
  return { tenantId, actor, paymentId, expectedVersion: readIfMatch(request.headers['if-match']) };
}

/** Node joins equal headers to one text, which would hide a second key: the lines are read apart. */
function readIdempotencyKey(request: FastifyRequest): IdempotencyKey {
  const parsed = parseIdempotencyKey(request.raw.headersDistinct['idempotency-key'] ?? []);
  if (parsed.kind === 'missing') throw new DomainError('idempotency_key_missing');
  if (parsed.kind === 'invalid') throw new DomainError('idempotency_key_invalid');
  return parsed.key;
}

/** The same list below the cursor (RFC 8288). */
function nextLink(request: FastifyRequest, cursor: string): string {
  const query = new URLSearchParams(request.query as Record<string, string>);
  query.set('cursor', cursor);
  return `<${PATH}?${query.toString()}>; rel="next"`;
}
