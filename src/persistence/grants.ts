import type { DatabaseRole } from './roles.js';

/** Every column of the table, also later ones; or these. */
export type Columns = 'all' | readonly string[];

/** What a role may do with a table. What is absent, it may not. */
export interface TableGrants {
  readonly select?: Columns;
  readonly insert?: Columns;
  readonly update?: Columns;
  readonly delete?: true;
}

export type RoleGrants = Readonly<Record<string, TableGrants>>;

const READ: TableGrants = { select: 'all' };
const APPEND: TableGrants = { select: 'all', insert: 'all' };
const FULL: TableGrants = { select: 'all', insert: 'all', update: 'all', delete: true };

/** Moves of the gate; the trigger of the database refuses what is no legal step. */
const PAYMENT_MOVES = [
  'state', 'version', 'execute_at', 'not_after', 'next_action_at', 'wake_after', 'armed_by', 'updated_at',
]; // prettier-ignore
const PAUSE = ['paused', 'pause_reason', 'paused_at', 'paused_by', 'resumed_at', 'resumed_by'];
const CASE = ['reason', 'owner', 'owned_at', 'closed_at', 'closed_by', 'close_reason'];
/** Whether events go to an endpoint, and what is queued for it again. */
const ENDPOINT_STATUS = [
  'status', 'status_reason', 'status_changed_at', 'failing_since', 'failures', 'replay_from', 'replay_asked_at',
]; // prettier-ignore
const RESOLUTION_END = ['approved_by', 'approved_at', 'voided_at', 'void_reason'];

const API: RoleGrants = {
  // provider_ref: only to forget it, when two people send again (trigger payment_object_of_sender).
  payment: { ...APPEND, update: [...PAYMENT_MOVES, 'provider_ref'] },
  payment_transition: APPEND,
  evidence: APPEND,
  outbox: { insert: 'all' },
  // The columns that a repeat is found by; what an event says is for the worker.
  webhook_inbox: { insert: 'all', select: ['provider', 'account', 'event_id'] },
  review_case: { ...APPEND, update: CASE },
  resolution: { ...APPEND, update: RESOLUTION_END },
  payment_return: READ,
  rate_limit: READ,
  rate_limit_bucket: { ...APPEND, update: ['rate_per_second', 'burst', 'tokens', 'granted', 'refilled_at'] },
  audit_log: { insert: 'all' },
  data_key: APPEND,
  webhook_endpoint: {
    ...APPEND,
    update: [
      ...ENDPOINT_STATUS, 'secret', 'secret_key_id', 'previous_secret', 'previous_secret_key_id',
      'previous_secret_until',
    ], // prettier-ignore
  },
  webhook_delivery: { ...APPEND, update: ['next_try_at', 'tries', 'result', 'done_at'] },
  // Only a generation that two people approved (policy submission_approved_by_two); attempts are the worker's.
  submission: { ...APPEND, update: ['proof', 'closed_evidence'] },
  submission_attempt: READ,
  lane: { ...APPEND, update: PAUSE },
  setting: READ,
  // Who calls is known only after these were read.
  tenant: { select: ['id', 'pseudonym', 'lateness_limit_seconds', 'allows_class_d', 'class_d_max_minor'] },
  api_key: {
    select: ['id', 'tenant_id', 'scopes', 'digest', 'pepper_key_id', 'expires_at', 'revoked_at'],
  },
  revoked_person: { select: ['subject'] },
  schema_migration: READ,
};

