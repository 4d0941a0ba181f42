import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Which tenants agreed to providers that can neither recognise a repeat nor be asked about a payment,
 * and up to which amount. Nobody has agreed until somebody says so. Safe beside the previous release:
 * it adds columns that its inserts fill by default.
 *
 * Locks: ACCESS EXCLUSIVE on tenant for a moment, which delays creates; a constant default rewrites
 * nothing, and the check reads the few rows of tenant once.
 */
export class AddClassDConsent1796050000000 implements MigrationInterface {
  name = 'AddClassDConsent1796050000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE tenant
         ADD COLUMN allows_class_d boolean NOT NULL DEFAULT false,
         ADD COLUMN class_d_max_minor bigint,
         ADD CONSTRAINT tenant_class_d_capped
           CHECK (NOT allows_class_d OR (class_d_max_minor IS NOT NULL AND class_d_max_minor > 0))`,
    );
  }

  /** Forward only: who agreed is not forgotten. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
