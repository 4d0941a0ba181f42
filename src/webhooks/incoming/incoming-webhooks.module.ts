import { Module } from '@nestjs/common';
import type { Config, KeysFile } from '../../config/config.js';
import { DestinationCipher } from '../../encryption/destination-cipher.js';
import { Database } from '../../persistence/database.js';
import { CONFIG, KEYS, PROVIDERS } from '../../platform/tokens.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { IncomingWebhooksController } from './incoming-webhooks.controller.js';
import { ReceiveWebhook } from './receive-webhook.service.js';

/** The HTTP side of incoming webhooks; the worker processes what it stores. */
@Module({
  controllers: [IncomingWebhooksController],
  providers: [
    {
      provide: ReceiveWebhook,
      inject: [Database, PROVIDERS, KEYS, CONFIG],
      useFactory: (sql: Database, providers: ProviderRegistry, keys: KeysFile, config: Config) =>
        new ReceiveWebhook({
          sql,
          providers,
          cipher: new DestinationCipher(keys),
          secrets: config.webhookSecrets,
        }),
    },
  ],
})
export class IncomingWebhooksModule {}