const WORKER: RoleGrants = {
  payment: {
    ...APPEND,
    update: [...PAYMENT_MOVES, 'submission_started_at', 'provider_ref', 'last_woken_at'],
  },
  payment_transition: APPEND,
  evidence: APPEND,
  outbox: FULL,
  webhook_inbox: {
    ...APPEND,
    update: ['payment_id', 'tries', 'next_try_at', 'taken_until', 'result', 'processed_at'],
  },
  review_case: { ...APPEND, update: CASE },
  resolution: { ...APPEND, update: RESOLUTION_END },
  payment_return: APPEND,
  audit_log: APPEND,
  audit_anchor: APPEND,
  audit_anchor_signature: APPEND,
  audit_anchor_leaf: APPEND,
  data_key: APPEND,
  webhook_endpoint: { select: 'all', update: ENDPOINT_STATUS },
  webhook_delivery: {
    ...APPEND,
    update: [
      'next_try_at', 'taken_until', 'takes', 'tries', 'last_try_at', 'last_code', 'last_http_status', 'last_ms',
      'result', 'done_at',
    ], // prettier-ignore
    delete: true,
  },
  submission: { ...APPEND, update: ['key_valid_until', 'commit_target', 'closed_evidence', 'proof'] },
  submission_attempt: {
    ...APPEND,
    update: [
      'owner', 'call_started_at', 'closed_at', 'result_class', 'evidence', 'code', 'provider_ref', 'request_id',
      'http_status', 'replayed',
    ], // prettier-ignore
  },
  // Rate, burst and cap are limits: an administrator's.
  lane: {
    ...APPEND,
    update: [
      'tokens', 'refilled_at', ...PAUSE, 'wait_until', 'throttle_step', 'breaker', 'breaker_reason', 'recent',
      'opened_at', 'probe_at', 'probe_step', 'probe_payment_id', 'probe_generation', 'probe_no', 'probe_until',
    ], // prettier-ignore
  },
  worker: FULL,
  setting: { ...APPEND, update: 'all' },
  due_slot: { select: 'all', delete: true },
  tenant: READ,
  settlement_file: {
    ...APPEND,
    update: ['rows_done', 'rows_known', 'first_booked_at', 'last_booked_at', 'finished_at'],
  },
  settlement_row: { ...APPEND, update: ['payment_id', 'generation', 'bucket', 'reason', 'follow_up'] },
  settlement_fault: APPEND,
  settlement_missing: { ...APPEND, update: ['appeared_at'] },
  settlement_count: { ...APPEND, update: ['rows'] },
  schema_migration: READ,
};

const RELAY: RoleGrants = {
  outbox: FULL,
  due_slot: FULL,
  payment: {
    select: ['id', 'tenant_id', 'state', 'version', 'execute_at', 'provider', 'lane', 'next_action_at'],
    update: ['wake_after'],
  },
  // Whether a lane's probe is still under way.
  submission_attempt: { select: ['payment_id', 'generation', 'no', 'closed_at'] },
  lane: READ,
  setting: READ,
  tenant: { select: ['id', 'pseudonym'] },
};

/** Everything but ciphertexts and the digests of keys and destinations. */
const READER: RoleGrants = {
  payment: {
    select: [
      'id', 'tenant_id', 'idempotency_key', 'fingerprint', 'fingerprint_version', 'amount', 'currency',
      'destination_key_id', 'digest_key_id', 'provider', 'lane', 'reference', 'description', 'metadata', 'execute_at',
      'not_after', 'state', 'version', 'submission_started_at', 'provider_ref', 'next_action_at', 'last_woken_at',
      'wake_after', 'armed_by', 'created_at', 'updated_at', 'created_by',
    ], // prettier-ignore
  },
  submission: {
    select: [
      'payment_id', 'generation', 'provider_key', 'parameters_key_id', 'parameters_sha256', 'adapter',
      'adapter_version', 'api_version', 'credential_id', 'account', 'base_url', 'commit_target', 'key_valid_until',
      'opened_at', 'closed_evidence', 'proof', 'capability_class',
    ], // prettier-ignore
  },
  webhook_inbox: {
    select: [
      'id', 'provider', 'account', 'event_id', 'type', 'occurred_at', 'key_id', 'received_at', 'payment_id', 'tries',
      'next_try_at', 'taken_until', 'result', 'processed_at',
    ], // prettier-ignore
  },
  webhook_endpoint: {
    select: [
      'id', 'tenant_id', 'url', 'description', 'event_types', 'status', 'status_reason', 'status_changed_at',
      'secret_key_id', 'previous_secret_key_id', 'previous_secret_until', 'failing_since', 'failures', 'replay_from',
      'replay_asked_at', 'created_at', 'created_by',
    ], // prettier-ignore
  },
  webhook_delivery: READ,
  data_key: { select: ['id', 'tenant_id', 'month', 'kek_id', 'created_at'] },
  retired_key_encryption_key: READ,
  payment_transition: READ,
  evidence: READ,
  outbox: READ,
  review_case: READ,
  resolution: READ,
  payment_return: READ,
  submission_attempt: READ,
  lane: READ,
  worker: READ,
  setting: READ,
  due_slot: READ,
  tenant: READ,
  settlement_file: READ,
  settlement_row: READ,
  settlement_fault: READ,
  settlement_missing: READ,
  settlement_count: READ,
  rate_limit: READ,
  rate_limit_bucket: READ,
  revoked_person: READ,
  audit_anchor: READ,
  schema_migration: READ,
};

