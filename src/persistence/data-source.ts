import { DataSource, type Logger } from 'typeorm';
import { ENTITIES } from './entities/index.js';
import { MIGRATIONS } from './migrations/index.js';

const nothing = (): void => undefined;
/** TypeORM prints migrations to standard output by itself; callers get results and errors instead. */
const SILENT: Logger = {
  logQuery: nothing,
  logQueryError: nothing,
  logQuerySlow: nothing,
  logSchemaBuild: nothing,
  logMigration: nothing,
  log: nothing,
};

/**
 * The TypeORM data source: entities for the shape of the schema, migrations for its history. It is
 * never synchronised; hot statements go through `Database`.
 * @param role the role that its sessions take; null: that of their log-in.
 */
export function createDataSource(url: string, role: string | null = null): DataSource {
  return new DataSource({
    type: 'postgres',
    url,
    entities: ENTITIES,
    migrations: MIGRATIONS,
    migrationsTableName: 'schema_migration',
    synchronize: false,
    logger: SILENT,
    poolErrorHandler: nothing,
    extra: {
      max: 2,
      connectionTimeoutMillis: 2_000,
      ...(role === null ? {} : { options: `-c role=${role}` }),
    },
  });
}
