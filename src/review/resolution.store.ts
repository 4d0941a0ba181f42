import type { PaymentState } from '../domain/payment-state.js';
import type { StoredDestination } from '../encryption/destination-cipher.js';
import type { Sql, Statement } from '../persistence/database.js';
import {
  PROPOSAL_LIFE_HOURS,
  type KnownFact,
  type Proposal,
  type ProofKind,
  type ReasonCode,
  type ResolutionOutcome,
  type ReviewFacts,
} from './resolution.js';
import { noneRevoked } from './revoked-people.store.js';

/** The head row and its newest generation, locked: nothing moves the payment until the transaction ends. */
export interface LockedPayment extends StoredDestination, Omit<ReviewFacts, 'evidence'> {
  readonly state: PaymentState;
  readonly version: number;
  readonly provider: string;
  readonly reference: string | null;
  readonly description: string | null;
}

const LOCK: Statement = {
  name: 'resolution-lock-payment',
  text: `SELECT p.id, p.tenant_id, p.state, p.version, p.provider, p.amount, p.currency, p.destination,
    p.destination_key_id, p.destination_digest, p.digest_key_id, p.reference, p.description, p.provider_ref,
    clock_timestamp() < p.not_after AS before_deadline,
    s.generation::integer AS generation, s.capability_class,
    coalesce(clock_timestamp() < s.key_valid_until, false) AS key_alive,
    coalesce(z.no, 0)::integer AS attempts, z.result_class AS last_class,
    coalesce(z.http_status >= 500 AND z.replayed, false) AS last_error_stored,
    (SELECT extract(epoch FROM clock_timestamp() - max(a.call_started_at)) * 1000 FROM submission_attempt a
      WHERE a.payment_id = p.id)::double precision AS since_last_send_ms
  FROM payment p
  LEFT JOIN submission s ON s.payment_id = p.id
   AND s.generation = (SELECT max(g.generation) FROM submission g WHERE g.payment_id = p.id)
  LEFT JOIN submission_attempt z ON z.payment_id = p.id AND z.generation = s.generation
   AND z.no = (SELECT max(b.no) FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation)
  WHERE p.tenant_id = $1 AND p.id = $2 FOR NO KEY UPDATE OF p`,
};

/** The tenant's payment, locked (primary keys), or null. @throws LockTimeout after 2 s. */
export async function lockPayment(
  tx: Sql,
  tenantId: string,
  paymentId: string,
): Promise<LockedPayment | null> {
  return (await tx.query<LockedPayment>(LOCK, [tenantId, paymentId])).rows[0] ?? null;
}

const DESTINATION_KEY: Statement = {
  name: 'resolution-destination-key',
  text: 'SELECT destination_key_id FROM payment WHERE tenant_id = $1 AND id = $2',
};

/** The id of the key that opens the payment's destination (primary key), or null without such a payment. */
export async function findDestinationKey(
  sql: Sql,
  tenantId: string,
  paymentId: string,
): Promise<string | null> {
  const { rows } = await sql.query<{ destination_key_id: string }>(DESTINATION_KEY, [tenantId, paymentId]);
  return rows[0]?.destination_key_id ?? null;
}

const FACTS: Statement = {
  name: 'resolution-facts',
  text: `SELECT id, source, kind, status, observed_amount, observed_currency
    FROM evidence WHERE payment_id = $1 ORDER BY id`,
};

/** Everything that is known of a payment (index evidence_by_payment), oldest first. */
export async function readFacts(tx: Sql, paymentId: string): Promise<readonly KnownFact[]> {
  return (await tx.query<KnownFact>(FACTS, [paymentId])).rows;
}

/**
 * SHA-256 over the different facts that are known, sorted. A row that only repeats one, such as the
 * next lookup that finds nothing, changes nothing that was weighed; any new fact does.
 */
const DIGEST = (payment: string): string => `(SELECT sha256(convert_to(coalesce(
    string_agg(f.fact, E'\\n' ORDER BY f.fact COLLATE "C"), ''), 'UTF8'))
  FROM (SELECT DISTINCT jsonb_build_array(e.generation, e.attempt_no, e.source, e.kind, e.code, e.provider_ref,
          e.status, e.observed_amount::text, e.observed_currency)::text AS fact
          FROM evidence e WHERE e.payment_id = ${payment}) f)`;

export interface ResolutionRow {
  readonly id: string;
  readonly payment_id: string;
  readonly outcome: ResolutionOutcome;
  readonly reason_code: ReasonCode;
  readonly payment_version: number;
  readonly evidence_ids: readonly string[];
  readonly proof_kind: ProofKind | null;
  readonly proof_statement: string | null;
  readonly proposed_by: string;
  readonly proposed_at: string;
  readonly expires_at: string;
  readonly approved_by: string | null;
  readonly approved_at: string | null;
  readonly voided_at: string | null;
  readonly void_reason: string | null;
  /** On the database's clock. */
  readonly is_expired: boolean;
  /** What is known has not changed since. */
  readonly is_current: boolean;
}

const LIFE = `interval '${PROPOSAL_LIFE_HOURS} hours'`;
const COLUMNS = `r.id, r.payment_id, r.outcome, r.reason_code, r.payment_version,
  r.evidence_ids::text[] AS evidence_ids, r.proof_kind, r.proof_statement, r.proposed_by, r.proposed_at,
  r.proposed_at + ${LIFE} AS expires_at, r.approved_by, r.approved_at, r.voided_at, r.void_reason,
  r.proposed_at < clock_timestamp() - ${LIFE} AS is_expired,
  r.evidence_digest = ${DIGEST('r.payment_id')} AS is_current`;

