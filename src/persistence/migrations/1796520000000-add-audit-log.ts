import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The audit log: what people and operators did, beside the payments' own history. A new table only: it
 * locks nobody, and the previous release neither reads nor writes it. Append-only like the transitions;
 * time and database role are the server's word, whatever a writer says.
 */
const STATEMENTS: readonly string[] = [
  // Numbers and codes stand in detail as one line of JSON text. Money only in columns of its own.
  `CREATE TABLE audit_log (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     at timestamptz NOT NULL DEFAULT clock_timestamp(),
     tenant_id text,
     actor text NOT NULL CONSTRAINT audit_log_actor_one_line CHECK (actor <> '' AND actor !~ E'[\\n\\r]'),
     db_role text NOT NULL DEFAULT session_user,
     action text NOT NULL CONSTRAINT audit_log_action_form CHECK (action ~ '^[a-z][a-z0-9_]{1,63}$'),
     target text NOT NULL CONSTRAINT audit_log_target_form CHECK (target ~ '^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,127}$'),
     code text CONSTRAINT audit_log_code_form CHECK (code ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$'),
     amount bigint,
     currency text CONSTRAINT audit_log_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
     detail text NOT NULL DEFAULT '{}'
       CONSTRAINT audit_log_detail_one_line CHECK (detail !~ E'[\\n\\r]' AND length(detail) <= 2000),
     CONSTRAINT audit_log_money_whole CHECK ((amount IS NULL) = (currency IS NULL)))`,
  `CREATE INDEX audit_log_by_tenant ON audit_log (tenant_id, at)`,
  `CREATE INDEX audit_log_by_time ON audit_log (at)`,

  `CREATE FUNCTION audit_log_before_insert() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     NEW.at := clock_timestamp();
     NEW.db_role := session_user;
     RETURN NEW;
   END $$`,
  ...[
    ['audit_log_word', 'BEFORE INSERT', 'ROW', 'audit_log_before_insert'],
    ['audit_log_no_change', 'BEFORE UPDATE OR DELETE', 'ROW', 'refuse_change'],
    ['audit_log_no_truncate', 'BEFORE TRUNCATE', 'STATEMENT', 'refuse_change'],
  ].flatMap(([name, event, level, call]) => [
    `CREATE TRIGGER ${name} ${event} ON audit_log FOR EACH ${level} EXECUTE FUNCTION ${call}()`,
    // ALWAYS: a session in replica mode must not slip past.
    `ALTER TABLE audit_log ENABLE ALWAYS TRIGGER ${name}`,
  ]),
];

export class AddAuditLog1796520000000 implements MigrationInterface {
  name = 'AddAuditLog1796520000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  /** Forward only: what people did is evidence. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
