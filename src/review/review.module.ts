import { Module } from '@nestjs/common';
import { DestinationCipher } from '../encryption/destination-cipher.js';
import { OUTBOX_NUDGE, type OutboxNudge } from '../outbox/outbox-nudge.js';
import { Database } from '../persistence/database.js';
import { PROVIDERS } from '../platform/tokens.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import { NewGenerations } from './new-generation.js';
import { Resolutions } from './resolution.service.js';
import { ResolutionsController } from './resolutions.controller.js';
import { Reviews } from './review.service.js';
import { ReviewsController } from './reviews.controller.js';

/** The HTTP side of reviews. Its parts come from the module of the process and from payments. */
@Module({
  controllers: [ReviewsController, ResolutionsController],
  providers: [
    { provide: Reviews, inject: [Database], useFactory: (db: Database) => new Reviews(db) },
    {
      provide: NewGenerations,
      inject: [PROVIDERS, DestinationCipher],
      useFactory: (providers: ProviderRegistry, cipher: DestinationCipher) =>
        new NewGenerations(providers, cipher),
    },
    {
      provide: Resolutions,
      inject: [Database, OUTBOX_NUDGE, NewGenerations],
      useFactory: (db: Database, outbox: OutboxNudge, generations: NewGenerations) =>
        new Resolutions(db, outbox, generations),
    },
  ],
})
export class ReviewModule {}
