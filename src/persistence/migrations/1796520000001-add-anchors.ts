import type { MigrationInterface, QueryRunner } from 'typeorm';
import { tenantRows } from './row-security.sql.js';

/**
 * Anchors: signed roots over what changed, and the transaction of each transition, by which an anchor
 * knows what the one before did not cover.
 *
 * Locks: ACCESS EXCLUSIVE on payment_transition while its index is built: about a second for a million
 * rows, during which nothing moves. The column itself rewrites nothing: older rows get 0, and the
 * first anchor covers them. The previous release goes on: the trigger fills the column.
 */
const TRANSACTION_OF_TRANSITION: readonly string[] = [
  `ALTER TABLE payment_transition ADD COLUMN xact bigint NOT NULL DEFAULT 0`,
  `CREATE INDEX payment_transition_by_xact ON payment_transition (xact)`,
  // As before, and the transaction: taken from the server, so that no writer can hide from an anchor.
  `CREATE OR REPLACE FUNCTION payment_transition_before_insert()
RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE previous payment_transition;
BEGIN
  IF NOT payment_edge_is_legal(NEW.from_state, NEW.to_state, NEW.cause) THEN
    RAISE EXCEPTION 'payment %: no transition leads from % to % by %',
      NEW.payment_id, coalesce(NEW.from_state, 'none'), NEW.to_state, NEW.cause
      USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_transition_edge';
  END IF;
  NEW.at := clock_timestamp();
  NEW.xact := pg_current_xact_id()::text::bigint;
  IF NEW.seq = 1 THEN
    IF NEW.from_state IS NOT NULL THEN
      RAISE EXCEPTION 'payment %: the first transition comes from nothing', NEW.payment_id
        USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_transition_chain';
    END IF;
    NEW.hash := sha256(convert_to(payment_transition_canonical(NEW), 'UTF8'));
    RETURN NEW;
  END IF;
  SELECT * INTO previous FROM payment_transition
   WHERE payment_id = NEW.payment_id AND seq = NEW.seq - 1;
  IF NOT FOUND OR previous.to_state IS DISTINCT FROM NEW.from_state THEN
    RAISE EXCEPTION 'payment %: transition % does not follow the one before', NEW.payment_id, NEW.seq
      USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_transition_chain';
  END IF;
  NEW.hash := sha256(previous.hash || convert_to(payment_transition_canonical(NEW), 'UTF8'));
  RETURN NEW;
END $$`,
];

const ANCHOR_TABLES = ['audit_anchor', 'audit_anchor_signature', 'audit_anchor_leaf'];

const TABLES: readonly string[] = [
  `CREATE TABLE audit_anchor (
     no bigint PRIMARY KEY CONSTRAINT audit_anchor_no_positive CHECK (no > 0),
     at timestamptz NOT NULL,
     cut bigint NOT NULL,
     leaves integer NOT NULL CONSTRAINT audit_anchor_leaves_counted CHECK (leaves >= 0),
     root bytea NOT NULL CONSTRAINT audit_anchor_root_length CHECK (octet_length(root) = 32),
     previous bytea NOT NULL CONSTRAINT audit_anchor_previous_length CHECK (octet_length(previous) = 32),
     digest bytea NOT NULL CONSTRAINT audit_anchor_digest_length CHECK (octet_length(digest) = 32))`,
  `CREATE INDEX audit_anchor_by_time ON audit_anchor (at)`,
  // Apart from the anchor: a new key signs the last anchor of the old one.
  `CREATE TABLE audit_anchor_signature (
     anchor_no bigint NOT NULL,
     key_id text NOT NULL,
     signature bytea NOT NULL CONSTRAINT audit_anchor_signature_length CHECK (octet_length(signature) = 64),
     at timestamptz NOT NULL DEFAULT clock_timestamp(),
     PRIMARY KEY (anchor_no, key_id))`,
  // No foreign key to payment: that a payment vanished is what a leaf is for.
  `CREATE TABLE audit_anchor_leaf (
     anchor_no bigint NOT NULL,
     position integer NOT NULL,
     payment_id text NOT NULL,
     version integer NOT NULL,
     hash bytea NOT NULL,
     PRIMARY KEY (anchor_no, position),
     CONSTRAINT audit_anchor_leaf_once UNIQUE (payment_id, version))`,
  ...ANCHOR_TABLES.flatMap((table) =>
    [
      ['no_change', 'BEFORE UPDATE OR DELETE', 'ROW'],
      ['no_truncate', 'BEFORE TRUNCATE', 'STATEMENT'],
    ].flatMap(([name, event, level]) => [
      `CREATE TRIGGER ${table}_${name} ${event} ON ${table} FOR EACH ${level} EXECUTE FUNCTION refuse_change()`,
      `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${table}_${name}`,
    ]),
  ),
];

const GRANTS: readonly string[] = [
  ...ANCHOR_TABLES.flatMap((table) => [
    `GRANT SELECT, INSERT ON ${table} TO payments_worker`,
    `GRANT SELECT ON ${table} TO payments_auditor, payments_backup`,
  ]),
  `GRANT SELECT ON audit_anchor TO payments_read`,
  `GRANT INSERT ON audit_log TO payments_api, payments_admin`,
  `GRANT SELECT, INSERT ON audit_log TO payments_worker`,
  `GRANT SELECT ON audit_log TO payments_auditor, payments_backup`,
  ...tenantRows('audit_log'),
  // Keys and limits are the administrators'; they read nothing back.
  `CREATE POLICY audit_log_of_admin ON audit_log FOR INSERT TO payments_admin WITH CHECK (true)`,
];

export class AddAnchors1796520000001 implements MigrationInterface {
  name = 'AddAnchors1796520000001';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...TRANSACTION_OF_TRANSITION, ...TABLES, ...GRANTS]) {
      await runner.query(statement);
    }
  }

  /** Forward only: anchors are evidence. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
