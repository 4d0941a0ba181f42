import type { MigrationInterface, QueryRunner } from 'typeorm';
import { tenantRows } from './row-security.sql.js';

/**
 * Limits that tenants have of their own, and the buckets that all API processes draw from.
 *
 * Locks: both tables are new and disturb nobody; the foreign key takes SHARE ROW EXCLUSIVE on
 * `tenant` for a moment. The previous release neither reads nor writes them and limits nobody.
 */
const STATEMENTS: readonly string[] = [
  `CREATE TABLE rate_limit (
     tenant_id text NOT NULL CONSTRAINT rate_limit_tenant REFERENCES tenant (id),
     subject text NOT NULL CONSTRAINT rate_limit_subject CHECK (subject IN ('client', 'tenant')),
     rate_per_second double precision NOT NULL
       CONSTRAINT rate_limit_rate CHECK (rate_per_second > 0 AND rate_per_second <= 100000),
     burst integer NOT NULL CONSTRAINT rate_limit_burst CHECK (burst >= 1 AND burst <= 1000000),
     changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     CONSTRAINT rate_limit_pkey PRIMARY KEY (tenant_id, subject))`,
  // Unlogged: a lease writes no log and waits for no disk. After a crash of the server every bucket
  // is full again, which a limit can bear. One row per credential that has called; room to update in place.
  `CREATE UNLOGGED TABLE rate_limit_bucket (
     tenant_id text NOT NULL,
     bucket text NOT NULL,
     rate_per_second double precision NOT NULL,
     burst integer NOT NULL,
     tokens double precision NOT NULL,
     granted integer NOT NULL,
     refilled_at timestamptz NOT NULL,
     CONSTRAINT rate_limit_bucket_pkey PRIMARY KEY (tenant_id, bucket)) WITH (fillfactor = 50)`,
];

const RIGHTS: readonly string[] = [
  ...['rate_limit', 'rate_limit_bucket'].flatMap(tenantRows),
  // Limits are an administrator's; the API reads the one of the tenant it serves.
  `CREATE POLICY rate_limit_of_admin ON rate_limit TO payments_admin USING (true) WITH CHECK (true)`,
  `GRANT SELECT ON rate_limit TO payments_api, payments_read, payments_auditor, payments_backup`,
  `GRANT SELECT, INSERT, UPDATE (rate_per_second, burst, changed_at), DELETE ON rate_limit TO payments_admin`,
  `GRANT SELECT, INSERT, UPDATE (rate_per_second, burst, tokens, granted, refilled_at) ON rate_limit_bucket
     TO payments_api`,
  `GRANT SELECT ON rate_limit_bucket TO payments_read, payments_auditor, payments_backup`,
];

export class AddRateLimits1796540000000 implements MigrationInterface {
  name = 'AddRateLimits1796540000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...STATEMENTS, ...RIGHTS]) await runner.query(statement);
  }

  /** Forward only. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
