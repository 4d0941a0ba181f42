/**
 * What each role may do, as the migration grants it. Frozen with it; `GRANTS` is what holds now, and a
 * test compares that with the catalogue.
 */

/** Columns that a reader of everything sees; the ciphertexts are left out. */
const PAYMENT_READABLE = `id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency,
  destination_key_id, digest_key_id, provider, lane, reference, description, metadata, execute_at, not_after, state,
  version, submission_started_at, provider_ref, next_action_at, last_woken_at, wake_after, armed_by, created_at,
  updated_at, created_by`;
const SUBMISSION_READABLE = `payment_id, generation, provider_key, parameters_key_id, parameters_sha256, adapter,
  adapter_version, api_version, credential_id, account, base_url, commit_target, key_valid_until, opened_at,
  closed_evidence, proof, capability_class`;
const INBOX_READABLE = `id, provider, account, event_id, type, occurred_at, key_id, received_at, payment_id, tries,
  next_try_at, taken_until, result, processed_at`;

const PAYMENT_MOVES = `state, version, execute_at, not_after, next_action_at, wake_after, armed_by, updated_at`;
const PAUSE = `paused, pause_reason, paused_at, paused_by, resumed_at, resumed_by`;
const CASE_ENDS = `owner, owned_at, closed_at, closed_by, close_reason`;
const RESOLUTION_ENDS = `approved_by, approved_at, voided_at, void_reason`;

const API: readonly string[] = [
  `SELECT, INSERT, UPDATE (${PAYMENT_MOVES}, provider_ref) ON payment`,
  `SELECT, INSERT ON payment_transition`,
  `SELECT, INSERT ON evidence`,
  `INSERT ON outbox`,
  // An event's content is for the worker; the columns are those that a repeat is found by.
  `INSERT, SELECT (provider, account, event_id) ON webhook_inbox`,
  `SELECT, INSERT, UPDATE (reason, ${CASE_ENDS}) ON review_case`,
  `SELECT, INSERT, UPDATE (${RESOLUTION_ENDS}) ON resolution`,
  `SELECT ON payment_return`,
  // Row-level security lets in only a generation that two people approved.
  `SELECT, INSERT, UPDATE (proof, closed_evidence) ON submission`,
  `SELECT ON submission_attempt`,
  `SELECT, INSERT, UPDATE (${PAUSE}) ON lane`,
  `SELECT ON setting`,
  // Who calls is known only after these were read, so their rows are not those of one tenant.
  `SELECT (id, pseudonym, lateness_limit_seconds, allows_class_d, class_d_max_minor) ON tenant`,
  `SELECT (id, tenant_id, scopes, digest, pepper_key_id, expires_at, revoked_at) ON api_key`,
  `SELECT ON schema_migration`,
];

const WORKER: readonly string[] = [
  `SELECT, INSERT, UPDATE (${PAYMENT_MOVES}, submission_started_at, provider_ref, last_woken_at) ON payment`,
  `SELECT, INSERT ON payment_transition`,
  `SELECT, INSERT ON evidence`,
  `SELECT, INSERT, UPDATE, DELETE ON outbox`,
  `SELECT, INSERT, UPDATE (payment_id, tries, next_try_at, taken_until, result, processed_at) ON webhook_inbox`,
  `SELECT, INSERT, UPDATE (reason, ${CASE_ENDS}) ON review_case`,
  `SELECT, INSERT, UPDATE (${RESOLUTION_ENDS}) ON resolution`,
  `SELECT, INSERT ON payment_return`,
  `SELECT, INSERT, UPDATE (key_valid_until, commit_target, closed_evidence, proof) ON submission`,
  `SELECT, INSERT, UPDATE (owner, call_started_at, closed_at, result_class, evidence, code, provider_ref,
    request_id, http_status, replayed) ON submission_attempt`,
  `SELECT, INSERT, UPDATE (tokens, refilled_at, ${PAUSE}, wait_until, throttle_step, breaker, breaker_reason, recent,
    opened_at, probe_at, probe_step, probe_payment_id, probe_generation, probe_no, probe_until) ON lane`,
  `SELECT, INSERT, UPDATE, DELETE ON worker`,
  `SELECT, INSERT, UPDATE ON setting`,
  `SELECT, DELETE ON due_slot`,
  `SELECT ON tenant`,
  `SELECT, INSERT, UPDATE (rows_done, rows_known, first_booked_at, last_booked_at, finished_at) ON settlement_file`,
  `SELECT, INSERT, UPDATE (payment_id, generation, bucket, reason, follow_up) ON settlement_row`,
  `SELECT, INSERT ON settlement_fault`,
  `SELECT, INSERT, UPDATE (appeared_at) ON settlement_missing`,
  `SELECT, INSERT, UPDATE (rows) ON settlement_count`,
  `SELECT ON schema_migration`,
];

const RELAY: readonly string[] = [
  `SELECT, INSERT, UPDATE, DELETE ON outbox`,
  `SELECT, INSERT, UPDATE, DELETE ON due_slot`,
  `SELECT (id, tenant_id, state, version, execute_at, provider, lane, next_action_at), UPDATE (wake_after) ON payment`,
  // Whether a lane's probe is still under way.
  `SELECT (payment_id, generation, no, closed_at) ON submission_attempt`,
  `SELECT ON lane`,
  `SELECT ON setting`,
  `SELECT (id, pseudonym) ON tenant`,
];

const READ: readonly string[] = [
  `SELECT (${PAYMENT_READABLE}) ON payment`,
  `SELECT (${SUBMISSION_READABLE}) ON submission`,
  `SELECT (${INBOX_READABLE}) ON webhook_inbox`,
  ...[
    'payment_transition', 'evidence', 'outbox', 'review_case', 'resolution', 'payment_return', 'submission_attempt',
    'lane', 'worker', 'setting', 'due_slot', 'tenant', 'settlement_file', 'settlement_row', 'settlement_fault',
    'settlement_missing', 'settlement_count', 'schema_migration',
  ].map((table) => `SELECT ON ${table}`),
]; // prettier-ignore

const ADMIN: readonly string[] = [
  `SELECT, INSERT, UPDATE (allows_class_d, class_d_max_minor, lateness_limit_seconds, unique_references) ON tenant`,
  `SELECT, INSERT, UPDATE (revoked_at) ON api_key`,
  `SELECT, UPDATE (rate, burst, cap, breaker_enabled) ON lane`,
  `SELECT ON schema_migration`,
];

const OF_ROLE: readonly (readonly [role: string, grants: readonly string[]])[] = [
  ['payments_api', API],
  ['payments_worker', WORKER],
  ['payments_relay', RELAY],
  ['payments_read', READ],
  ['payments_auditor', [...READ, `SELECT (id, tenant_id, name, scopes, created_at, expires_at, revoked_at) ON api_key`]],
  ['payments_admin', ADMIN],
]; // prettier-ignore

export const ROLE_GRANTS: readonly string[] = [
  ...OF_ROLE.flatMap(([role, grants]) => grants.map((grant) => `GRANT ${grant} TO ${role}`)),
  `GRANT SELECT ON ALL TABLES IN SCHEMA public TO payments_backup`,
  `GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO payments_backup`,
  // Expressions of triggers run as whoever writes.
  ...['payment_edge_is_legal(text, text, text)', 'payment_step_is_legal(text, text)'].map(
    (call) => `GRANT EXECUTE ON FUNCTION ${call} TO payments_api, payments_worker`,
  ),
  `GRANT EXECUTE ON FUNCTION payment_transition_canonical(payment_transition)
     TO payments_api, payments_worker, payments_read, payments_auditor`,
];
