import type { PaymentState } from '../domain/payment-state.js';
import { retryDelayMs } from '../domain/submission-policy.js';
import { LANES_ARE_LOCKED, lockLanes, tellLanes } from '../lanes/lane-outcomes.js';
import { moveCtes, stateIs } from '../payments/gate.js';
import type { Sql, Statement } from '../persistence/database.js';
import type { Outcome, Recorded } from './outcome.store.js';
import { CARRIED, FILE_ANSWERS, rowsByOutcome, toldColumns } from './recorded-answer.js';

/**
 * Two phases: records what became of creates. A create moves nothing, so its attempt closes `not_sent`
 * (or `refused`) whatever became of it, and may be repeated; what was made and got lost stays inert.
 * The object that was made is stored as the one commit target in the very statement that opens the
 * attempt to commit it, so no crash can part them (T11). An object that is not inert, or that is not
 * the instruction, is refused: money may have moved, and people decide (T16). A commit target that
 * another payment holds is refused in the same way.
 */
const RECORD_CREATES: Statement = {
  name: 'record-creates',
  text: `WITH told AS (
  SELECT * FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::text[],
      $8::text[], $9::text[], $10::text[], $11::smallint[], $12::boolean[], $13::double precision[],
      $14::bigint[], $15::text[], $16::double precision[]) WITH ORDINALITY
    AS t (payment_id, generation, no, owner, class, evidence, status, code, provider_ref, request_id, http_status,
          replayed, wait_ms, observed_amount, observed_currency, retry_after_ms, ord)),
${lockLanes('told')},
head AS (
  SELECT p.id, p.amount, p.currency, p.lane FROM payment p
   WHERE ${LANES_ARE_LOCKED} AND p.id = ANY ($1::text[]) AND ${stateIs('p', ['submitting'])}
   ORDER BY p.id FOR NO KEY UPDATE OF p),
x AS (
  SELECT t.*, h.lane, CASE
      WHEN t.class = 'key_mismatch' THEN 'refuse'
      WHEN t.class <> 'accepted' THEN NULL
      WHEN t.observed_amount IS DISTINCT FROM h.amount OR t.observed_currency IS DISTINCT FROM h.currency THEN 'other_money'
      WHEN t.status IS DISTINCT FROM 'inert' THEN 'commits_itself'
      WHEN t.provider_ref IS NULL THEN 'no_object_id'
      WHEN EXISTS (SELECT 1 FROM submission o WHERE o.commit_target = t.provider_ref
                      AND (o.payment_id, o.generation) <> (t.payment_id, t.generation)) THEN 'object_of_another'
      ELSE 'made' END AS made
    FROM told t JOIN head h ON h.id = t.payment_id),
judged AS (
  SELECT x.*, CASE WHEN x.made = 'made' THEN 'made' WHEN x.made IS NOT NULL THEN 'mismatch'
                   WHEN x.evidence = 'refused' THEN 'refused' ELSE 'unmade' END AS verdict
    FROM x),
closed AS (
  UPDATE submission_attempt a
     SET closed_at = clock_timestamp(), result_class = CASE WHEN j.verdict = 'mismatch' THEN 'key_mismatch' ELSE j.class END,
         evidence = CASE j.verdict WHEN 'refused' THEN 'refused' WHEN 'mismatch' THEN 'ambiguous' ELSE 'not_sent' END,
         code = CASE WHEN j.made IN ('made', 'refuse') OR j.made IS NULL THEN j.code ELSE j.made END,
         provider_ref = j.provider_ref, request_id = j.request_id, http_status = j.http_status, replayed = j.replayed
    FROM judged j
   WHERE a.payment_id = j.payment_id AND a.generation = j.generation AND a.no = j.no AND a.phase = 'submit'
     AND a.evidence IS NULL AND a.owner IS NOT DISTINCT FROM j.owner
  RETURNING j.payment_id, j.generation, j.no, j.owner, j.verdict, j.wait_ms, j.status, j.provider_ref, j.observed_amount,
            j.observed_currency, j.lane, j.retry_after_ms, j.ord, a.code, a.result_class AS class),
c AS (
  SELECT payment_id AS id, generation, no, verdict, wait_ms, class, code, status, provider_ref, observed_amount,
         observed_currency,
         CASE verdict WHEN 'made' THEN 'submitting' WHEN 'refused' THEN 'failed' ELSE 'needs_review' END AS to_state,
         CASE verdict WHEN 'made' THEN 'resend' WHEN 'refused' THEN 'record-outcome' ELSE 'escalate' END AS cause,
         'worker:' || owner AS actor,
         json_build_object('rule', CASE verdict WHEN 'made' THEN 'T11' WHEN 'refused' THEN 'T10' ELSE 'T16' END,
           'class', class, 'code', code, 'attempt', no)::text AS detail
    FROM closed WHERE verdict <> 'unmade'),
${moveCtes({
  candidates: 'c',
  from: ['submitting'],
  guard: 'TRUE',
  set: ', next_action_at = NULL, provider_ref = coalesce(c.provider_ref, p.provider_ref)',
  carry: CARRIED,
})},
target AS (
  UPDATE submission s SET commit_target = m.provider_ref
    FROM moved m WHERE m.verdict = 'made' AND s.payment_id = m.id AND s.generation = m.generation
  RETURNING s.payment_id, s.generation, m.no),
commit_attempt AS (
  INSERT INTO submission_attempt (payment_id, generation, no, phase)
  SELECT payment_id, generation, no + 1, 'commit' FROM target),
waiting AS (
  UPDATE payment p SET next_action_at = clock_timestamp() + k.wait_ms * interval '1 ms'
    FROM closed k WHERE p.id = k.payment_id AND k.verdict = 'unmade'),
${tellLanes('closed')},
${FILE_ANSWERS}
SELECT id AS payment_id, generation, no, verdict, wait_ms, to_state AS state FROM moved
UNION ALL
SELECT payment_id, generation, no, verdict, wait_ms, 'submitting' FROM closed WHERE verdict = 'unmade'`,
};

/**
 * Records what creates ended with, in the order of `outcomes`: two phases, phase `submit` only.
 * @returns for each: recorded with `next: 'commit'` when its commit attempt is open now; late when
 * somebody closed the attempt meanwhile.
 * @throws StorageUnavailable, OutcomeUnknown: then nothing is known; record again, a second time
 * answers `late` for what the first one did. A unique violation for two payments of one batch that
 * name one object: apart, the first takes it and the second is refused.
 */
export async function recordCreates(sql: Sql, outcomes: readonly Outcome[]): Promise<readonly Recorded[]> {
  const { rows } = await sql.query<{
    payment_id: string;
    generation: number;
    no: number;
    verdict: 'made' | 'mismatch' | 'refused' | 'unmade';
    wait_ms: number;
    state: PaymentState;
  }>(RECORD_CREATES, [
    ...toldColumns(outcomes, (o) => retryDelayMs(o.no, o.result.retryAfterMs)),
    outcomes.map((o) => o.result.retryAfterMs),
  ]);
  return rowsByOutcome(outcomes, rows).map((row) => {
    if (!row) return { kind: 'late' };
    const { verdict, state } = row;
    return {
      kind: 'recorded',
      state,
      waitMs: verdict === 'made' ? 0 : row.wait_ms,
      sent: verdict !== 'unmade',
      next: verdict === 'made' ? 'commit' : null,
    };
  });
}
