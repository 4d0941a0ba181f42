import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Key-encryption keys that were retired: the database refuses a data key that one of them wraps. Without
 * it, a process that has not read the changed key file yet stores such a key after the rotation is over,
 * and what it seals is lost with the old key.
 *
 * Locks: SHARE ROW EXCLUSIVE on `data_key` for a moment: whoever makes a data key meanwhile waits, readers
 * do not. The previous release goes on until a key is retired: it does not understand the refusal and answers
 * it with a fault, so rotate when none of its processes runs any more.
 */
const STATEMENTS: readonly string[] = [
  `CREATE TABLE retired_key_encryption_key (
     kek_id text PRIMARY KEY,
     retired_at timestamptz NOT NULL DEFAULT clock_timestamp())`,

  // The lock is shared until this transaction ends; whoever retires takes it alone. So either the retired
  // key is seen here, or the new data key is seen by whoever retires. The look is a statement of its own:
  // READ COMMITTED gives it a snapshot from after the wait. As the owner: who makes data keys needs no right
  // on the table.
  `CREATE FUNCTION data_key_refuse_retired() RETURNS trigger LANGUAGE plpgsql
   SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7314003);
  IF EXISTS (SELECT FROM retired_key_encryption_key r WHERE r.kek_id = NEW.kek_id) THEN
    RAISE EXCEPTION 'data key %: the key-encryption key % is retired', NEW.id, NEW.kek_id
      USING ERRCODE = 'check_violation', CONSTRAINT = 'data_key_kek_not_retired';
  END IF;
  RETURN NEW;
END $$`,
  `CREATE TRIGGER data_key_kek_not_retired BEFORE INSERT OR UPDATE OF kek_id ON data_key
   FOR EACH ROW EXECUTE FUNCTION data_key_refuse_retired()`,
  `ALTER TABLE data_key ENABLE ALWAYS TRIGGER data_key_kek_not_retired`,

  `GRANT SELECT, INSERT, DELETE ON retired_key_encryption_key TO payments_admin`,
  `GRANT SELECT ON retired_key_encryption_key TO payments_read, payments_auditor, payments_backup`,
];

export class RetireKeyEncryptionKeys1796570000000 implements MigrationInterface {
  name = 'RetireKeyEncryptionKeys1796570000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  /** Forward only: without it `unused` promises nothing. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
