/**
 * The rules that make history hold in the database itself, whatever a program does: legal edges
 * only, append-only transitions, a hash chain that no process can choose, frozen money fields.
 */

/** Frozen copy of what the transition table generates; a test compares both. */
export const EDGE_CHECK = `CREATE OR REPLACE FUNCTION payment_edge_is_legal(from_state text, to_state text, cause text)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(from_state, 'none') || '>' || to_state || ':' || cause IN (
    'held>cancelled:cancel',
    'held>expired:expire',
    'held>needs_review:recover',
    'held>scheduled:release',
    'needs_review>failed:record-outcome',
    'needs_review>failed:resolve',
    'needs_review>submitted:record-outcome',
    'needs_review>submitted:resolve',
    'needs_review>submitting:resolve',
    'needs_review>succeeded:record-outcome',
    'needs_review>succeeded:resolve',
    'none>scheduled:create',
    'scheduled>cancelled:cancel',
    'scheduled>expired:expire',
    'scheduled>held:hold',
    'scheduled>held:prepare_failed',
    'scheduled>held:recovery',
    'scheduled>needs_review:recover',
    'scheduled>scheduled:reschedule',
    'scheduled>submitting:begin-submission',
    'submitted>failed:record-outcome',
    'submitted>needs_review:escalate',
    'submitted>succeeded:record-outcome',
    'submitting>failed:record-outcome',
    'submitting>needs_review:escalate',
    'submitting>submitted:record-outcome',
    'submitting>submitting:resend',
    'submitting>succeeded:record-outcome',
    'submitting>unknown:record-outcome',
    'succeeded>returned:record-return',
    'unknown>failed:record-outcome',
    'unknown>needs_review:escalate',
    'unknown>submitted:record-outcome',
    'unknown>submitting:resend',
    'unknown>succeeded:record-outcome')
$$`;

/** One transition as the text that is hashed. Lines, since no part may hold a line break. */
const CANONICAL = `CREATE FUNCTION payment_transition_canonical(entry payment_transition)
RETURNS text LANGUAGE sql STABLE AS $$
  SELECT concat_ws(E'\\n', 'transition/v1', entry.payment_id, entry.seq, entry.tenant_id,
    coalesce(entry.from_state, 'none'), entry.to_state, entry.cause, entry.actor,
    to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), entry.detail)
$$`;

/**
 * Runs for every inserted transition: checks the edge, ties it to the row before, takes the time
 * from the database's clock and computes hash = SHA-256(previous hash, canonical text).
 */
const BEFORE_TRANSITION = `CREATE FUNCTION payment_transition_before_insert()
RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE previous payment_transition;
BEGIN
  IF NOT payment_edge_is_legal(NEW.from_state, NEW.to_state, NEW.cause) THEN
    RAISE EXCEPTION 'payment %: no transition leads from % to % by %',
      NEW.payment_id, coalesce(NEW.from_state, 'none'), NEW.to_state, NEW.cause
      USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_transition_edge';
  END IF;
  NEW.at := clock_timestamp();
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
END $$`;

const REFUSE_CHANGE = `CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is refused: its rows are history', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'insufficient_privilege', CONSTRAINT = 'history_is_append_only';
END $$`;

/** Frozen copy of what the transition table generates; a test compares both. */
export const STEP_CHECK = `CREATE OR REPLACE FUNCTION payment_step_is_legal(from_state text, to_state text)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT from_state || '>' || to_state IN (
    'held>cancelled',
    'held>expired',
    'held>needs_review',
    'held>scheduled',
    'needs_review>failed',
    'needs_review>submitted',
    'needs_review>submitting',
    'needs_review>succeeded',
    'scheduled>cancelled',
    'scheduled>expired',
    'scheduled>held',
    'scheduled>needs_review',
    'scheduled>scheduled',
    'scheduled>submitting',
    'submitted>failed',
    'submitted>needs_review',
    'submitted>succeeded',
    'submitting>failed',
    'submitting>needs_review',
    'submitting>submitted',
    'submitting>submitting',
    'submitting>succeeded',
    'submitting>unknown',
    'succeeded>returned',
    'unknown>failed',
    'unknown>needs_review',
    'unknown>submitted',
    'unknown>submitting',
    'unknown>succeeded')
$$`;

/*
 * The guards below are conditions of their triggers, so that a lawful row costs one expression and
 * no call; the functions run only to refuse.
 */

/** One legal step at a time, and never a state without a version or the reverse. */
const REFUSE_STEP = `CREATE FUNCTION payment_refuse_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.version <> OLD.version + 1 THEN
    RAISE EXCEPTION 'payment %: version goes from % to %, not by one', OLD.id, OLD.version, NEW.version
      USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_version_step';
  END IF;
  RAISE EXCEPTION 'payment %: no transition leads from % to %', OLD.id, OLD.state, NEW.state
    USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_edge';
END $$`;
const STEP_IS_WRONG = `(OLD.state, OLD.version) IS DISTINCT FROM (NEW.state, NEW.version)
  AND (NEW.version <> OLD.version + 1 OR NOT payment_step_is_legal(OLD.state, NEW.state))`;

