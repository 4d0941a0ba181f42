import type { MigrationInterface, QueryRunner } from 'typeorm';
import { HISTORY_RULES } from './1796000000000-history-rules.sql.js';

/**
 * The storage of the first release. Runs on an empty database, so its locks disturb nobody.
 * Every time is a timestamptz; every comparison that guards money uses the database's clock.
 */
const TABLES: readonly string[] = [
  `CREATE TABLE tenant (
     id text PRIMARY KEY,
     pseudonym text NOT NULL CONSTRAINT tenant_pseudonym_unique UNIQUE,
     lateness_limit_seconds integer NOT NULL DEFAULT 86400
       CONSTRAINT tenant_lateness_limit_positive CHECK (lateness_limit_seconds > 0),
     unique_references boolean NOT NULL DEFAULT false,
     created_at timestamptz NOT NULL DEFAULT clock_timestamp())`,

  `CREATE TABLE api_key (
     id text PRIMARY KEY,
     tenant_id text NOT NULL CONSTRAINT api_key_tenant REFERENCES tenant (id),
     name text NOT NULL,
     scopes text[] NOT NULL,
     digest bytea NOT NULL,
     pepper_key_id text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     expires_at timestamptz NOT NULL,
     revoked_at timestamptz)`,
  `CREATE INDEX api_key_by_tenant ON api_key (tenant_id)`,

  // One row per lane; the gate's statement updates it for every batch, so leave room for HOT updates.
  `CREATE TABLE lane (
     lane text PRIMARY KEY,
     provider text NOT NULL,
     account text NOT NULL,
     rate double precision NOT NULL CONSTRAINT lane_rate_positive CHECK (rate > 0),
     burst double precision NOT NULL CONSTRAINT lane_burst_at_least_one CHECK (burst >= 1),
     tokens double precision NOT NULL,
     refilled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     cap integer NOT NULL CONSTRAINT lane_cap_positive CHECK (cap > 0),
     paused boolean NOT NULL DEFAULT false,
     pause_reason text,
     paused_at timestamptz,
     CONSTRAINT lane_provider_account UNIQUE (provider, account)) WITH (fillfactor = 50)`,

  // No foreign key to tenant, lane or from the outbox: each create would lock one hot row, and the
  // gate's update of the lane would wait for it.
  `CREATE TABLE payment (
     id text PRIMARY KEY,
     tenant_id text NOT NULL,
     idempotency_key text NOT NULL,
     fingerprint bytea NOT NULL,
     fingerprint_version smallint NOT NULL,
     amount bigint NOT NULL CONSTRAINT payment_amount_positive CHECK (amount > 0),
     currency text NOT NULL CONSTRAINT payment_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
     destination bytea NOT NULL,
     destination_key_id text NOT NULL,
     destination_digest bytea NOT NULL,
     digest_key_id text NOT NULL,
     provider text NOT NULL,
     lane text NOT NULL,
     reference text,
     description text,
     metadata jsonb,
     execute_at timestamptz NOT NULL,
     not_after timestamptz NOT NULL,
     state text NOT NULL CONSTRAINT payment_state_known CHECK (state IN ('scheduled', 'held', 'submitting',
       'submitted', 'unknown', 'needs_review', 'succeeded', 'failed', 'cancelled', 'expired', 'returned')),
     version integer NOT NULL DEFAULT 1 CONSTRAINT payment_version_positive CHECK (version > 0),
     submission_started_at timestamptz,
     provider_ref text,
     next_action_at timestamptz,
     last_woken_at timestamptz,
     wake_after timestamptz,
     armed_by text,
     created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     created_by text NOT NULL,
     CONSTRAINT payment_not_after_later CHECK (not_after > execute_at),
     CONSTRAINT payment_idempotency_key_unique UNIQUE (tenant_id, idempotency_key)) WITH (fillfactor = 80)`,
  `CREATE INDEX payment_due ON payment (lane, execute_at, id) WHERE state = 'scheduled'`,
  `CREATE INDEX payment_deadline ON payment (not_after) WHERE state IN ('scheduled', 'held')`,
  `CREATE INDEX payment_submitting ON payment (next_action_at) WHERE state = 'submitting'`,
  `CREATE INDEX payment_submitted ON payment (next_action_at) WHERE state = 'submitted'`,
  `CREATE INDEX payment_unknown ON payment (next_action_at) WHERE state = 'unknown'`,
  `CREATE INDEX payment_needs_review ON payment (updated_at) WHERE state = 'needs_review'`,
  `CREATE INDEX payment_by_creation ON payment (tenant_id, created_at, id)`,
  `CREATE INDEX payment_by_reference ON payment (tenant_id, reference, created_at, id) WHERE reference IS NOT NULL`,
  `CREATE INDEX payment_woken ON payment (last_woken_at) WHERE last_woken_at IS NOT NULL`,

  // detail holds codes only, as one line of JSON text: it is hashed as text.
  `CREATE TABLE payment_transition (
     payment_id text NOT NULL CONSTRAINT payment_transition_payment REFERENCES payment (id),
     seq integer NOT NULL CONSTRAINT payment_transition_seq_positive CHECK (seq > 0),
     tenant_id text NOT NULL,
     from_state text,
     to_state text NOT NULL,
     cause text NOT NULL,
     actor text NOT NULL CONSTRAINT payment_transition_actor_one_line CHECK (actor !~ E'[\\n\\r]'),
     at timestamptz NOT NULL DEFAULT clock_timestamp(),
     detail text NOT NULL DEFAULT '{}' CONSTRAINT payment_transition_detail_one_line CHECK (detail !~ E'[\\n\\r]'),
     hash bytea NOT NULL,
     PRIMARY KEY (payment_id, seq))`,
  `CREATE INDEX payment_transition_by_time ON payment_transition (at)`,

  `CREATE TABLE submission (
     payment_id text NOT NULL CONSTRAINT submission_payment REFERENCES payment (id),
     generation smallint NOT NULL CONSTRAINT submission_generation_positive CHECK (generation > 0),
     provider_key text NOT NULL CONSTRAINT submission_provider_key_unique UNIQUE,
     parameters bytea NOT NULL,
     parameters_key_id text NOT NULL,
     parameters_sha256 bytea NOT NULL,
     adapter text NOT NULL,
     adapter_version text NOT NULL,
     api_version text NOT NULL,
     credential_id text NOT NULL,
     account text NOT NULL,
     base_url text NOT NULL,
     commit_target text CONSTRAINT submission_commit_target_unique UNIQUE,
     key_valid_until timestamptz,
     opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     closed_evidence text,
     proof text,
     PRIMARY KEY (payment_id, generation))`,

  `CREATE TABLE submission_attempt (
     payment_id text NOT NULL,
     generation smallint NOT NULL,
     no smallint NOT NULL CONSTRAINT submission_attempt_no_positive CHECK (no > 0),
     owner text,
     phase text NOT NULL DEFAULT 'submit' CONSTRAINT submission_attempt_phase CHECK (phase IN ('submit', 'commit')),
     opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     call_started_at timestamptz,
     closed_at timestamptz,
     result_class text,
     evidence text CONSTRAINT submission_attempt_evidence
       CHECK (evidence IN ('not_sent', 'accepted', 'refused', 'ambiguous')),
     code text,
     provider_ref text,
     request_id text,
     http_status smallint,
     replayed boolean NOT NULL DEFAULT false,
     PRIMARY KEY (payment_id, generation, no),
     CONSTRAINT submission_attempt_submission FOREIGN KEY (payment_id, generation)
       REFERENCES submission (payment_id, generation),
     CONSTRAINT submission_attempt_closed_with_evidence CHECK ((closed_at IS NULL) = (evidence IS NULL)),
     CONSTRAINT submission_attempt_fence_has_owner CHECK (call_started_at IS NULL OR owner IS NOT NULL))`,
  `CREATE UNIQUE INDEX submission_attempt_one_open ON submission_attempt (payment_id) WHERE closed_at IS NULL`,
  `CREATE INDEX submission_attempt_by_owner ON submission_attempt (owner, closed_at) WHERE owner IS NOT NULL`,

  `CREATE TABLE evidence (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     payment_id text NOT NULL CONSTRAINT evidence_payment REFERENCES payment (id),
     tenant_id text NOT NULL,
     generation smallint,
     attempt_no smallint,
     source text NOT NULL CONSTRAINT evidence_source
       CHECK (source IN ('answer', 'late_answer', 'lookup', 'webhook', 'settlement', 'person')),
     kind text NOT NULL,
     code text,
     provider_ref text,
     status text,
     observed_amount bigint,
     observed_currency text,
     at timestamptz NOT NULL DEFAULT clock_timestamp())`,
  `CREATE INDEX evidence_by_payment ON evidence (payment_id, at)`,

  `CREATE TABLE review_case (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     payment_id text NOT NULL CONSTRAINT review_case_payment REFERENCES payment (id),
     tenant_id text NOT NULL,
     reason text NOT NULL,
     owner text,
     opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     due_at timestamptz NOT NULL,
     closed_at timestamptz,
     closed_by text)`,
  `CREATE UNIQUE INDEX review_case_one_open ON review_case (payment_id) WHERE closed_at IS NULL`,

  `CREATE TABLE worker (
     id text PRIMARY KEY,
     started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     lease_expires_at timestamptz NOT NULL)`,

  `CREATE TABLE outbox (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     kind text NOT NULL CONSTRAINT outbox_kind CHECK (kind IN ('start', 'wake', 'cancel')),
     payment_id text NOT NULL,
     due_at timestamptz NOT NULL,
     taken_until timestamptz,
     created_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
  `CREATE INDEX outbox_by_due ON outbox (kind, due_at, id)`,
  `CREATE INDEX outbox_by_age ON outbox (created_at)`,

  `CREATE TABLE due_slot (
     due_second bigint NOT NULL,
     lane text NOT NULL,
     taken integer NOT NULL,
     PRIMARY KEY (due_second, lane)) WITH (fillfactor = 50)`,

  `CREATE TABLE setting (
     name text PRIMARY KEY,
     value text NOT NULL,
     updated_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
];

export class CreatePayments1796000000000 implements MigrationInterface {
  name = 'CreatePayments1796000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...TABLES, ...HISTORY_RULES]) await runner.query(statement);
  }

  /** Forward only: the history of payments is never dropped by a program. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
