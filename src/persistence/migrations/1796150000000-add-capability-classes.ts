import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What a generation may do about an open outcome is frozen with it: the capability class of its
 * provider, and in two phases the one object that may be committed. A lookup's answer says which ways
 * said `absent`, so that the absence proof can be read from the rows alone.
 *
 * Locks: three columns without a rewrite, each a short exclusive lock on `submission` or `evidence`;
 * the check reads `submission` once while it holds it. The trigger takes a lock that lets readers go
 * on. Safe beside the previous release: it writes class A only, which the default is, and no commit
 * target.
 */
const STATEMENTS: readonly string[] = [
  `ALTER TABLE submission ADD COLUMN capability_class text NOT NULL DEFAULT 'A'
     CONSTRAINT submission_capability_class CHECK (capability_class IN ('A', 'B', 'C', 'D', 'T'))`,
  `ALTER TABLE evidence ADD COLUMN paths text[]`,
  `CREATE FUNCTION submission_refuse_target() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'payment %: the class and the commit target of generation % are written once',
    OLD.payment_id, OLD.generation
    USING ERRCODE = 'check_violation', CONSTRAINT = 'submission_target_once';
END $$`,
  `CREATE TRIGGER submission_target_once BEFORE UPDATE ON submission FOR EACH ROW
   WHEN (NEW.capability_class IS DISTINCT FROM OLD.capability_class
     OR (OLD.commit_target IS NOT NULL AND NEW.commit_target IS DISTINCT FROM OLD.commit_target))
   EXECUTE FUNCTION submission_refuse_target()`,
  // ALWAYS: a session in replica mode must not slip past.
  `ALTER TABLE submission ENABLE ALWAYS TRIGGER submission_target_once`,
];

export class AddCapabilityClasses1796150000000 implements MigrationInterface {
  name = 'AddCapabilityClasses1796150000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  /** Forward only: the history of payments is never dropped by a program. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
