import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Settlement files and their rows. New tables only: they lock nobody, and the previous release neither
 * reads nor writes them.
 */
const STATEMENTS: readonly string[] = [
  // A file is its bytes: the same bytes again are the same file.
  `CREATE TABLE settlement_file (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     provider text NOT NULL,
     sha256 bytea NOT NULL CONSTRAINT settlement_file_sha256_length CHECK (octet_length(sha256) = 32),
     format text NOT NULL CONSTRAINT settlement_file_format CHECK (format IN ('csv', 'camt053')),
     size_bytes bigint NOT NULL,
     rows_done integer NOT NULL DEFAULT 0,
     rows_known integer NOT NULL DEFAULT 0,
     first_booked_at timestamptz,
     last_booked_at timestamptz,
     started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     finished_at timestamptz,
     CONSTRAINT settlement_file_unique UNIQUE (provider, sha256))`,

  // No foreign key to payment: each row would lock its payment and dirty its page, a million times.
  `CREATE TABLE settlement_row (
     provider text NOT NULL,
     txn_id text NOT NULL,
     file_id bigint NOT NULL,
     row_no integer NOT NULL,
     kind text NOT NULL CONSTRAINT settlement_row_kind CHECK (kind IN ('payment', 'return', 'other')),
     source_id text,
     reference text,
     gross bigint NOT NULL,
     fee bigint NOT NULL,
     net bigint NOT NULL,
     currency text NOT NULL,
     booked_at timestamptz NOT NULL,
     available_at timestamptz,
     batch text,
     payment_id text,
     generation smallint,
     bucket text NOT NULL CONSTRAINT settlement_row_bucket CHECK (bucket IN ('matched', 'late', 'returned', 'other',
       'amount_differs', 'currency_differs', 'fee_differs', 'sign_flipped', 'unexpected_at_provider')),
     reason text,
     follow_up text CONSTRAINT settlement_row_follow_up CHECK (follow_up IN ('settle', 'contradict', 'return')),
     PRIMARY KEY (provider, txn_id))`,
  `CREATE INDEX settlement_row_by_payment ON settlement_row (payment_id) WHERE payment_id IS NOT NULL`,
  `CREATE INDEX settlement_row_trouble ON settlement_row (file_id, row_no) WHERE bucket NOT IN ('matched', 'other')`,
  `CREATE INDEX settlement_row_open ON settlement_row (file_id, row_no) WHERE follow_up IS NOT NULL`,
  `CREATE INDEX settlement_row_unexpected ON settlement_row (provider, txn_id)
    WHERE bucket = 'unexpected_at_provider' AND payment_id IS NULL`,

  // Rows that have no identity of their own: unreadable, or a repetition of one that has.
  `CREATE TABLE settlement_fault (
     file_id bigint NOT NULL,
     row_no integer NOT NULL,
     bucket text NOT NULL CONSTRAINT settlement_fault_bucket CHECK (bucket IN ('unreadable', 'duplicate')),
     reason text NOT NULL,
     txn_id text,
     PRIMARY KEY (file_id, row_no))`,

  // Succeeded payments that no row told of after the booking lag; found again ones keep their entry.
  `CREATE TABLE settlement_missing (
     payment_id text PRIMARY KEY,
     provider text NOT NULL,
     file_id bigint NOT NULL,
     found_missing_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     appeared_at timestamptz)`,
  `CREATE INDEX settlement_missing_by_file ON settlement_missing (file_id)`,

  // What the metrics show, so that no reading of them counts a million rows.
  `CREATE TABLE settlement_count (
     provider text NOT NULL,
     bucket text NOT NULL,
     rows bigint NOT NULL,
     PRIMARY KEY (provider, bucket))`,

  // What a provider wrote is evidence: the judgement may change, the line does not.
  ...[
    'DELETE',
    'UPDATE OF provider, txn_id, file_id, row_no, kind, source_id, reference, gross, fee, net, currency, booked_at',
  ].flatMap((event, i) => [
    `CREATE TRIGGER settlement_row_frozen_${i} BEFORE ${event} ON settlement_row
         FOR EACH ROW EXECUTE FUNCTION refuse_change()`,
    `ALTER TABLE settlement_row ENABLE ALWAYS TRIGGER settlement_row_frozen_${i}`,
  ]),
];

export class AddSettlement1796400000000 implements MigrationInterface {
  name = 'AddSettlement1796400000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  /** Forward only: what a provider settled is evidence. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
