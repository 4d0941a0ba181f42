import {
  MAX_ATTEMPTS,
  MAX_UNSENT_ATTEMPTS,
  REVIEW_LOOKUP_MS,
  type CapabilityClass,
} from '../domain/submission-policy.js';
import { laneTokens, takeTokens } from '../lanes/lane-admission.js';
import { earlierMayHavePaid } from '../payments/earlier-generation.js';
import { moveCtes, stateIs } from '../payments/gate.js';
import type { Sql, Statement } from '../persistence/database.js';
import { STORED_ERROR } from './submission.store.js';
import { leaseAlive } from './worker-lease.js';

/** The newest generation of payment `p`, joined as `s`. */
export const NEWEST = `JOIN submission s ON s.payment_id = p.id
     AND s.generation = (SELECT max(generation) FROM submission g WHERE g.payment_id = p.id)`;
export const NO_OPEN_ATTEMPT = `NOT EXISTS (SELECT 1 FROM submission_attempt o WHERE o.payment_id = p.id AND o.closed_at IS NULL)`;
/** 0 in a generation that two people opened and nobody tried yet. */
const LAST_NO = `(SELECT coalesce(max(b.no), 0) FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation)`;

/** Something released was once seen for payment `p`: a hit of a lookup, or an answer that came too late. */
export const SEEN = `EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id AND e.status IS DISTINCT FROM 'inert'
  AND (e.source IN ('webhook', 'settlement')
    OR (e.source = 'lookup' AND e.kind IN ('found', 'found_other', 'found_many'))
    OR (e.source = 'late_answer' AND e.kind IN ('accepted', 'key_mismatch'))))`;

/**
 * Attempts of the newest generation that use the payment's budget: calls that never left, though not
 * those that were the lane's probe, were throttled, or were closed before anybody claimed them. So a
 * provider that is away for hours makes payments late and fails none.
 */
const USED_ATTEMPTS = `(SELECT count(*) FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation
   AND b.result_class = 'not_sent' AND b.call_started_at IS NOT NULL AND NOT b.is_probe)`;

const TAKE_TOKENS = takeTokens({ generation: 'generation', no: 'no + 1' });

/** The next attempt; once the object to commit is known, only its commit is ever called. */
const OPEN_NEXT = `a AS (
  INSERT INTO submission_attempt (payment_id, generation, no, phase, is_probe)
  SELECT id, generation, no + 1, phase, (SELECT is_probe FROM l) FROM moved)`;
const NEXT_PHASE = `CASE WHEN s.commit_target IS NULL THEN 'submit' ELSE 'commit' END AS phase`;

/**
 * Two phases: a create that left and got no answer may be repeated, but not without end, and not when
 * the provider keeps an error under its key. It moved nothing, so giving up is definite.
 */
const CREATES_ARE_OVER = `(s.capability_class = 'T' AND s.commit_target IS NULL AND (
  (SELECT count(*) FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation
      AND b.result_class IN ('ambiguous', 'in_flight') AND NOT b.is_probe) >= ${MAX_ATTEMPTS}
  OR EXISTS (SELECT 1 FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation
      AND b.result_class = 'ambiguous' AND b.http_status >= 500 AND b.replayed)))`;

/** What was heard of an earlier generation since this one was opened: it must not go out. */
const EARLIER_PAID = earlierMayHavePaid('p.id', 's.generation');

