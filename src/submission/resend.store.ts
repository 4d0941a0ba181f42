import { MAX_ATTEMPTS, MAX_UNSENT_ATTEMPTS } from '../domain/submission-policy.js';
import { moveCtes, stateIs } from '../payments/gate.js';
import type { Sql, Statement } from '../persistence/database.js';
import { laneTokens } from './begin-submission.store.js';

/** The newest generation of payment `p`, joined as `s`. */
const NEWEST = `JOIN submission s ON s.payment_id = p.id
     AND s.generation = (SELECT max(generation) FROM submission g WHERE g.payment_id = p.id)`;
const NO_OPEN_ATTEMPT = `NOT EXISTS (SELECT 1 FROM submission_attempt o WHERE o.payment_id = p.id AND o.closed_at IS NULL)`;
const LAST_NO = `(SELECT max(b.no) FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation)`;

const TAKE_TOKENS = `w AS (
  UPDATE lane SET tokens = l.available - n.n, refilled_at = l.t
    FROM l, (SELECT count(*)::integer AS n FROM moved) n
   WHERE lane.lane = l.lane AND n.n > 0)`;

const OPEN_NEXT = `a AS (
  INSERT INTO submission_attempt (payment_id, generation, no)
  SELECT id, generation, no + 1 FROM moved)`;

/** T11: proven not sent, try again under the same key; takes a lane token. */
const RETRY: Statement = {
  name: 'retry-not-sent',
  text: `WITH l AS (${laneTokens('$1', '$2')}),
c AS (
  SELECT p.id, s.generation, ${LAST_NO} AS no, 'submitting'::text AS to_state, 'resend'::text AS cause,
         'worker:' || $2 AS actor, '{"rule":"T11"}'::text AS detail
    FROM payment p ${NEWEST}
   WHERE p.id = ANY ($3::text[]) AND p.lane = $1 AND ${stateIs('p', ['submitting'])} AND ${NO_OPEN_ATTEMPT}
     AND p.next_action_at <= clock_timestamp() AND clock_timestamp() <= p.not_after
     AND (s.key_valid_until IS NULL OR clock_timestamp() < s.key_valid_until)
     AND ${LAST_NO} < ${MAX_UNSENT_ATTEMPTS}
   ORDER BY p.execute_at, p.id
   LIMIT coalesce((SELECT floor(available)::integer FROM l), 0)
     FOR NO KEY UPDATE OF p SKIP LOCKED),
${moveCtes({ candidates: 'c', from: ['submitting'], guard: 'TRUE', set: ', next_action_at = NULL', carry: ['generation', 'no'] })},
${OPEN_NEXT},
${TAKE_TOKENS}
SELECT id FROM moved`,
};

/** Opens the next attempt of these payments of one lane where T11 allows it. @returns the ids. */
export async function retryNotSent(
  sql: Sql,
  lane: string,
  worker: string,
  paymentIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ id: string }>(RETRY, [lane, worker, paymentIds]);
  return new Set(rows.map((r) => r.id));
}

/** T12: proven not sent, and the budget, the deadline or the key's life is over. */
const GIVE_UP: Statement = {
  name: 'give-up-not-sent',
  text: `WITH c AS (
  SELECT p.id, 'failed'::text AS to_state, 'record-outcome'::text AS cause, $2::text AS actor,
         json_build_object('rule', 'T12', 'code', CASE WHEN clock_timestamp() > p.not_after THEN 'deadline_over'
           WHEN ${LAST_NO} >= ${MAX_UNSENT_ATTEMPTS} THEN 'attempts_over' ELSE 'key_life_over' END)::text AS detail
    FROM payment p ${NEWEST}
   WHERE p.id = ANY ($1::text[]) AND ${stateIs('p', ['submitting'])} AND ${NO_OPEN_ATTEMPT}
     AND (clock_timestamp() > p.not_after OR ${LAST_NO} >= ${MAX_UNSENT_ATTEMPTS} OR s.key_valid_until <= clock_timestamp())
     AND NOT EXISTS (SELECT 1 FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation
                       AND b.evidence NOT IN ('not_sent', 'refused'))
     AND NOT EXISTS (SELECT 1 FROM submission g WHERE g.payment_id = p.id AND g.generation < s.generation
                       AND g.proof IS NULL)
   ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED),
${moveCtes({ candidates: 'c', from: ['submitting'], guard: 'TRUE', set: ', next_action_at = NULL' })}
SELECT id FROM moved`,
};

/** Fails payments whose every attempt was proven not executed and that may not be tried again. */
export async function giveUpNotSent(
  sql: Sql,
  paymentIds: readonly string[],
  actor: string,
): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ id: string }>(GIVE_UP, [paymentIds, actor]);
  return new Set(rows.map((r) => r.id));
}

/**
 * T15, rule 7 of the submission protocol: every condition is in the statement that acts. A payment
 * counts as seen also when an answer that was not understood named its object.
 */
const RESEND: Statement = {
  name: 'resend-unknown',
  text: `WITH l AS (${laneTokens('$1', '$2')}),
c AS (
  SELECT p.id, s.generation, ${LAST_NO} AS no, 'submitting'::text AS to_state, 'resend'::text AS cause,
         'worker:' || $2 AS actor, '{"rule":"T15"}'::text AS detail
    FROM payment p ${NEWEST}
    JOIN submission_attempt z ON z.payment_id = p.id AND z.generation = s.generation AND z.no = ${LAST_NO}
   WHERE p.id = $3 AND p.lane = $1 AND ${stateIs('p', ['unknown'])} AND ${NO_OPEN_ATTEMPT}
     AND z.no < ${MAX_ATTEMPTS} AND p.provider_ref IS NULL
     AND clock_timestamp() < s.key_valid_until AND clock_timestamp() < p.not_after
     AND z.result_class <> 'key_mismatch' AND NOT (z.http_status >= 500 AND z.replayed)
     AND ($4::boolean OR EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id AND e.source = 'lookup'
            AND e.kind = 'absent' AND e.at > z.closed_at))
     AND NOT EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id
            AND ((e.source = 'lookup' AND e.kind <> 'absent' AND e.kind <> 'cannot_tell')
              OR (e.source = 'late_answer' AND e.kind IN ('accepted', 'key_mismatch'))))
   LIMIT coalesce((SELECT least(floor(available)::integer, 1) FROM l), 0)
     FOR NO KEY UPDATE OF p SKIP LOCKED),
${moveCtes({ candidates: 'c', from: ['unknown'], guard: 'TRUE', set: ', next_action_at = NULL', carry: ['generation', 'no'] })},
${OPEN_NEXT},
${TAKE_TOKENS}
SELECT id FROM moved`,
};

/**
 * Resends an unknown payment under the same key (T15) if every condition of rule 7 holds.
 * @param withoutLookup true only for a provider that has a key and no lookup (class B).
 * @returns true when the next attempt is open. Twice: the second call finds `submitting`: false.
 */
export async function resendUnknown(
  sql: Sql,
  lane: string,
  worker: string,
  paymentId: string,
  withoutLookup: boolean,
): Promise<boolean> {
  const { rowCount } = await sql.query(RESEND, [lane, worker, paymentId, withoutLookup]);
  return rowCount === 1;
}
