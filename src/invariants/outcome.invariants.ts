import type { Invariant } from './invariant.js';

/**
 * Evidence that may fail a payment after an ambiguous attempt: a lookup, event or file that says
 * failed, a person, a refusal that the adapter could name, or the proof of absence (lookups that say
 * absent, however many, prove nothing alone). The ambiguous answers themselves are filed too and prove nothing.
 */
const FAILED_BY_PROOF: Invariant = {
  id: 7,
  title: 'a failed payment with an ambiguous attempt has evidence that it was not executed',
  scoped: true,
  text: (within) => `
    SELECT p.id FROM payment p
     WHERE p.state = 'failed' AND ${within('p.id')}
       AND EXISTS (SELECT 1 FROM submission_attempt a WHERE a.payment_id = p.id AND a.evidence = 'ambiguous')
       AND NOT EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id AND (
             e.source = 'person' OR e.status = 'failed'
             OR (e.source IN ('answer', 'late_answer') AND e.kind IN ('rejected', 'rejected_funds'))))
       AND NOT EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id AND e.kind = 'absence_proven')`,
};

const SAME_MONEY: Invariant = {
  id: 8,
  title: 'a succeeded payment moved the amount and currency that were instructed',
  scoped: true,
  text: (within) => `
    SELECT p.id FROM payment p JOIN evidence e ON e.payment_id = p.id
     WHERE p.state IN ('succeeded', 'returned') AND ${within('p.id')} AND e.status = 'succeeded'
       AND (e.observed_amount <> p.amount OR e.observed_currency <> p.currency)`,
};

const REFERENCE_PAID_ONCE: Invariant = {
  id: 9,
  title: 'a reference is paid once where the tenant asked for unique references',
  scoped: true,
  text: (within) => `
    SELECT p.id FROM payment p JOIN tenant t ON t.id = p.tenant_id AND t.unique_references
     WHERE p.state = 'succeeded' AND p.reference IS NOT NULL AND ${within('p.id')}
       AND EXISTS (SELECT 1 FROM payment o WHERE o.tenant_id = p.tenant_id AND o.reference = p.reference
                      AND o.state = 'succeeded' AND o.id <> p.id)`,
};

const UNKNOWN_IS_ASKED: Invariant = {
  id: 12,
  title: 'every unknown payment has a next inquiry',
  scoped: false,
  text: () => `SELECT p.id FROM payment p WHERE p.state = 'unknown' AND p.next_action_at IS NULL`,
};

const REVIEW_HAS_OWNER: Invariant = {
  id: 13,
  title: 'every payment in review has an open case, and an owner before its deadline',
  scoped: false,
  text: () => `
    SELECT p.id FROM payment p LEFT JOIN review_case c ON c.payment_id = p.id AND c.closed_at IS NULL
     WHERE p.state = 'needs_review'
       AND (c.id IS NULL OR (c.owner IS NULL AND c.due_at < clock_timestamp()))`,
};

/**
 * The actor of the move is who approved; its detail names who proposed. Both stand once more in the
 * resolution that was made for the version before the move.
 */
const TWO_PEOPLE: Invariant = {
  id: 17,
  title: 'every resolution was proposed by one person and approved by another',
  scoped: true,
  text: (within) => `
    SELECT t.payment_id AS id FROM payment_transition t
     WHERE t.cause = 'resolve' AND ${within('t.payment_id')}
       AND NOT EXISTS (SELECT 1 FROM resolution r
             WHERE r.payment_id = t.payment_id AND r.payment_version = t.seq - 1
               AND r.approved_by = t.actor AND r.proposed_by <> r.approved_by
               AND r.proposed_by = CASE WHEN t.detail IS JSON OBJECT THEN t.detail::jsonb ->> 'proposed_by' END)`,
};

/** What must hold for outcomes and for those that wait for one. */
export const OUTCOME_INVARIANTS: readonly Invariant[] = [
  FAILED_BY_PROOF,
  SAME_MONEY,
  REFERENCE_PAID_ONCE,
  UNKNOWN_IS_ASKED,
  REVIEW_HAS_OWNER,
  TWO_PEOPLE,
];