/** T11: proven not sent, try again under the same key; takes a lane token. */
const RETRY: Statement = {
  name: 'retry-not-sent',
  text: `WITH l AS (${laneTokens('$1', leaseAlive('$2'))}),
c AS (
  SELECT p.id, s.generation, ${LAST_NO} AS no, ${NEXT_PHASE}, 'submitting'::text AS to_state, 'resend'::text AS cause,
         'worker:' || $2 AS actor, '{"rule":"T11"}'::text AS detail
    FROM payment p ${NEWEST}
   WHERE p.id = ANY ($3::text[]) AND p.lane = $1 AND ${stateIs('p', ['submitting'])} AND ${NO_OPEN_ATTEMPT}
     AND p.next_action_at <= clock_timestamp() AND clock_timestamp() <= p.not_after
     AND (s.key_valid_until IS NULL OR clock_timestamp() < s.key_valid_until)
     AND ${USED_ATTEMPTS} < ${MAX_UNSENT_ATTEMPTS} AND NOT ${CREATES_ARE_OVER} AND NOT ${EARLIER_PAID}
   ORDER BY p.execute_at, p.id
   LIMIT coalesce((SELECT floor(available)::integer FROM l), 0)
     FOR NO KEY UPDATE OF p SKIP LOCKED),
${moveCtes({ candidates: 'c', from: ['submitting'], guard: 'TRUE', set: ', next_action_at = NULL', carry: ['generation', 'no', 'phase'] })},
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

const WAS_AMBIGUOUS = `EXISTS (SELECT 1 FROM submission_attempt b WHERE b.payment_id = p.id
  AND b.generation = s.generation AND b.evidence = 'ambiguous')`;

/**
 * T12: proven not sent, and the budget, the deadline or the key's life is over. A payment that two
 * people sent again after an ambiguous attempt goes back to unknown instead (T13, rule 6), and one of
 * whose earlier generation a payment was heard of goes to people at once (T16): it is paid, and has
 * not failed.
 */
const GIVE_UP: Statement = {
  name: 'give-up-not-sent',
  text: `WITH c AS (
  SELECT p.id, CASE WHEN ${EARLIER_PAID} THEN 'needs_review' WHEN ${WAS_AMBIGUOUS} THEN 'unknown' ELSE 'failed' END AS to_state,
         CASE WHEN ${EARLIER_PAID} THEN 'escalate' ELSE 'record-outcome' END AS cause, $2::text AS actor,
         json_build_object('rule', CASE WHEN ${EARLIER_PAID} THEN 'T16' WHEN ${WAS_AMBIGUOUS} THEN 'T13' ELSE 'T12' END,
           'code', CASE WHEN ${EARLIER_PAID} THEN 'other_generation' WHEN clock_timestamp() > p.not_after THEN 'deadline_over'
           WHEN ${USED_ATTEMPTS} >= ${MAX_UNSENT_ATTEMPTS} OR ${CREATES_ARE_OVER} THEN 'attempts_over' ELSE 'key_life_over' END)::text AS detail
    FROM payment p ${NEWEST}
   WHERE p.id = ANY ($1::text[]) AND ${stateIs('p', ['submitting'])} AND ${NO_OPEN_ATTEMPT}
     AND (${EARLIER_PAID} OR (
       (clock_timestamp() > p.not_after OR ${USED_ATTEMPTS} >= ${MAX_UNSENT_ATTEMPTS} OR ${CREATES_ARE_OVER}
         OR s.key_valid_until <= clock_timestamp())
       AND NOT EXISTS (SELECT 1 FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation
                         AND b.evidence NOT IN ('not_sent', 'refused', 'ambiguous'))
       AND NOT EXISTS (SELECT 1 FROM submission g WHERE g.payment_id = p.id AND g.generation < s.generation
                         AND g.proof IS NULL)))
   ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED),
${moveCtes({
  candidates: 'c',
  from: ['submitting'],
  guard: 'TRUE',
  set: `, next_action_at = CASE c.to_state WHEN 'unknown' THEN clock_timestamp()
     WHEN 'needs_review' THEN clock_timestamp() + interval '${REVIEW_LOOKUP_MS} ms' END`,
})},
opened AS (
  INSERT INTO review_case (payment_id, tenant_id, reason, due_at)
  SELECT id, tenant_id, 'other_generation', clock_timestamp() + interval '4 hours' FROM moved
   WHERE to_state = 'needs_review'
  ON CONFLICT DO NOTHING)
SELECT id, to_state FROM moved`,
};

export type GivenUpTo = 'failed' | 'unknown' | 'needs_review';

/**
 * Ends payments that wait in `submitting` and may not be tried again: failed where every attempt was
 * proven not executed, unknown where one was ambiguous, in review where an earlier generation was paid.
 * @returns the state of each that moved, by id. Twice: the second call finds nothing.
 */
export async function giveUpNotSent(
  sql: Sql,
  paymentIds: readonly string[],
  actor: string,
): Promise<ReadonlyMap<string, GivenUpTo>> {
  const { rows } = await sql.query<{ id: string; to_state: GivenUpTo }>(GIVE_UP, [paymentIds, actor]);
  return new Map(rows.map((r) => [r.id, r.to_state]));
}

/**
 * Rule 7 of the submission protocol on what is known of the provider's object. A: looked up since the
 * last attempt, absent, never seen before, also not in an answer that was not understood but named it.
 * B: nobody can look; the key alone keeps a second payment out. T: a read by id since the last attempt
 * shows the one commit target still inert. C and D are never sent again.
 */
const MAY_BE_RESENT = `CASE s.capability_class
  WHEN 'A' THEN p.provider_ref IS NULL AND NOT ${SEEN} AND NOT ${STORED_ERROR('z')}
    AND EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id AND e.generation = s.generation
          AND e.source = 'lookup' AND e.kind = 'absent' AND e.at > z.closed_at)
  WHEN 'B' THEN NOT ${SEEN} AND NOT ${STORED_ERROR('z')}
  WHEN 'T' THEN NOT ${SEEN} AND $10::boolean
    AND (SELECT e.status = 'inert' AND e.provider_ref = s.commit_target FROM evidence e
          WHERE e.payment_id = p.id AND e.generation = s.generation AND e.source = 'lookup'
            AND e.kind <> 'cannot_tell' AND e.at > z.closed_at ORDER BY e.id DESC LIMIT 1)
  ELSE false END`;

/** T15: every condition of rule 7 is in the statement that acts. */
const RESEND: Statement = {
  name: 'resend-unknown',
  text: `WITH l AS (${laneTokens('$1', leaseAlive('$2'))}),
