import { Module, type DynamicModule } from '@nestjs/common';
import type { Config, KeysFile } from './config/config.js';
import { neededUrl } from './config/database-settings.js';
import { nextPollMs } from './domain/submission-policy.js';
import { createCipher } from './encryption/create-cipher.js';
import { DestinationCipher } from './encryption/destination-cipher.js';
import { createOrchestration } from './orchestration/temporal-client.js';
import { OutboxRelay } from './outbox/outbox-relay.js';
import { PaymentReturns } from './payments/payment-returns.service.js';
import { ProviderNews } from './payments/provider-news.service.js';
import { Database } from './persistence/database.js';
import type { Log } from './platform/logger.js';
import { PROVIDERS, RELAY_DATABASE } from './platform/tokens.js';
import type { ProviderRegistry } from './providers/provider-registry.js';
import { FollowUpService } from './reconciliation/follow-up.service.js';
import { ReconciliationService } from './reconciliation/reconciliation.service.js';
import { SubmissionEngine } from './submission/submission-engine.js';
import { ReviewLookups } from './submission/review-lookups.js';
import { Sweep } from './submission/sweep.js';
import { ProcessEvent } from './webhooks/incoming/process-event.service.js';
import { WebhookInbox } from './webhooks/incoming/webhook-inbox.js';
import { EventSender } from './webhooks/outgoing/event-sender.js';
import { WebhookDeliverer } from './webhooks/outgoing/webhook-deliverer.js';
import { createWorkerEvents } from './worker/worker-events.js';
import { createReconciliationEvents } from './worker/reconciliation-job.js';
import { WorkerProcess } from './worker/worker-process.js';

/** The relay publishes one batch at a time and plans beside it. */
const RELAY_POOL = 3;

/** What the worker process is made of. */
export interface WorkerParts {
  readonly config: Config;
  readonly keys: KeysFile;
  readonly log: Log;
  readonly providers: ProviderRegistry;
}

/** Composition root of the worker. It owns the order of its own stop (`WorkerProcess`). */
@Module({})
export class WorkerModule {
  static of({ config, keys, log, providers }: WorkerParts): DynamicModule {
    const events = createWorkerEvents(log);
    const orchestration = createOrchestration(config.temporal);
    return {
      module: WorkerModule,
      providers: [
        { provide: PROVIDERS, useValue: providers },
        {
          provide: Database,
          useFactory: () => new Database({ ...config.database, applicationName: 'payments-worker' }),
        },
        {
          provide: RELAY_DATABASE,
          useFactory: () =>
            new Database({
              url: neededUrl(config.database, 'relay'),
              poolSize: RELAY_POOL,
              applicationName: 'payments-worker-relay',
            }),
        },
        {
          provide: DestinationCipher,
          inject: [Database],
          useFactory: (database: Database) => createCipher({ keys, sqlOf: () => database, log }),
        },
        {
          provide: SubmissionEngine,
          inject: [Database, DestinationCipher],
          useFactory: (database: Database, cipher: DestinationCipher) =>
            new SubmissionEngine({
              database,
              providers,
              cipher,
              events,
              ladderDivisor: config.ladderDivisor,
            }),
        },
        {
          provide: OutboxRelay,
          inject: [RELAY_DATABASE],
          useFactory: (database: Database) =>
            new OutboxRelay(database, orchestration.starter, events, { hasNeighbour: true }),
        },
        {
          provide: ReviewLookups,
          inject: [Database, SubmissionEngine],
          useFactory: (database: Database, engine: SubmissionEngine) =>
            new ReviewLookups(database, (id) => engine.reviewLookup(id), events, config.ladderDivisor),
        },
        {
          provide: Sweep,
          inject: [Database],
          useFactory: (database: Database) => new Sweep(database, orchestration.starter, events),
        },
        {
          provide: WebhookInbox,
          inject: [Database, OutboxRelay, DestinationCipher],
          useFactory: (database: Database, relay: OutboxRelay, cipher: DestinationCipher) => {
            const processing = new ProcessEvent({
              sql: database,
              news: new ProviderNews(database, nextPollMs(0, config.ladderDivisor)),
              returns: new PaymentReturns(database, relay),
              cipher,
            });
            return new WebhookInbox({
              sql: database,
              providers: providers.names().flatMap((name) => providers.get(name) ?? []),
              process: (provider, event) => processing.process(provider, event),
              fault: events.fault,
            });
          },
        },
        {
          provide: WebhookDeliverer,
          inject: [Database, DestinationCipher],
          useFactory: (database: Database, cipher: DestinationCipher) =>
            new WebhookDeliverer({
              sql: database,
              cipher,
              sender: new EventSender({ policy: config.webhookOut, proxy: config.webhookOut.proxy }),
              fault: events.fault,
              endpointDisabled: (reason) => log.warn({ code: reason }, 'webhook_endpoint_disabled'),
            }),
        },
        {
          provide: ReconciliationService,
          inject: [Database, OutboxRelay],
          useFactory: (database: Database, relay: OutboxRelay) => {
            const returns = new PaymentReturns(database, relay);
            const followUps = new FollowUpService(database, returns, createReconciliationEvents(log));
            return new ReconciliationService(database, followUps);
          },
        },
        {
          provide: WorkerProcess,
          inject: [
            Database,
            RELAY_DATABASE,
            SubmissionEngine,
            OutboxRelay,
            Sweep,
            ReviewLookups,
            WebhookInbox,
            WebhookDeliverer,
            ReconciliationService,
          ],
          useFactory: (
            database: Database,
            relayDatabase: Database,
            engine: SubmissionEngine,
            relay: OutboxRelay,
            sweep: Sweep,
            reviewLookups: ReviewLookups,
            webhooks: WebhookInbox,
            clientWebhooks: WebhookDeliverer,
            reconciliation: ReconciliationService,
          ) =>
            new WorkerProcess({
              config, log, anchorKeys: () => keys.anchor, database, relayDatabase, engine, relay, sweep, reviewLookups, webhooks, clientWebhooks, reconciliation, providers, orchestration,
            }), // prettier-ignore
        },
      ],
    };
  }
}
