import type { Invariant } from './invariant.js';

const NEVER_EARLY: Invariant = {
  id: 1,
  title: 'no submission and no call begins before execute_at',
  scoped: true,
  text: (within) => `
    SELECT p.id FROM payment p
     WHERE ${within('p.id')}
       AND (p.submission_started_at < p.execute_at
            OR EXISTS (SELECT 1 FROM submission_attempt a
                        WHERE a.payment_id = p.id AND a.call_started_at < p.execute_at))`,
};

const STOPPED_NEVER_SENT: Invariant = {
  id: 2,
  title: 'a cancelled or expired payment has no attempt',
  scoped: true,
  text: (within) => `
    SELECT p.id FROM payment p
     WHERE p.state IN ('cancelled', 'expired') AND ${within('p.id')}
       AND EXISTS (SELECT 1 FROM submission_attempt a WHERE a.payment_id = p.id)`,
};

const ONE_OPEN_ATTEMPT: Invariant = {
  id: 3,
  title: 'a payment has at most one open attempt',
  scoped: false,
  text: () => `
    SELECT a.payment_id AS id FROM submission_attempt a
     WHERE a.closed_at IS NULL GROUP BY a.payment_id HAVING count(*) > 1`,
};

const ONE_KEY: Invariant = {
  id: 4,
  title: 'one provider key per generation, none shared, and a new one only after proof',
  scoped: true,
  text: (within) => `
    SELECT s.payment_id AS id FROM submission s WHERE ${within('s.payment_id')}
     GROUP BY s.payment_id, s.generation HAVING count(*) > 1
    UNION ALL
    SELECT s.payment_id FROM submission s
      JOIN submission o ON o.provider_key = s.provider_key
       AND (o.payment_id, o.generation) <> (s.payment_id, s.generation)
     WHERE ${within('s.payment_id')}
    UNION ALL
    SELECT s.payment_id FROM submission s
     WHERE s.generation > 1 AND ${within('s.payment_id')}
       AND NOT EXISTS (SELECT 1 FROM submission e
                        WHERE e.payment_id = s.payment_id AND e.generation = s.generation - 1
                          AND e.proof IS NOT NULL)`,
};

/** An unclaimed attempt waits at most this long for a worker (s). */
const UNCLAIMED_S = 30;
/** A call is abandoned after this, whoever made it (s). */
const CALL_ABANDONED_S = 60;
/** The sweep closes what is abandoned once a second; longer than this nobody does (s). */
const SWEEP_MARGIN_S = 30;

const NOBODY_WORKS_ON_IT: Invariant = {
  id: 10,
  title: 'no payment is submitting under an attempt that is abandoned or that nobody claims',
  scoped: false,
  text: () => `
    SELECT p.id FROM submission_attempt a JOIN payment p ON p.id = a.payment_id
     WHERE a.closed_at IS NULL AND p.state = 'submitting'
       AND (CASE WHEN a.owner IS NULL THEN a.opened_at < clock_timestamp() - interval '${UNCLAIMED_S} s'
            ELSE a.call_started_at < clock_timestamp() - interval '${CALL_ABANDONED_S + SWEEP_MARGIN_S} s'
              OR (a.call_started_at < clock_timestamp() - interval '${SWEEP_MARGIN_S} s'
                  AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = a.owner
                    AND w.lease_expires_at > clock_timestamp() - interval '${SWEEP_MARGIN_S} s')) END)`,
};

/** What must hold between a payment and what was sent for it. */
export const SUBMISSION_INVARIANTS: readonly Invariant[] = [
  NEVER_EARLY,
  STOPPED_NEVER_SENT,
  ONE_OPEN_ATTEMPT,
  ONE_KEY,
  NOBODY_WORKS_ON_IT,
];
