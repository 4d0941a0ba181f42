import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What an API key can be, said by the database itself: a machine of a client, for at most a year. Keys
 * that were given more lose it: who operates is a person, and people come with tokens. Safe beside the
 * previous release, whose keys hold nothing else but in local stacks.
 *
 * Locks: ACCESS EXCLUSIVE on api_key for a moment, which delays logins; both checks read its few rows once.
 */
export class LimitApiKeys1796450000000 implements MigrationInterface {
  name = 'LimitApiKeys1796450000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `UPDATE api_key
          SET scopes = ARRAY(SELECT scope FROM unnest(scopes) AS scope
                              WHERE scope IN ('payments:create', 'payments:read', 'payments:cancel', 'payments:update'))`,
    );
    await runner.query(
      `ALTER TABLE api_key
         ADD CONSTRAINT api_key_scopes_of_machines CHECK (scopes <@ ARRAY['payments:create', 'payments:read',
           'payments:cancel', 'payments:update']),
         ADD CONSTRAINT api_key_one_year CHECK (expires_at <= created_at + interval '365 days 1 minute')`,
    );
  }

  /** Forward only: no key gets back what it lost. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
