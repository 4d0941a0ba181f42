import type { PaymentState } from '../domain/payment-state.js';
import { REVIEW_LOOKUP_MS } from '../domain/submission-policy.js';
import type { Sql, Statement } from '../persistence/database.js';
import { move, type MoveResult } from './gate.js';
import { isForPeopleAlone } from './review-reasons.js';

/**
 * The moves into and out of review, for the features that find a reason for them. Each runs in the
 * transaction of its caller, so that the move and what led to it are one commit. When a payment
 * leaves review, by whatever move, the database closes its case and voids its open proposals in the
 * same commit (trigger payment_left_review).
 */

/** A case that nobody decided waits this long before it is overdue. */
const DUE_IN = `interval '4 hours'`;

/** An open case takes the graver reason: what only people may close stays theirs, whatever came first. */
const KEEP_THE_GRAVER = `ON CONFLICT (payment_id) WHERE closed_at IS NULL DO UPDATE SET reason = excluded.reason
      WHERE NOT ${isForPeopleAlone('review_case.reason')} AND ${isForPeopleAlone('excluded.reason')}`;

const OPEN_CASE: Statement = {
  name: 'review-open-case',
  text: `INSERT INTO review_case (payment_id, tenant_id, reason, due_at)
    SELECT p.id, p.tenant_id, $2, clock_timestamp() + ${DUE_IN} FROM payment p WHERE p.id = $1
    ${KEEP_THE_GRAVER} RETURNING old.id IS NULL AS opened`,
};

/**
 * Opens a case for people and moves nothing: for news that contradicts a final state, which is never
 * rewritten. File the news as evidence in the same transaction. Metrics are the caller's.
 * @param reason a code: `contradiction`, `return_exceeds_payment`, …
 * An open case keeps its reason, or takes this one where only this one is for people alone.
 * @returns true when a case was opened; false when one is open already, or there is no such payment.
 * Twice: one case.
 */
export async function openCase(
  tx: Sql,
  { paymentId, reason }: { readonly paymentId: string; readonly reason: string },
): Promise<boolean> {
  const { rows } = await tx.query<{ opened: boolean }>(OPEN_CASE, [paymentId, reason]);
  return rows[0]?.opened === true;
}

export interface EscalateRequest {
  /** The tenant of the caller; null for the worker, which serves all. */
  readonly tenant: string | null;
  readonly paymentId: string;
  readonly reason: string;
  readonly actor: string;
  readonly expectedVersion?: number | null;
}

/**
 * T16 from `submitted` and `unknown`: people decide, and meanwhile the provider is
 * asked once an hour. The case joins the move. Wakes the workflow.
 * Twice: the second is lost.
 */
export function escalateToReview(tx: Sql, request: EscalateRequest): Promise<MoveResult> {
  return escalateFrom(tx, ['submitted', 'unknown'], request);
}

async function escalateFrom(
  tx: Sql,
  from: readonly PaymentState[],
  request: EscalateRequest,
): Promise<MoveResult> {
  const { tenant, paymentId, reason, actor, expectedVersion = null } = request;
  const result = await move(tx, {
    rule: 'T16',
    from,
    tenant,
    paymentId,
    actor,
    expectedVersion,
    detail: { code: reason },
    nextActionInMs: REVIEW_LOOKUP_MS,
    announce: 'wake',
  });
  if (result.kind === 'moved') await openCase(tx, { paymentId, reason });
  return result;
}

const CLOSE_UNCLAIMED: Statement = {
  name: 'review-close-unclaimed',
  text: `WITH closed AS (
  UPDATE submission_attempt a
     SET closed_at = clock_timestamp(), result_class = 'not_sent', evidence = 'not_sent', code = $2
   WHERE a.payment_id = $1 AND a.evidence IS NULL AND a.owner IS NULL RETURNING 1)
SELECT (SELECT count(*) FROM submission_attempt a WHERE a.payment_id = $1 AND a.evidence IS NULL)
     = (SELECT count(*) FROM closed) AS "nothingGoesOut"`,
};

/**
 * T16 from `submitting` while no call is under way: people decide before the next one goes out. Closes
 * an attempt that nobody has claimed as not sent. The transaction must hold the payment's row.
 * @returns null when a call is under way, or may be: nothing was changed, come back when it has ended.
 */
export async function escalateBeforeCall(
  tx: Sql,
  request: Pick<EscalateRequest, 'paymentId' | 'reason' | 'actor'>,
): Promise<MoveResult | null> {
  const { paymentId, reason, actor } = request;
  // Who claims at the same moment is waited for; then its attempt is not closed here, and counts.
  const { rows } = await tx.query<{ nothingGoesOut: boolean }>(CLOSE_UNCLAIMED, [paymentId, reason]);
  if (rows[0]?.nothingGoesOut !== true) return null;
  return escalateFrom(tx, ['submitting'], { tenant: null, paymentId, reason, actor });
}

export interface ReviewNews {
  readonly paymentId: string;
  readonly to: Extract<PaymentState, 'submitted' | 'succeeded' | 'failed'>;
  readonly source: 'lookup' | 'webhook' | 'settlement' | 'late_answer';
  readonly code: string;
  readonly providerRef: string | null;
  /** `worker:<id>`, `webhook`, `settlement`. */
  readonly actor: string;
  /** For `submitted`: when to ask again (ms from now, database clock); else null. */
  readonly nextActionInMs: number | null;
}

/**
 * T20: the provider's own decisive word arrives while people still think. File it as evidence in this
 * transaction first: the gate moves only by a row that came during the review, has the status of the
 * target, and names the amount and the currency that were instructed unless it says failed. The case
 * is closed and open proposals are void. Wakes the workflow.
 * @returns lost when the payment is not in review any more, or no row decides.
 * Twice: the second is lost.
 */
export async function settleInReview(tx: Sql, news: ReviewNews): Promise<MoveResult> {
  return move(tx, {
    rule: 'T20',
    tenant: null,
    paymentId: news.paymentId,
    to: news.to,
    actor: news.actor,
    detail: { source: news.source, code: news.code },
    providerRef: news.providerRef,
    nextActionInMs: news.nextActionInMs,
    announce: 'wake',
  });
}

export interface ResolveRequest {
  readonly tenant: string;
  readonly paymentId: string;
  /** The resolution that this transaction has approved. */
  readonly resolutionId: string;
  /** `resend` goes to `submitting` without an open attempt (T19); the worker opens it. */
  readonly to: Extract<PaymentState, 'submitted' | 'succeeded' | 'failed' | 'submitting'>;
  readonly outcome: string;
  readonly reasonCode: string;
  readonly proposedBy: string;
  /** Who approved: the actor of the move. */
  readonly approvedBy: string;
  readonly version: number;
}

/**
 * T18 and T19: what two people decided. The gate's own statement checks that the resolution is
 * approved by another person than proposed it, for this version. The transition names both.
 * @returns lost when anything of that does not hold. Twice: the second is lost.
 */
export async function resolveReview(tx: Sql, request: ResolveRequest): Promise<MoveResult> {
  const isOpen = request.to === 'submitting' || request.to === 'submitted';
  return move(tx, {
    rule: request.to === 'submitting' ? 'T19' : 'T18',
    tenant: request.tenant,
    paymentId: request.paymentId,
    to: request.to,
    actor: request.approvedBy,
    expectedVersion: request.version,
    detail: {
      code: request.reasonCode,
      outcome: request.outcome,
      proposed_by: request.proposedBy,
      resolution: request.resolutionId,
    },
    nextActionInMs: isOpen ? 0 : null,
    resolutionId: request.resolutionId,
    announce: 'wake',
  });
}
