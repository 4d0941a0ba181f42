import { Module } from '@nestjs/common';
import { CONFIG, KEYS, LOG, PROVIDERS } from '../platform/tokens.js';
import type { Config, KeysFile } from '../config/config.js';
import { createCipher } from '../encryption/create-cipher.js';
import { DestinationCipher } from '../encryption/destination-cipher.js';
import { OUTBOX_NUDGE, type OutboxNudge } from '../outbox/outbox-nudge.js';
import { Database } from '../persistence/database.js';
import type { Log } from '../platform/logger.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import { ListCursors } from './list-cursor.js';
import { PaymentIntake } from './payment-intake.service.js';
import { PaymentLifecycle } from './payment-lifecycle.service.js';
import { PaymentQueries } from './payment-query.service.js';
import { PaymentViews } from './payment-view.js';
import { PaymentsController } from './payments.controller.js';

/** The HTTP side of payments. Its parts come from the module of the process. */
@Module({
  controllers: [PaymentsController],
  providers: [
    {
      provide: DestinationCipher,
      inject: [KEYS, Database, LOG],
      useFactory: (keys: KeysFile, db: Database, log: Log) =>
        createCipher({ keys, sqlOf: (tenant) => db.ofTenant(tenant), log }),
    },
    {
      provide: PaymentIntake,
      inject: [Database, PROVIDERS, DestinationCipher, OUTBOX_NUDGE, CONFIG],
      useFactory: (
        db: Database,
        providers: ProviderRegistry,
        cipher: DestinationCipher,
        outbox: OutboxNudge,
        { defaultProvider, horizonDays }: Config,
      ) => new PaymentIntake({ db, providers, cipher, outbox, defaultProvider, horizonDays }),
    },
    {
      provide: PaymentLifecycle,
      inject: [Database, OUTBOX_NUDGE, CONFIG],
      useFactory: (db: Database, outbox: OutboxNudge, { horizonDays }: Config) =>
        new PaymentLifecycle(db, outbox, { horizonDays }),
    },
    {
      provide: PaymentQueries,
      inject: [Database, KEYS],
      useFactory: (db: Database, keys: KeysFile) => new PaymentQueries(db, new ListCursors(keys.cursor)),
    },
    {
      provide: PaymentViews,
      inject: [DestinationCipher],
      useFactory: (cipher: DestinationCipher) => new PaymentViews(cipher),
    },
  ],
  // What the features on payments build on.
  exports: [DestinationCipher, PaymentQueries, PaymentViews],
})
export class PaymentsModule {}
