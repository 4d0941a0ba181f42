import type { MigrationInterface, QueryRunner } from 'typeorm';
import { tenantRows } from './row-security.sql.js';

/**
 * Data keys: one per tenant and month, wrapped by a key-encryption key that the database never sees.
 *
 * Locks: the table is new and disturbs nobody. The previous release neither reads nor writes it, but it
 * cannot open what this one seals: update every worker before the first API, as a rolling restart does.
 */
const STATEMENTS: readonly string[] = [
  // No foreign key: events of providers are sealed before anybody knows whose they are, under
  // `webhook:<provider>/<account>`, and each first create of a month would lock the tenant's row.
  `CREATE TABLE data_key (
     id text PRIMARY KEY,
     tenant_id text NOT NULL,
     month text NOT NULL,
     wrapped bytea NOT NULL,
     kek_id text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     CONSTRAINT data_key_id_form CHECK (id ~ '^dk_[0-9a-f-]{36}$'),
     CONSTRAINT data_key_month_form CHECK (month ~ '^[0-9]{4}-[0-9]{2}$'),
     CONSTRAINT data_key_month_unique UNIQUE (tenant_id, month))`,
  // What a rotation still has to wrap again.
  `CREATE INDEX data_key_by_kek ON data_key (kek_id, id)`,

  // Whoever wraps keys again or deletes a tenant's reads no payment, and who reads payments does neither.
  `GRANT SELECT, INSERT ON data_key TO payments_api, payments_worker`,
  `GRANT SELECT, UPDATE (wrapped, kek_id), DELETE ON data_key TO payments_admin`,
  `GRANT SELECT (id, tenant_id, month, kek_id, created_at) ON data_key TO payments_read, payments_auditor`,
  `GRANT SELECT ON data_key TO payments_backup`,
  ...tenantRows('data_key'),
  `CREATE POLICY data_key_of_admin ON data_key TO payments_admin USING (true) WITH CHECK (true)`,
];

export class AddDataKeys1796530000000 implements MigrationInterface {
  name = 'AddDataKeys1796530000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  /** Forward only: without its data keys no destination opens. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
