import { Module } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import { DestinationCipher } from '../../encryption/destination-cipher.js';
import { Database } from '../../persistence/database.js';
import { CONFIG } from '../../platform/tokens.js';
import { WebhookEndpointsController } from './webhook-endpoints.controller.js';
import { WebhookEndpoints } from './webhook-endpoints.service.js';

/** The HTTP side of clients' endpoints; the worker delivers. */
@Module({
  controllers: [WebhookEndpointsController],
  providers: [
    {
      provide: WebhookEndpoints,
      inject: [Database, DestinationCipher, CONFIG],
      useFactory: (database: Database, cipher: DestinationCipher, { webhookOut }: Config) =>
        new WebhookEndpoints({ database, cipher, policy: webhookOut }),
    },
  ],
})
export class OutgoingWebhooksModule {}
