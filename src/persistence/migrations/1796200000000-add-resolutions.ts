import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What people decide about payments in review, and money that came back. Safe beside the previous
 * release: it adds columns that may be null, tables, and triggers that no statement of that release
 * meets but those of leaving review, which it never does.
 *
 * Locks: ADD COLUMN without a default and CREATE TRIGGER take their tables for a moment and rewrite
 * nothing (ACCESS EXCLUSIVE on review_case, SHARE ROW EXCLUSIVE on payment_transition, which delays
 * moves for as long as the migration's transaction lasts: milliseconds). The index on review_case
 * reads only open cases; there are few.
 */
const TABLES: readonly string[] = [
  `ALTER TABLE review_case ADD COLUMN owned_at timestamptz`,
  `ALTER TABLE review_case ADD COLUMN close_reason text`,
  `CREATE INDEX review_case_open ON review_case (tenant_id, id) WHERE closed_at IS NULL`,
  `CREATE INDEX review_case_by_payment ON review_case (payment_id, id)`,

  // proof_*: why nothing was executed, in writing; needed before another provider key is used.
  `CREATE TABLE resolution (
     id text PRIMARY KEY,
     payment_id text NOT NULL CONSTRAINT resolution_payment REFERENCES payment (id),
     tenant_id text NOT NULL,
     outcome text NOT NULL CONSTRAINT resolution_outcome
       CHECK (outcome IN ('succeeded', 'failed', 'submitted', 'resend', 'resend_new_generation')),
     reason_code text NOT NULL CONSTRAINT resolution_reason_code CHECK (reason_code ~ '^[a-z][a-z0-9_]{1,63}$'),
     payment_version integer NOT NULL,
     evidence_digest bytea NOT NULL,
     evidence_ids bigint[] NOT NULL,
     proof_kind text CONSTRAINT resolution_proof_kind
       CHECK (proof_kind IN ('provider_statement', 'stored_refusal', 'absence_proof')),
     proof_statement text,
     proposed_by text NOT NULL,
     proposed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     approved_by text,
     approved_at timestamptz,
     voided_at timestamptz,
     void_reason text,
     CONSTRAINT resolution_two_people CHECK (proposed_by <> approved_by),
     CONSTRAINT resolution_approval_whole CHECK ((approved_by IS NULL) = (approved_at IS NULL)),
     CONSTRAINT resolution_void_whole CHECK ((void_reason IS NULL) = (voided_at IS NULL)),
     CONSTRAINT resolution_approved_or_void CHECK (approved_at IS NULL OR voided_at IS NULL),
     CONSTRAINT resolution_proof_whole CHECK ((proof_kind IS NULL) = (proof_statement IS NULL)),
     CONSTRAINT resolution_new_generation_proven
       CHECK (outcome <> 'resend_new_generation' OR proof_statement IS NOT NULL))`,
  `CREATE UNIQUE INDEX resolution_one_open ON resolution (payment_id) WHERE approved_at IS NULL AND voided_at IS NULL`,
  `CREATE INDEX resolution_by_payment ON resolution (payment_id, proposed_at)`,

  `CREATE TABLE payment_return (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     payment_id text NOT NULL CONSTRAINT payment_return_payment REFERENCES payment (id),
     tenant_id text NOT NULL,
     provider text NOT NULL,
     return_id text NOT NULL,
     amount bigint NOT NULL CONSTRAINT payment_return_amount_positive CHECK (amount > 0),
     currency text NOT NULL CONSTRAINT payment_return_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
     source text NOT NULL CONSTRAINT payment_return_source CHECK (source IN ('webhook', 'settlement', 'lookup')),
     code text NOT NULL,
     at timestamptz NOT NULL DEFAULT clock_timestamp(),
     CONSTRAINT payment_return_once UNIQUE (provider, return_id))`,
  `CREATE INDEX payment_return_by_payment ON payment_return (payment_id)`,
];

/** A proposal keeps what it proposed, and its end is written once. */
const RESOLUTION_BOUND = [
  'id', 'payment_id', 'tenant_id', 'outcome', 'reason_code', 'payment_version', 'evidence_digest',
  'evidence_ids', 'proof_kind', 'proof_statement', 'proposed_by', 'proposed_at',
]; // prettier-ignore
const columns = (row: string): string => RESOLUTION_BOUND.map((c) => `${row}.${c}`).join(', ');

const RULES: readonly string[] = [
  `CREATE FUNCTION resolution_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'payment %: resolution % keeps what it says', OLD.payment_id, OLD.id
    USING ERRCODE = 'check_violation', CONSTRAINT = 'resolution_frozen';
END $$`,
  `CREATE TRIGGER resolution_frozen BEFORE UPDATE ON resolution FOR EACH ROW
   WHEN (OLD.approved_at IS NOT NULL OR OLD.voided_at IS NOT NULL
     OR (${columns('NEW')}) IS DISTINCT FROM (${columns('OLD')}))
   EXECUTE FUNCTION resolution_refuse_update()`,
  `ALTER TABLE resolution ENABLE ALWAYS TRIGGER resolution_frozen`,
  ...['resolution', 'review_case'].flatMap((table) => [
    `CREATE TRIGGER ${table}_no_delete BEFORE DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse_change()`,
    `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${table}_no_delete`,
  ]),
  `CREATE TRIGGER payment_return_no_change BEFORE UPDATE OR DELETE ON payment_return
   FOR EACH ROW EXECUTE FUNCTION refuse_change()`,
  `ALTER TABLE payment_return ENABLE ALWAYS TRIGGER payment_return_no_change`,
  ...['resolution', 'review_case', 'payment_return'].flatMap((table) => [
    `CREATE TRIGGER ${table}_no_truncate BEFORE TRUNCATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()`,
    `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${table}_no_truncate`,
  ]),

  // Whoever moves a payment out of review ends what belongs to the review, in the same commit.
  `CREATE FUNCTION payment_left_review() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE review_case SET closed_at = clock_timestamp(), closed_by = NEW.actor, close_reason = NEW.cause
   WHERE payment_id = NEW.payment_id AND closed_at IS NULL;
  UPDATE resolution SET voided_at = clock_timestamp(), void_reason = 'payment_moved'
   WHERE payment_id = NEW.payment_id AND approved_at IS NULL AND voided_at IS NULL;
  RETURN NULL;
END $$`,
  `CREATE TRIGGER payment_left_review AFTER INSERT ON payment_transition FOR EACH ROW
   WHEN (NEW.from_state = 'needs_review') EXECUTE FUNCTION payment_left_review()`,
  `ALTER TABLE payment_transition ENABLE ALWAYS TRIGGER payment_left_review`,
];

export class AddResolutions1796200000000 implements MigrationInterface {
  name = 'AddResolutions1796200000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...TABLES, ...RULES]) await runner.query(statement);
  }

  /** Forward only: what people decided is history. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
