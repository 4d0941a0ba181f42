import type { MigrationInterface, QueryRunner } from 'typeorm';
import { ROLE_GRANTS } from './1796500000000-role-grants.sql.js';
import { CURRENT_TENANT, rowsOfPayment, tenantRows } from './row-security.sql.js';

/**
 * Who may do what in the database: roles with the least rights, and row-level security that lets a
 * session of the API see one tenant.
 *
 * Every object goes to `payments_owner`; whoever migrates must be that role, or able to make it and
 * become it. An operator gives each role its log-in, or makes log-ins that are members of one role.
 *
 * Locks: ACCESS EXCLUSIVE on every table for a moment; nothing is rewritten and no row is read. A
 * process of the previous release that logs in as the old owner goes on while that is `payments_owner`
 * only until this ran: with row-level security forced, the owner sees no rows. Stop it before.
 */
const ROLES = [
  'payments_owner', 'payments_api', 'payments_worker', 'payments_relay', 'payments_read', 'payments_auditor',
  'payments_admin', 'payments_backup',
]; // prettier-ignore

/** Roles belong to the whole server, and another of its databases may be migrated at this moment. */
const createRole = (role: string): string => `DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${role}') THEN
    CREATE ROLE ${role} NOLOGIN;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$`;

/** A migration by a superuser or an older owner hands everything over and goes on as the owner. */
const HAND_OVER = `DO $$ DECLARE entry record; BEGIN
  IF current_user = 'payments_owner' THEN RETURN; END IF;
  IF NOT pg_has_role(current_user, 'payments_owner', 'SET') THEN
    EXECUTE format('GRANT payments_owner TO %I', current_user);
  END IF;
  FOR entry IN SELECT oid::regclass AS name FROM pg_class
                WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
    EXECUTE format('ALTER TABLE %s OWNER TO payments_owner', entry.name);
  END LOOP;
  FOR entry IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO payments_owner', entry.name);
  END LOOP;
END $$`;

const CLOSE_TO_PUBLIC: readonly string[] = [
  `GRANT USAGE ON SCHEMA public TO ${ROLES.slice(1).join(', ')}`,
  // By name: a copy of the database may belong to somebody else, and foreign keys are checked as the owner.
  `GRANT USAGE, CREATE ON SCHEMA public TO payments_owner`,
  `REVOKE ALL ON SCHEMA public FROM PUBLIC`,
  `DO $$ BEGIN
     EXECUTE format('GRANT CONNECT ON DATABASE %I TO ${ROLES.join(', ')}', current_database());
     EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
   END $$`,
];

const OWNERS_DEFAULTS: readonly string[] = [
  `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC`,
  `REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM PUBLIC`,
  `REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC`,
  `ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM PUBLIC`,
];

/** Two people approved that the payment is sent under another key: the one submission that the API opens. */
const APPROVED_GENERATION = `EXISTS (SELECT 1 FROM resolution r
  WHERE r.payment_id = submission.payment_id AND r.tenant_id = ${CURRENT_TENANT}
    AND r.outcome = 'resend_new_generation' AND r.approved_at IS NOT NULL AND r.voided_at IS NULL)`;

const ROW_SECURITY: readonly string[] = [
  ...['payment', 'payment_transition', 'evidence', 'review_case', 'resolution', 'payment_return'].flatMap(tenantRows),
  ...['submission', 'submission_attempt'].flatMap(rowsOfPayment),
  `CREATE POLICY submission_approved_by_two ON submission AS RESTRICTIVE FOR INSERT TO payments_api
     WITH CHECK (generation > 1 AND ${APPROVED_GENERATION})`,
  `CREATE POLICY submission_proven_by_two ON submission AS RESTRICTIVE FOR UPDATE TO payments_api
     USING (${APPROVED_GENERATION})`,
]; // prettier-ignore

/**
 * The API forgets the object of an earlier generation when two people send again (T19); it never names
 * one: only the worker hears of objects.
 */
const OBJECTS_ARE_THE_WORKERS: readonly string[] = [
  `CREATE FUNCTION payment_refuse_object() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'payment %: only who sends names its object at the provider', OLD.id
    USING ERRCODE = 'insufficient_privilege', CONSTRAINT = 'payment_object_of_sender';
END $$`,
  `CREATE TRIGGER payment_object_of_sender BEFORE UPDATE OF provider_ref ON payment FOR EACH ROW
   WHEN (NEW.provider_ref IS DISTINCT FROM OLD.provider_ref
     AND (NEW.provider_ref IS NOT NULL OR NEW.state <> 'submitting' OR OLD.state <> 'needs_review')
     AND NOT has_table_privilege('submission_attempt', 'INSERT'))
   EXECUTE FUNCTION payment_refuse_object()`,
  `ALTER TABLE payment ENABLE ALWAYS TRIGGER payment_object_of_sender`,
];

export class AddDatabaseRoles1796500000000 implements MigrationInterface {
  name = 'AddDatabaseRoles1796500000000';

  async up(runner: QueryRunner): Promise<void> {
    const statements = [
      ...ROLES.map(createRole),
      ...CLOSE_TO_PUBLIC,
      HAND_OVER,
      `SET ROLE payments_owner`,
      ...OBJECTS_ARE_THE_WORKERS,
      ...OWNERS_DEFAULTS,
      ...ROLE_GRANTS,
      ...ROW_SECURITY,
    ];
    for (const statement of statements) await runner.query(statement);
  }

  /** Forward only: rights that were taken away are not given back by a program. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