const FROZEN = [
  'id', 'tenant_id', 'idempotency_key', 'fingerprint', 'fingerprint_version', 'amount', 'currency',
  'destination', 'destination_key_id', 'destination_digest', 'digest_key_id', 'provider', 'lane',
  'reference', 'description', 'metadata', 'created_at', 'created_by',
]; // prettier-ignore

const REFUSE_FROZEN = `CREATE FUNCTION payment_refuse_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'payment %: what was accepted never changes', OLD.id
    USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_frozen';
END $$`;

const differ = (columns: readonly string[]): string =>
  `(${columns.map((c) => `NEW.${c}`).join(', ')}) IS DISTINCT FROM (${columns.map((c) => `OLD.${c}`).join(', ')})`;

/** The times may move while the payment waits, and the submission start is written once. */
const REFUSE_TIMES = `CREATE FUNCTION payment_refuse_times() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.state <> 'scheduled' AND (NEW.execute_at, NEW.not_after) IS DISTINCT FROM (OLD.execute_at, OLD.not_after) THEN
    RAISE EXCEPTION 'payment %: its times are fixed in state %', OLD.id, OLD.state
      USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_times_fixed';
  END IF;
  RAISE EXCEPTION 'payment %: submission start is written once', OLD.id
    USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_submission_start_once';
END $$`;
const TIMES_ARE_FIXED = `(OLD.state <> 'scheduled' AND ${differ(['execute_at', 'not_after'])})
  OR (OLD.submission_started_at IS NOT NULL AND ${differ(['submission_started_at'])})`;

/** A closed attempt and a stored submission are evidence: they keep what they said. */
const REFUSE_ATTEMPT = `CREATE FUNCTION submission_attempt_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'payment %: attempt % is closed', OLD.payment_id, OLD.no
    USING ERRCODE = 'check_violation', CONSTRAINT = 'submission_attempt_closed';
END $$`;

const SUBMISSION_FROZEN = [
  'payment_id', 'generation', 'provider_key', 'parameters', 'parameters_sha256', 'adapter', 'adapter_version',
  'api_version', 'account', 'base_url', 'opened_at',
]; // prettier-ignore
const REFUSE_SUBMISSION = `CREATE FUNCTION submission_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'payment %: generation % is frozen', OLD.payment_id, OLD.generation
    USING ERRCODE = 'check_violation', CONSTRAINT = 'submission_frozen';
END $$`;

interface TriggerOptions {
  readonly level?: 'ROW' | 'STATEMENT';
  /** SQL condition on OLD and NEW. */
  readonly when?: string;
}
const trigger = (name: string, table: string, event: string, call: string, options: TriggerOptions = {}) => [
  `CREATE TRIGGER ${name} ${event} ON ${table} FOR EACH ${options.level ?? 'ROW'}
   ${options.when ? `WHEN (${options.when})` : ''} EXECUTE FUNCTION ${call}()`,
  // ALWAYS: a session in replica mode must not slip past.
  `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${name}`,
];

const appendOnly = (table: string) => [
  ...trigger(`${table}_no_change`, table, 'BEFORE UPDATE OR DELETE', 'refuse_change'),
  ...trigger(`${table}_no_truncate`, table, 'BEFORE TRUNCATE', 'refuse_change', { level: 'STATEMENT' }),
];

const undeletable = (table: string) => [
  ...trigger(`${table}_no_delete`, table, 'BEFORE DELETE', 'refuse_change'),
  ...trigger(`${table}_no_truncate`, table, 'BEFORE TRUNCATE', 'refuse_change', { level: 'STATEMENT' }),
];

/** In the order in which they must run; functions before their triggers. */
export const HISTORY_RULES: readonly string[] = [
  EDGE_CHECK,
  STEP_CHECK,
  CANONICAL,
  BEFORE_TRANSITION,
  REFUSE_CHANGE,
  REFUSE_STEP,
  REFUSE_FROZEN,
  REFUSE_TIMES,
  REFUSE_ATTEMPT,
  REFUSE_SUBMISSION,
  ...trigger(
    'payment_transition_chain',
    'payment_transition',
    'BEFORE INSERT',
    'payment_transition_before_insert',
  ),
  ...appendOnly('payment_transition'),
  ...appendOnly('evidence'),
  ...undeletable('payment'),
  ...undeletable('submission'),
  ...undeletable('submission_attempt'),
  ...trigger('payment_state', 'payment', 'BEFORE UPDATE OF state, version', 'payment_refuse_step', {
    when: STEP_IS_WRONG,
  }),
  ...trigger('payment_frozen', 'payment', `BEFORE UPDATE OF ${FROZEN.join(', ')}`, 'payment_refuse_frozen', {
    when: differ(FROZEN),
  }),
  ...trigger(
    'payment_times',
    'payment',
    'BEFORE UPDATE OF execute_at, not_after, submission_started_at',
    'payment_refuse_times',
    {
      when: TIMES_ARE_FIXED,
    },
  ),
  ...trigger(
    'submission_attempt_closed',
    'submission_attempt',
    'BEFORE UPDATE',
    'submission_attempt_refuse_update',
    {
      when: 'OLD.closed_at IS NOT NULL',
    },
  ),
  ...trigger('submission_frozen', 'submission', 'BEFORE UPDATE', 'submission_refuse_update', {
    when: differ(SUBMISSION_FROZEN),
  }),
];
