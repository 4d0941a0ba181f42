import { Module } from '@nestjs/common';
import { Database } from '../persistence/database.js';
import type { Log } from '../platform/logger.js';
import { LOG, RELAY_DATABASE } from '../platform/tokens.js';
import { LanesController } from './lanes.controller.js';
import { Lanes } from './lanes.service.js';

/** The HTTP side of lanes. Its parts come from the module of the process. */
@Module({
  controllers: [LanesController],
  providers: [
    {
      provide: Lanes,
      inject: [Database, RELAY_DATABASE, LOG],
      // A pause stops money: it is a security event, and says who asked.
      useFactory: (database: Database, relayDatabase: Database, log: Log) =>
        new Lanes(database, relayDatabase, (event, { provider, by }) =>
          log.warn({ provider, code: by }, event),
        ),
    },
  ],
})
export class LanesModule {}