/** What proves the history, for those who verify it. */
const PROOF: RoleGrants = { audit_log: READ, audit_anchor_signature: READ, audit_anchor_leaf: READ };

const AUDITOR: RoleGrants = {
  ...READER,
  ...PROOF,
  api_key: { select: ['id', 'tenant_id', 'name', 'scopes', 'created_at', 'expires_at', 'revoked_at'] },
};

const ADMIN: RoleGrants = {
  tenant: {
    ...APPEND,
    update: ['allows_class_d', 'class_d_max_minor', 'lateness_limit_seconds', 'unique_references'],
  },
  api_key: { ...APPEND, update: ['revoked_at'] },
  // Wrapped keys open nothing without the key file; deleting a tenant's shreds what they sealed.
  data_key: { select: 'all', update: ['wrapped', 'kek_id'], delete: true },
  retired_key_encryption_key: { ...APPEND, delete: true },
  revoked_person: { select: 'all', insert: ['subject', 'revoked_by', 'reason'], delete: true },
  // Open proposals of revoked people, to end them (policy resolution_of_revoked).
  resolution: {
    select: ['id', 'proposed_by', 'approved_at', 'voided_at', 'void_reason'],
    update: ['voided_at', 'void_reason'],
  },
  lane: { select: 'all', update: ['rate', 'burst', 'cap', 'breaker_enabled'] },
  rate_limit: { ...APPEND, update: ['rate_per_second', 'burst', 'changed_at'], delete: true },
  audit_log: { insert: 'all' },
  schema_migration: READ,
};

/** A copy is of everything. */
const BACKUP: RoleGrants = Object.fromEntries(
  [...Object.keys(READER), ...Object.keys(PROOF), 'api_key'].map((table) => [table, READ]),
);

/**
 * What each role may do, whole: processes refuse to start when their role may do more, and a test
 * compares it with the catalogue. A migration that grants something adds it here.
 */
export const GRANTS: Readonly<Record<Exclude<DatabaseRole, 'payments_owner'>, RoleGrants>> = {
  payments_api: API,
  payments_worker: WORKER,
  payments_relay: RELAY,
  payments_read: READER,
  payments_auditor: AUDITOR,
  payments_admin: ADMIN,
  payments_backup: BACKUP,
};

/** Functions of the schema that are called as whoever writes or reads; triggers' own need no right. */
export const FUNCTION_GRANTS: Readonly<Record<string, readonly DatabaseRole[]>> = {
  payment_edge_is_legal: ['payments_api', 'payments_worker'],
  payment_step_is_legal: ['payments_api', 'payments_worker'],
  payment_transition_canonical: ['payments_api', 'payments_worker', 'payments_read', 'payments_auditor'],
};

/**
 * Tables whose rows belong to tenants: row-level security is enabled and forced on each. Tables of
 * whole lanes and the server are not here, and `api_key` and `tenant`, which are read to learn who
 * calls; what the API may do with the rest is bounded by its grants.
 */
export const TENANT_TABLES: readonly string[] = [
  'payment', 'payment_transition', 'evidence', 'review_case', 'resolution', 'payment_return', 'submission',
  'submission_attempt', 'data_key', 'audit_log', 'rate_limit', 'rate_limit_bucket',
  'webhook_endpoint', 'webhook_delivery',
]; // prettier-ignore
