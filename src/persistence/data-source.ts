import { DataSource } from 'typeorm';
import { ENTITIES } from './entities/index.js';
import { MIGRATIONS } from './migrations/index.js';

/**
 * The TypeORM data source: entities for the shape of the schema, migrations for its history. It is
 * never synchronised; hot statements go through `Database`.
 */
export function createDataSource(url: string): DataSource {
  return new DataSource({
    type: 'postgres',
    url,
    entities: ENTITIES,
    migrations: MIGRATIONS,
    migrationsTableName: 'schema_migration',
    synchronize: false,
    poolErrorHandler: () => undefined,
    extra: { max: 2, connectionTimeoutMillis: 2_000 },
  });
}
