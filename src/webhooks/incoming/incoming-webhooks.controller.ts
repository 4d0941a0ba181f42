import { Body, Controller, HttpCode, Inject, Param, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { SignedByProvider } from '../../auth/scopes.js';
import * as documented from './incoming-webhooks.openapi.js';
import { ReceiveWebhook } from './receive-webhook.service.js';

const NOTHING = Buffer.alloc(0);

/** Hands on the bytes as they came: nothing of them was parsed. */
@Controller('/v1/webhooks')
@documented.Controller()
export class IncomingWebhooksController {
  constructor(@Inject(ReceiveWebhook) private readonly webhooks: ReceiveWebhook) {}

  @Post(':provider')
  @HttpCode(204)
  @SignedByProvider()
  @documented.Receive()
  async receive(
    @Param('provider') provider: string,
    @Body() raw: Buffer | undefined,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    await this.webhooks.receive(provider, raw ?? NOTHING, request.headers);
  }
}
