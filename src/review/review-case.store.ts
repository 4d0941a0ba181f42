import type { PaymentState } from '../domain/payment-state.js';
import type { Sql, Statement } from '../persistence/database.js';

/** A case with the payment that it is about. Times are Postgres texts of the database's clock. */
export interface ReviewCaseRow {
  readonly case_id: string;
  readonly payment_id: string;
  readonly reason: string;
  readonly owner: string | null;
  readonly owned_at: string | null;
  readonly opened_at: string;
  readonly due_at: string;
  readonly closed_at: string | null;
  readonly closed_by: string | null;
  readonly close_reason: string | null;
  /** Whole seconds since it was opened, until it was closed or now. */
  readonly age_seconds: number;
  /** Open past its deadline. */
  readonly is_overdue: boolean;
  readonly state: PaymentState;
  readonly version: number;
  readonly provider: string;
  readonly reference: string | null;
  /** Minor units: what may have moved, or moved wrongly. */
  readonly amount: bigint;
  readonly currency: string;
  /** The proposal that waits for a second person; null: none. */
  readonly open_resolution: string | null;
}

const COLUMNS = `c.id::text AS case_id, c.payment_id, c.reason, c.owner, c.owned_at, c.opened_at, c.due_at,
  c.closed_at, c.closed_by, c.close_reason,
  floor(extract(epoch FROM coalesce(c.closed_at, clock_timestamp()) - c.opened_at))::integer AS age_seconds,
  c.closed_at IS NULL AND c.due_at < clock_timestamp() AS is_overdue,
  p.state, p.version, p.provider, p.reference, p.amount, p.currency,
  (SELECT r.id FROM resolution r WHERE r.payment_id = c.payment_id AND r.approved_at IS NULL
     AND r.voided_at IS NULL) AS open_resolution`;

const LIST: Statement = {
  name: 'review-list',
  text: `SELECT ${COLUMNS} FROM review_case c JOIN payment p ON p.id = c.payment_id
    WHERE c.tenant_id = $1 AND c.closed_at IS NULL AND c.id > $2::bigint
    ORDER BY c.id LIMIT $3`,
};

/** Open cases of a tenant, oldest first, after the case `after` (index review_case_open). */
export async function listOpenCases(
  sql: Sql,
  of: { readonly tenantId: string; readonly after: string; readonly limit: number },
): Promise<readonly ReviewCaseRow[]> {
  return (await sql.query<ReviewCaseRow>(LIST, [of.tenantId, of.after, of.limit])).rows;
}

const FIND: Statement = {
  name: 'review-find',
  text: `SELECT ${COLUMNS} FROM review_case c JOIN payment p ON p.id = c.payment_id
    WHERE c.payment_id = $2 AND c.tenant_id = $1 ORDER BY c.closed_at IS NULL DESC, c.id DESC LIMIT 1`,
};

/** The open case of the tenant's payment, else its newest (index review_case_by_payment), or null. */
export async function findCase(sql: Sql, tenantId: string, paymentId: string): Promise<ReviewCaseRow | null> {
  return (await sql.query<ReviewCaseRow>(FIND, [tenantId, paymentId])).rows[0] ?? null;
}

export interface EvidenceRow {
  readonly id: string;
  readonly at: string;
  readonly source: string;
  readonly kind: string;
  readonly generation: number | null;
  readonly attempt_no: number | null;
  readonly code: string | null;
  readonly provider_ref: string | null;
  readonly status: string | null;
  readonly observed_amount: string | null;
  readonly observed_currency: string | null;
}

/** A payment in review is looked up once an hour; beyond this the newest are what counts. */
export const EVIDENCE_LIMIT = 500;

const EVIDENCE: Statement = {
  name: 'review-evidence',
  text: `SELECT * FROM (SELECT id::text AS id, at, source, kind, generation, attempt_no, code, provider_ref, status,
      observed_amount::text AS observed_amount, observed_currency
    FROM evidence WHERE payment_id = $1 ORDER BY at DESC, id DESC LIMIT ${EVIDENCE_LIMIT}) e ORDER BY at, e.id::bigint`,
};

/** The newest evidence of a payment, oldest first (index evidence_by_payment). */
export async function listEvidence(sql: Sql, paymentId: string): Promise<readonly EvidenceRow[]> {
  return (await sql.query<EvidenceRow>(EVIDENCE, [paymentId])).rows;
}

const OWN: Statement = {
  name: 'review-own',
  text: `UPDATE review_case SET owner = $3, owned_at = clock_timestamp()
    WHERE payment_id = $2 AND tenant_id = $1 AND closed_at IS NULL`,
};

/** Makes somebody the owner of the open case, whoever was before. @returns false: none is open. */
export async function ownCase(
  sql: Sql,
  tenantId: string,
  paymentId: string,
  actor: string,
): Promise<boolean> {
  return (await sql.query(OWN, [tenantId, paymentId, actor])).rowCount === 1;
}

const CLOSE: Statement = {
  name: 'review-close',
  text: `WITH p AS (SELECT id, state FROM payment WHERE id = $2 FOR NO KEY UPDATE)
    UPDATE review_case c SET closed_at = clock_timestamp(), closed_by = $3, close_reason = $4
      FROM p
    WHERE p.id = c.payment_id AND p.state <> 'needs_review'
      AND c.payment_id = $2 AND c.tenant_id = $1 AND c.closed_at IS NULL`,
};

/**
 * Closes the open case of a payment that nobody has to decide about any more: a contradiction that
 * was looked into. Holds the payment's row, so that a move into review at the same moment is seen.
 * @returns false: none is open, or the payment is in review.
 */
export async function closeCase(
  sql: Sql,
  of: {
    readonly tenantId: string;
    readonly paymentId: string;
    readonly actor: string;
    readonly reason: string;
  },
): Promise<boolean> {
  return (await sql.query(CLOSE, [of.tenantId, of.paymentId, of.actor, of.reason])).rowCount === 1;
}
