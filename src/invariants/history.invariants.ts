import { edgeTexts } from '../domain/edge-check.js';
import type { Invariant } from './invariant.js';

const HEAD_IS_LAST: Invariant = {
  id: 5,
  title: 'the head row is its last transition, its version their number, and no number is missing',
  scoped: true,
  text: (within) => `
    SELECT p.id FROM payment p
      LEFT JOIN (SELECT t.payment_id, count(*) AS rows, min(t.seq) AS first, max(t.seq) AS last
                   FROM payment_transition t WHERE ${within('t.payment_id')} GROUP BY t.payment_id) h
        ON h.payment_id = p.id
      LEFT JOIN payment_transition newest ON newest.payment_id = p.id AND newest.seq = h.last
     WHERE ${within('p.id')}
       AND (h.rows, h.first, h.last, newest.to_state)
           IS DISTINCT FROM (p.version::bigint, 1, p.version, p.state)`,
};

const CHAIN: Invariant = {
  id: 6,
  title: 'the hash chain of every payment is whole',
  scoped: true,
  text: (within) => `
    SELECT c.id FROM (
      SELECT t.payment_id AS id, t.hash,
             sha256(coalesce(lag(t.hash) OVER (PARTITION BY t.payment_id ORDER BY t.seq), ''::bytea)
               || convert_to(payment_transition_canonical(t), 'UTF8')) AS expected
        FROM payment_transition t WHERE ${within('t.payment_id')}) c
     WHERE c.hash IS DISTINCT FROM c.expected`,
};

/** The list stands here too, so that a changed function in the database cannot hide an edge. */
const EDGES: Invariant = {
  id: 15,
  title: 'every transition is an edge of the table and follows the one before',
  scoped: true,
  text: (within) => `
    SELECT e.id FROM (
      SELECT t.payment_id AS id, t.seq, t.from_state, t.to_state, t.cause,
             lag(t.to_state) OVER (PARTITION BY t.payment_id ORDER BY t.seq) AS before
        FROM payment_transition t WHERE ${within('t.payment_id')}) e
     WHERE coalesce(e.from_state, 'none') || '>' || e.to_state || ':' || e.cause
           NOT IN (${edgeTexts()
             .map((edge) => `'${edge}'`)
             .join(', ')})
        OR e.from_state IS DISTINCT FROM e.before`,
};

const FINAL_IS_FINAL: Invariant = {
  id: 16,
  title: 'nothing follows a final state, a return after success apart',
  scoped: true,
  text: (within) => `
    SELECT t.payment_id AS id FROM payment_transition t
     WHERE ${within('t.payment_id')}
       AND (t.from_state IN ('failed', 'cancelled', 'expired', 'returned')
            OR (t.from_state = 'succeeded' AND t.to_state <> 'returned'))`,
};

const TIME_GOES_ON: Invariant = {
  id: 19,
  title: 'the times of the transitions of a payment never go back',
  scoped: true,
  text: (within) => `
    SELECT o.id FROM (
      SELECT t.payment_id AS id, t.at, lag(t.at) OVER (PARTITION BY t.payment_id ORDER BY t.seq) AS before
        FROM payment_transition t WHERE ${within('t.payment_id')}) o
     WHERE o.at < o.before`,
};

/** What the history of a payment must look like. */
export const HISTORY_INVARIANTS: readonly Invariant[] = [
  HEAD_IS_LAST,
  CHAIN,
  EDGES,
  FINAL_IS_FINAL,
  TIME_GOES_ON,
];
