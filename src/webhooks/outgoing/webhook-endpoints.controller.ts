import {
  Body,
  Controller,
  Delete,
  Get,
  HttpCode,
  Inject,
  Param,
  Post,
  Query,
  Req,
  Res,
} from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { principalOf } from '../../auth/authenticate.js';
import { NeedsScope } from '../../auth/scopes.js';
import {
  EventIdParam,
  ListDeliveries,
  ReplayEvents,
  type ListDeliveriesQuery,
  type ReplayEventsCommand,
  type WebhookDeliveryListView,
} from './schemas/webhook-delivery.schema.js';
import {
  CreateWebhookEndpoint,
  EndpointIdParam,
  RotateSecret,
  type CreateWebhookEndpointCommand,
  type RotateSecretCommand,
  type WebhookEndpointListView,
  type WebhookEndpointView,
  type WebhookEndpointWithSecretView,
} from './schemas/webhook-endpoint.schema.js';
import * as documented from './webhook-endpoints.openapi.js';
import { WebhookEndpoints, type EndpointTarget } from './webhook-endpoints.service.js';
import { NoMembers } from '../../payments/schemas/no-members.schema.js';

const PATH = '/v1/webhook-endpoints';

/** Reads requests and writes answers; every decision is made in the service. */
@Controller(PATH)
@documented.Controller()
export class WebhookEndpointsController {
  constructor(@Inject(WebhookEndpoints) private readonly endpoints: WebhookEndpoints) {}

  @Post()
  @NeedsScope('webhooks:manage')
  @documented.Create()
  async createEndpoint(
    @Req() request: FastifyRequest,
    @Body({ schema: CreateWebhookEndpoint }) command: CreateWebhookEndpointCommand,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<WebhookEndpointWithSecretView> {
    const made = await this.endpoints.create(principalOf(request), command);
    reply.header('location', `${PATH}/${made.id}`);
    return made;
  }

  @Get()
  @NeedsScope('webhooks:manage')
  @documented.List()
  async listEndpoints(@Req() request: FastifyRequest): Promise<WebhookEndpointListView> {
    return { data: [...(await this.endpoints.list(principalOf(request).tenantId))] };
  }

  @Get(':id')
  @NeedsScope('webhooks:manage')
  @documented.Read()
  async readEndpoint(
    @Req() request: FastifyRequest,
    @Param('id', { schema: EndpointIdParam }) id: string,
  ): Promise<WebhookEndpointView> {
    return this.endpoints.get(principalOf(request).tenantId, id);
  }

  @Post(':id/enable')
  @HttpCode(200)
  @NeedsScope('webhooks:manage')
  @documented.Enable()
  async enableEndpoint(
    @Req() request: FastifyRequest,
    @Param('id', { schema: EndpointIdParam }) id: string,
    @Body({ schema: NoMembers }) _none: unknown,
  ): Promise<WebhookEndpointView> {
    return this.endpoints.setStatus(targetOf(request, id), 'active');
  }

  @Post(':id/disable')
  @HttpCode(200)
  @NeedsScope('webhooks:manage')
  @documented.Disable()
  async disableEndpoint(
    @Req() request: FastifyRequest,
    @Param('id', { schema: EndpointIdParam }) id: string,
    @Body({ schema: NoMembers }) _none: unknown,
  ): Promise<WebhookEndpointView> {
    return this.endpoints.setStatus(targetOf(request, id), 'disabled');
  }

  @Post(':id/rotate-secret')
  @HttpCode(200)
  @NeedsScope('webhooks:manage')
  @documented.Rotate()
  async rotateEndpointSecret(
    @Req() request: FastifyRequest,
    @Param('id', { schema: EndpointIdParam }) id: string,
    @Body({ schema: RotateSecret }) command: RotateSecretCommand,
  ): Promise<WebhookEndpointWithSecretView> {
    return this.endpoints.rotate(targetOf(request, id), command);
  }

  @Delete(':id')
  @HttpCode(204)
  @NeedsScope('webhooks:manage')
  @documented.Remove()
  async removeEndpoint(
    @Req() request: FastifyRequest,
    @Param('id', { schema: EndpointIdParam }) id: string,
  ): Promise<void> {
    await this.endpoints.remove(targetOf(request, id));
  }

  @Get(':id/deliveries')
  @NeedsScope('webhooks:manage')
  @documented.Deliveries()
  async listDeliveries(
    @Req() request: FastifyRequest,
    @Param('id', { schema: EndpointIdParam }) id: string,
    @Query({ schema: ListDeliveries }) query: ListDeliveriesQuery,
  ): Promise<WebhookDeliveryListView> {
    return this.endpoints.deliveries(principalOf(request).tenantId, id, query);
  }

  @Post(':id/resend')
  @HttpCode(202)
  @NeedsScope('webhooks:manage')
  @documented.Replay()
  async resendEvents(
    @Req() request: FastifyRequest,
    @Param('id', { schema: EndpointIdParam }) id: string,
    @Body({ schema: ReplayEvents }) command: ReplayEventsCommand,
  ): Promise<WebhookEndpointView> {
    return this.endpoints.replay(targetOf(request, id), command);
  }

  @Post(':id/deliveries/:event/resend')
  @HttpCode(204)
  @NeedsScope('webhooks:manage')
  @documented.Resend()
  async resendEvent(
    @Req() request: FastifyRequest,
    @Param('id', { schema: EndpointIdParam }) id: string,
    @Param('event', { schema: EventIdParam }) event: string,
    @Body({ schema: NoMembers }) _none: unknown,
  ): Promise<void> {
    await this.endpoints.resend(targetOf(request, id), event);
  }
}

function targetOf(request: FastifyRequest, id: string): EndpointTarget {
  const { tenantId, actor } = principalOf(request);
  return { tenantId, actor, id };
}
