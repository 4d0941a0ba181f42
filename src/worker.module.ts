import { Module, type DynamicModule } from '@nestjs/common';
import type { Config, KeysFile } from './config/config.js';
import { DestinationCipher } from './encryption/destination-cipher.js';
import { createOrchestration } from './orchestration/temporal-client.js';
import { OutboxRelay } from './outbox/outbox-relay.js';
import { Database } from './persistence/database.js';
import type { Log } from './platform/logger.js';
import { PROVIDERS } from './platform/tokens.js';
import type { ProviderRegistry } from './providers/provider-registry.js';
import { SubmissionEngine } from './submission/submission-engine.js';
import { Sweep } from './submission/sweep.js';
import { createWorkerEvents } from './worker/worker-events.js';
import { WorkerProcess } from './worker/worker-process.js';

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
          provide: SubmissionEngine,
          inject: [Database],
          useFactory: (database: Database) =>
            new SubmissionEngine({
              database,
              providers,
              cipher: new DestinationCipher(keys),
              events,
              ladderDivisor: config.ladderDivisor,
            }),
        },
        {
          provide: OutboxRelay,
          inject: [Database],
          useFactory: (database: Database) =>
            new OutboxRelay(database, orchestration.starter, events, { hasNeighbour: true }),
        },
        {
          provide: Sweep,
          inject: [Database],
          useFactory: (database: Database) => new Sweep(database, orchestration.starter, events),
        },
        {
          provide: WorkerProcess,
          inject: [Database, SubmissionEngine, OutboxRelay, Sweep],
          useFactory: (database: Database, engine: SubmissionEngine, relay: OutboxRelay, sweep: Sweep) =>
            new WorkerProcess({ config, log, database, engine, relay, sweep, providers, orchestration }),
        },
      ],
    };
  }
}