c AS (
  SELECT p.id, s.generation, ${LAST_NO} AS no, ${NEXT_PHASE}, 'submitting'::text AS to_state, 'resend'::text AS cause,
         'worker:' || $2 AS actor, '{"rule":"T15"}'::text AS detail
    FROM payment p ${NEWEST}
    JOIN submission_attempt z ON z.payment_id = p.id AND z.generation = s.generation AND z.no = ${LAST_NO}
   WHERE p.id = $3 AND p.lane = $1 AND ${stateIs('p', ['unknown'])} AND ${NO_OPEN_ATTEMPT}
     AND z.no < ${MAX_ATTEMPTS}
     AND clock_timestamp() < s.key_valid_until AND clock_timestamp() < p.not_after
     AND s.capability_class = $4 AND s.adapter = $5 AND s.api_version = $6 AND s.account = $7 AND s.base_url = $8
     AND ($9::text IS NULL OR s.credential_id = $9)
     AND z.result_class <> 'key_mismatch' AND ${MAY_BE_RESENT}
   LIMIT coalesce((SELECT least(floor(available)::integer, 1) FROM l), 0)
     FOR NO KEY UPDATE OF p SKIP LOCKED),
${moveCtes({
  candidates: 'c',
  from: ['unknown'],
  guard: 'TRUE',
  set: ', next_action_at = NULL',
  carry: ['generation', 'no', 'phase'],
  announce: 'wake',
})},
${OPEN_NEXT},
${TAKE_TOKENS}
SELECT id FROM moved`,
};

/**
 * What the worker's adapter is now. A generation is frozen: where its class, its interface, its
 * account or its address differ from what was stored, only inquiry goes on.
 */
export interface ResendBy {
  readonly capabilityClass: CapabilityClass;
  readonly adapter: string;
  readonly apiVersion: string;
  readonly account: string;
  readonly baseUrl: string;
  /** null where the provider keeps keys per account, so that another credential may go on. */
  readonly credentialId: string | null;
  /** What the provider's reads show is what is. */
  readonly readsAreStrong: boolean;
}

/**
 * Resends an unknown payment under the same key (T15) if every condition of rule 7 holds, and wakes its
 * workflow, which arms the call.
 * @returns true when the next attempt is open. Twice: the second call finds `submitting`: false.
 */
export async function resendUnknown(
  sql: Sql,
  lane: string,
  worker: string,
  paymentId: string,
  by: ResendBy,
): Promise<boolean> {
  const { rowCount } = await sql.query(RESEND, [
    lane,
    worker,
    paymentId,
    by.capabilityClass,
    by.adapter,
    by.apiVersion,
    by.account,
    by.baseUrl,
    by.credentialId,
    by.readsAreStrong,
  ]);
  return rowCount === 1;
}
