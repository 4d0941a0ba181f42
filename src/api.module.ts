import { Module, type DynamicModule } from '@nestjs/common';
import type { Config, KeysFile } from './config/config.js';
import { LanesModule } from './lanes/lanes.module.js';
import { OUTBOX_NUDGE, type OutboxNudge } from './outbox/outbox-nudge.js';
import { PaymentsModule } from './payments/payments.module.js';
import { Database } from './persistence/database.js';
import type { Log } from './platform/logger.js';
import { CONFIG, KEYS, LOG, PROVIDERS, RELAY_DATABASE } from './platform/tokens.js';
import type { ProviderRegistry } from './providers/provider-registry.js';
import { ReviewModule } from './review/review.module.js';
import { IncomingWebhooksModule } from './webhooks/incoming/incoming-webhooks.module.js';
import { OutgoingWebhooksModule } from './webhooks/outgoing/outgoing-webhooks.module.js';

/** What the API process is made of. Whoever makes the parts ends them after the application. */
export interface ApiParts {
  readonly config: Config;
  readonly keys: KeysFile;
  readonly log: Log;
  /** As payments_api. */
  readonly database: Database;
  /** As payments_relay: what lanes hold of all tenants. */
  readonly relayDatabase: Database;
  readonly providers: ProviderRegistry;
  readonly outbox: OutboxNudge;
}

/** Composition root of the API. */
@Module({})
export class ApiModule {
  static of(parts: ApiParts): DynamicModule {
    const provided = [
      { provide: CONFIG, useValue: parts.config },
      { provide: KEYS, useValue: parts.keys },
      { provide: LOG, useValue: parts.log },
      { provide: PROVIDERS, useValue: parts.providers },
      { provide: OUTBOX_NUDGE, useValue: parts.outbox },
      { provide: Database, useValue: parts.database },
      { provide: RELAY_DATABASE, useValue: parts.relayDatabase },
    ];
    return {
      module: ApiModule,
      global: true,
      imports: [PaymentsModule, ReviewModule, LanesModule, IncomingWebhooksModule, OutgoingWebhooksModule],
      providers: provided,
      // Features find the services of payments without importing its module.
      exports: [...provided.map((p) => p.provide), PaymentsModule],
    };
  }
}
