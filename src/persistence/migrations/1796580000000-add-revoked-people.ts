import type { MigrationInterface, QueryRunner } from 'typeorm';

/** As tokens name people, and the one-line form of codes. */
const SUBJECT = '^[A-Za-z0-9][A-Za-z0-9._:@|+-]{0,127}$';
const CODE = '^[a-z][a-z0-9_]{1,63}$';

/**
 * People whose access was taken away before their tokens end. No tenant: a person is one subject of the
 * issuer, for every tenant.
 *
 * Decisions take the lock 7314005 shared before anything else, whoever revokes takes it alone. So a decision
 * that is under way is committed before the revocation, and one that comes later sees it: a row that is not
 * there cannot be locked. The proposals are looked for by a statement of its own, so that READ COMMITTED
 * gives it a snapshot from after the wait.
 *
 * Locks: ACCESS EXCLUSIVE on `resolution` for a moment, and on `audit_log` while its targets are checked
 * (about a second for a million entries). The previous release goes on; it does not look who is revoked.
 */
const STATEMENTS: readonly string[] = [
  `CREATE TABLE revoked_person (
     subject text PRIMARY KEY CONSTRAINT revoked_person_subject_form CHECK (subject ~ '${SUBJECT}'),
     revoked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     revoked_by text NOT NULL CONSTRAINT revoked_person_by_one_line
       CHECK (revoked_by <> '' AND revoked_by !~ E'[\\n\\r]'),
     reason text NOT NULL CONSTRAINT revoked_person_reason_form CHECK (reason ~ '${CODE}'))`,

  `CREATE FUNCTION revoked_person_wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7314005);
  RETURN NULL;
END $$`,
  `CREATE FUNCTION revoked_person_void_proposals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE resolution SET voided_at = clock_timestamp(), void_reason = 'proposer_revoked'
   WHERE proposed_by = 'person:' || NEW.subject AND approved_at IS NULL AND voided_at IS NULL;
  RETURN NULL;
END $$`,
  ...[
    ['revoked_person_wait', 'BEFORE INSERT', 'STATEMENT'],
    ['revoked_person_void_proposals', 'AFTER INSERT', 'ROW'],
  ].flatMap(([name, event, level]) => [
    `CREATE TRIGGER ${name} ${event} ON revoked_person FOR EACH ${level} EXECUTE FUNCTION ${name}()`,
    `ALTER TABLE revoked_person ENABLE ALWAYS TRIGGER ${name}`,
  ]),

  `GRANT SELECT (subject) ON revoked_person TO payments_api`,
  `GRANT SELECT, INSERT (subject, revoked_by, reason), DELETE ON revoked_person TO payments_admin`,
  `GRANT SELECT ON revoked_person TO payments_read, payments_auditor, payments_backup`,

  // An administrator ends proposals of revoked people and sees no others; what was approved is out of reach.
  `GRANT SELECT (id, proposed_by, approved_at, voided_at, void_reason), UPDATE (voided_at, void_reason)
     ON resolution TO payments_admin`,
  `CREATE POLICY resolution_of_revoked ON resolution TO payments_admin
     USING (approved_at IS NULL AND proposed_by IN (SELECT 'person:' || p.subject FROM revoked_person p))
     WITH CHECK (void_reason = 'proposer_revoked')`,

  // A person may be what an entry is about: subjects of some issuers have | or +.
  `ALTER TABLE audit_log DROP CONSTRAINT audit_log_target_form,
     ADD CONSTRAINT audit_log_target_form CHECK (target ~ '^[A-Za-z0-9][A-Za-z0-9_.:/@|+-]{0,127}$')`,
];

export class AddRevokedPeople1796580000000 implements MigrationInterface {
  name = 'AddRevokedPeople1796580000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  /** Forward only: without it everybody who was revoked would be let in again. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