const FIND: Statement = {
  name: 'resolution-find',
  text: `SELECT ${COLUMNS} FROM resolution r WHERE r.payment_id = $1 AND r.id = $2`,
};

/** The resolution of this payment with this id (primary key), or null. */
export async function findResolution(tx: Sql, paymentId: string, id: string): Promise<ResolutionRow | null> {
  return (await tx.query<ResolutionRow>(FIND, [paymentId, id])).rows[0] ?? null;
}

const FIND_OPEN: Statement = {
  name: 'resolution-find-open',
  text: `SELECT ${COLUMNS} FROM resolution r
    WHERE r.payment_id = $1 AND r.approved_at IS NULL AND r.voided_at IS NULL`,
};

/** The open proposal of a payment (index resolution_one_open), or null. It may be expired. */
export async function findOpenResolution(tx: Sql, paymentId: string): Promise<ResolutionRow | null> {
  return (await tx.query<ResolutionRow>(FIND_OPEN, [paymentId])).rows[0] ?? null;
}

const LIST: Statement = {
  name: 'resolution-list',
  text: `SELECT ${COLUMNS} FROM resolution r WHERE r.payment_id = $1 ORDER BY r.proposed_at, r.id`,
};

/** Every proposal of a payment (index resolution_by_payment), oldest first. */
export async function listResolutions(sql: Sql, paymentId: string): Promise<readonly ResolutionRow[]> {
  return (await sql.query<ResolutionRow>(LIST, [paymentId])).rows;
}

const VOID: Statement = {
  name: 'resolution-void',
  text: `UPDATE resolution SET voided_at = clock_timestamp(), void_reason = $2
    WHERE id = $1 AND approved_at IS NULL AND voided_at IS NULL`,
};

/** By these statements; the database itself writes `payment_moved` too, and `proposer_revoked`. */
export type VoidReason = 'superseded' | 'expired' | 'evidence_changed' | 'payment_moved';

/** Ends an open proposal. Twice: nothing. */
export async function voidResolution(tx: Sql, id: string, reason: VoidReason): Promise<void> {
  await tx.query(VOID, [id, reason]);
}

const INSERT: Statement = {
  name: 'resolution-insert',
  text: `INSERT INTO resolution (id, payment_id, tenant_id, outcome, reason_code, payment_version, evidence_digest,
      evidence_ids, proof_kind, proof_statement, proposed_by)
    SELECT $1, p.id, p.tenant_id, $3, $4, p.version, ${DIGEST('p.id')}, $5::bigint[], $6, $7, $8
      FROM payment p WHERE p.id = $2 AND ${noneRevoked('$8::text')}`,
};

/**
 * Stores a proposal, bound to the payment's version and to what is known now. The payment is locked, and
 * people are held.
 * @returns false when the actor is revoked.
 */
export async function insertResolution(
  tx: Sql,
  of: {
    readonly id: string;
    readonly paymentId: string;
    readonly proposal: Proposal;
    readonly actor: string;
  },
): Promise<boolean> {
  const { outcome, reasonCode, evidenceIds, proof } = of.proposal;
  const { rowCount } = await tx.query(INSERT, [
    of.id,
    of.paymentId,
    outcome,
    reasonCode,
    evidenceIds.map(String),
    proof?.kind ?? null,
    proof?.statement ?? null,
    of.actor,
  ]);
  return rowCount === 1;
}

const APPROVE: Statement = {
  name: 'resolution-approve',
  text: `UPDATE resolution r SET approved_by = $2, approved_at = clock_timestamp()
    WHERE r.id = $1 AND r.approved_at IS NULL AND r.voided_at IS NULL AND r.proposed_by <> $2
      AND r.proposed_at >= clock_timestamp() - ${LIFE} AND r.evidence_digest = ${DIGEST('r.payment_id')}
      AND r.payment_version = (SELECT p.version FROM payment p WHERE p.id = r.payment_id)
      AND ${noneRevoked('r.proposed_by', '$2::text')}`,
};

/**
 * Approves an open proposal, if it is another person's, young, and about what is known now, and neither
 * person is revoked. People are held.
 * @returns false when any of that does not hold. Twice: false.
 */
export async function approveResolution(tx: Sql, id: string, actor: string): Promise<boolean> {
  return (await tx.query(APPROVE, [id, actor])).rowCount === 1;
}

const FILE: Statement = {
  name: 'resolution-file-decision',
  text: `INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, code, status, observed_amount, observed_currency)
    SELECT p.id, p.tenant_id, $2, 'person', 'resolution', $3, $4,
           CASE WHEN $4::text = 'succeeded' THEN p.amount END, CASE WHEN $4::text = 'succeeded' THEN p.currency END
      FROM payment p WHERE p.id = $1`,
};

/** Files what people decided beside what the provider said. @param status as of the provider port. */
export async function fileDecision(
  tx: Sql,
  of: {
    readonly paymentId: string;
    readonly generation: number | null;
    readonly reasonCode: string;
    readonly status: 'succeeded' | 'failed' | 'pending' | null;
  },
): Promise<void> {
  await tx.query(FILE, [of.paymentId, of.generation, of.reasonCode, of.status]);
}
