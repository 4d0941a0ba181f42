import { Module } from '@nestjs/common';
import { Database } from '../persistence/database.js';
import type { Log } from '../platform/logger.js';
import { LOG } from '../platform/tokens.js';
import { LanesController } from './lanes.controller.js';
import { Lanes } from './lanes.service.js';

/** The HTTP side of lanes. Its parts come from the module of the process. */
@Module({
  controllers: [LanesController],
  providers: [
    {
      provide: Lanes,
      inject: [Database, LOG],
      // A pause stops money: it is a security event, and says who asked.
      useFactory: (database: Database, log: Log) =>
        new Lanes(database, (event, { provider, by }) => log.warn({ provider, code: by }, event)),
    },
  ],
})
export class LanesModule {}
