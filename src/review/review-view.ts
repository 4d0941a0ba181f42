import { shown, shownOrNull } from '../payments/payment-view.js';
import type { EvidenceRow, ReviewCaseRow } from './review-case.store.js';
import type { ReviewDetail } from './review.service.js';
import type { ResolutionRow } from './resolution.store.js';
import type { ResolutionView, ReviewDetailView, ReviewView } from './schemas/review.schema.js';

/** A proposal in the API's form. One that is too old to be approved is void, whether or not it was tried. */
export function resolutionView(row: ResolutionRow): ResolutionView {
  const { proof_kind: kind, proof_statement: statement } = row;
  return {
    id: row.id,
    payment_id: row.payment_id,
    status: statusOf(row),
    outcome: row.outcome,
    reason_code: row.reason_code,
    payment_version: row.payment_version,
    evidence: [...row.evidence_ids],
    proof: kind === null || statement === null ? null : { kind, statement },
    proposed_by: row.proposed_by,
    proposed_at: shown(row.proposed_at),
    expires_at: shown(row.expires_at),
    approved_by: row.approved_by,
    approved_at: shownOrNull(row.approved_at),
    voided_at: shownOrNull(row.voided_at),
    void_reason: row.void_reason,
  };
}

function statusOf(row: ResolutionRow): ResolutionView['status'] {
  if (row.approved_at !== null) return 'approved';
  return row.voided_at !== null || row.is_expired || !row.is_current ? 'void' : 'proposed';
}

/** A case in the API's form. */
export function reviewView(row: ReviewCaseRow): ReviewView {
  return {
    case_id: row.case_id,
    payment_id: row.payment_id,
    reason: row.reason,
    state: row.state,
    version: row.version,
    owner: row.owner,
    owned_at: shownOrNull(row.owned_at),
    opened_at: shown(row.opened_at),
    due_at: shown(row.due_at),
    age_seconds: row.age_seconds,
    overdue: row.is_overdue,
    amount_at_risk: Number(row.amount),
    currency: row.currency,
    provider: row.provider,
    reference: row.reference,
    open_resolution: row.open_resolution,
    closed_at: shownOrNull(row.closed_at),
    closed_by: row.closed_by,
    close_reason: row.close_reason,
  };
}

export function reviewDetailView({ row, evidence, resolutions }: ReviewDetail): ReviewDetailView {
  return {
    ...reviewView(row),
    evidence: evidence.map(evidenceView),
    resolutions: resolutions.map(resolutionView),
  };
}

function evidenceView(row: EvidenceRow): ReviewDetailView['evidence'][number] {
  const { id, source, kind: evidence, generation, attempt_no: attempt, code, provider_ref, status } = row;
  const { observed_amount, observed_currency } = row;
  const at = shown(row.at);
  return { id, at, source, evidence, generation, attempt, code, provider_ref, status, observed_amount, observed_currency }; // prettier-ignore
}
