import { Module } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import { DestinationCipher } from '../../encryption/destination-cipher.js';
import { Database } from '../../persistence/database.js';
import { CONFIG, PROVIDERS } from '../../platform/tokens.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { IncomingWebhooksController } from './incoming-webhooks.controller.js';
import { ReceiveWebhook } from './receive-webhook.service.js';

/** The HTTP side of incoming webhooks; the worker processes what it stores. */
@Module({
  controllers: [IncomingWebhooksController],
  providers: [
    {
      provide: ReceiveWebhook,
      inject: [Database, PROVIDERS, DestinationCipher, CONFIG],
      useFactory: (
        sql: Database,
        providers: ProviderRegistry,
        cipher: DestinationCipher,
        { webhookSecrets: secrets }: Config,
      ) => new ReceiveWebhook({ sql, providers, cipher, secrets }),
    },
  ],
})
export class IncomingWebhooksModule {}
