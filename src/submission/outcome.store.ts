import { EVIDENCE_OF } from '../domain/provider-outcome.js';
import type { PaymentState } from '../domain/payment-state.js';
import {
  CLASS_RULES,
  INQUIRY_LADDER_MS,
  inFlightDelayMs,
  retryDelayMs,
  type CapabilityClass,
} from '../domain/submission-policy.js';
import { LANES_ARE_LOCKED, lockLanes, tellLanes } from '../lanes/lane-outcomes.js';
import { moveCtes, stateIs } from '../payments/gate.js';
import type { Sql, Statement } from '../persistence/database.js';
import type { ProviderResult } from '../providers/payment-provider.js';
import { CARRIED, FILE_ANSWERS, rowsByOutcome, toldColumns } from './recorded-answer.js';
import { ABANDONED } from './submission.store.js';

/** Evidence that the silence of a provider met every condition of the absence proof. */
export const ABSENCE_PROVEN = 'absence_proven';

/** What a call ended with, for the attempt that made it. */
export interface Outcome {
  readonly paymentId: string;
  readonly generation: number;
  readonly no: number;
  readonly owner: string;
  readonly capabilityClass: CapabilityClass;
  readonly phase: 'submit' | 'commit';
  readonly result: ProviderResult;
}

/**
 * Sticky ambiguity: after an ambiguous attempt of the same generation a refusal or a proven
 * non-call counts as ambiguous, since the first request may land after the second was refused;
 * only a marked replay of the stored first answer still counts as a refusal, or one after the
 * absence of the first was proven.
 */
const STICKY = `EXISTS (SELECT 1 FROM submission_attempt b WHERE b.payment_id = x.payment_id
  AND b.generation = x.generation AND b.no < x.no AND b.evidence = 'ambiguous'
  AND NOT EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = b.payment_id AND e.generation = b.generation
        AND e.kind = '${ABSENCE_PROVEN}' AND e.at > b.closed_at))`;

/** An earlier generation without a written proof may still be executed: nothing definite fails the payment. */
const EARLIER_IS_OPEN = `x.generation > 1 AND EXISTS (SELECT 1 FROM submission g WHERE g.payment_id = x.payment_id
  AND g.generation < x.generation AND g.proof IS NULL)`;

/**
 * The next step of the inquiry ladder for what is ambiguous once more, counted from the generation's
 * first ambiguous end: a resend does not start the ladder again. Null for the first one.
 */
const LADDER_GOES_ON = `CASE WHEN k.no > 1 AND k.class <> 'in_flight' AND k.verdict = 'ambiguous' THEN (
  SELECT coalesce(min(f.at + step * interval '1 ms') FILTER (WHERE f.at + step * interval '1 ms' > clock_timestamp()),
                  clock_timestamp() + k.wait_ms * interval '1 ms')
    FROM (SELECT min(b.closed_at) AS at FROM submission_attempt b WHERE b.payment_id = k.payment_id
             AND b.generation = k.generation AND b.no < k.no AND b.evidence = 'ambiguous') f
    CROSS JOIN unnest($16::double precision[]) AS step
   WHERE f.at IS NOT NULL) END`;

/**
 * Closes attempts and moves their payments (T8, T9, T10, T13, T16) in one commit. Open is said as
 * "without evidence", so that the planner takes primary keys. An attempt that
 * was closed meanwhile is not touched and its payment not moved. `not_sent` moves nothing: the
 * payment waits in `submitting` without an open attempt until next_action_at. What was accepted with
 * another amount or currency than instructed never succeeds, whatever the adapter made of it.
 */
const RECORD: Statement = {
  name: 'record-outcomes',
  text: `WITH told AS (
  SELECT * FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::text[],
      $8::text[], $9::text[], $10::text[], $11::smallint[], $12::boolean[], $13::double precision[],
      $14::bigint[], $15::text[], $17::double precision[]) WITH ORDINALITY
    AS t (payment_id, generation, no, owner, class, evidence, status, code, provider_ref, request_id, http_status,
          replayed, wait_ms, observed_amount, observed_currency, retry_after_ms, ord)),
${lockLanes('told')},
head AS (
  SELECT p.id, p.amount, p.currency, p.lane FROM payment p
   WHERE ${LANES_ARE_LOCKED} AND p.id = ANY ($1::text[]) AND ${stateIs('p', ['submitting'])}
   ORDER BY p.id FOR NO KEY UPDATE OF p),
x AS (
  SELECT t.*, h.lane, t.evidence = 'accepted' AND (coalesce(t.observed_amount <> h.amount, false)
                OR coalesce(t.observed_currency <> h.currency, false)) AS is_other_money,
         -- What moves nothing is no success of the call that should have moved it.
         t.evidence = 'accepted' AND coalesce(t.status = 'inert', false) AS is_inert
    FROM told t JOIN head h ON h.id = t.payment_id),
judged AS (
  SELECT x.payment_id, x.generation, x.no, x.owner, x.status, x.provider_ref, x.request_id, x.http_status,
         x.replayed, x.wait_ms, x.observed_amount, x.observed_currency, x.lane, x.retry_after_ms, x.ord,
         CASE WHEN x.is_other_money THEN 'key_mismatch' WHEN x.is_inert THEN 'ambiguous' ELSE x.class END AS class,
         CASE WHEN x.is_other_money THEN 'other_money' WHEN x.is_inert THEN 'still_inert' ELSE x.code END AS code,
         CASE WHEN x.is_other_money OR x.is_inert THEN 'ambiguous'
              WHEN x.evidence = 'not_sent' AND ${STICKY} THEN 'ambiguous'
              WHEN x.evidence = 'refused' AND NOT x.replayed AND ${STICKY} THEN 'ambiguous'
              WHEN x.evidence = 'refused' AND ${EARLIER_IS_OPEN} THEN 'ambiguous'
              ELSE x.evidence END AS verdict
    FROM x),
closed AS (
  UPDATE submission_attempt a
     SET closed_at = clock_timestamp(), result_class = j.class, evidence = j.verdict, code = j.code,
         provider_ref = j.provider_ref, request_id = j.request_id, http_status = j.http_status, replayed = j.replayed
    FROM judged j
   WHERE a.payment_id = j.payment_id AND a.generation = j.generation AND a.no = j.no
     AND a.evidence IS NULL AND a.owner IS NOT DISTINCT FROM j.owner
  RETURNING j.*),
c AS (
  SELECT payment_id AS id, generation, no, verdict, wait_ms, class, code, status, provider_ref, observed_amount,
         observed_currency,
         CASE WHEN class = 'key_mismatch' THEN 'needs_review'
              WHEN verdict = 'accepted' AND status = 'succeeded' THEN 'succeeded'
              WHEN verdict = 'accepted' THEN 'submitted'
              WHEN verdict = 'refused' THEN 'failed'
              ELSE 'unknown' END AS to_state,
         CASE WHEN class = 'key_mismatch' THEN 'escalate' ELSE 'record-outcome' END AS cause,
         'worker:' || owner AS actor,
         json_build_object('rule',
           CASE WHEN class = 'key_mismatch' THEN 'T16'
                WHEN verdict = 'accepted' AND status = 'succeeded' THEN 'T9'
                WHEN verdict = 'accepted' THEN 'T8'
                WHEN verdict = 'refused' THEN 'T10'
                ELSE 'T13' END,
           'class', class, 'code', code, 'attempt', no)::text AS detail,
         CASE WHEN class = 'key_mismatch' OR verdict = 'refused'
                   OR (verdict = 'accepted' AND status = 'succeeded') THEN NULL
              ELSE coalesce(${LADDER_GOES_ON}, clock_timestamp() + wait_ms * interval '1 ms') END AS next_action_at
    FROM closed k WHERE verdict <> 'not_sent'),
${moveCtes({
  candidates: 'c',
  from: ['submitting'],
  guard: 'TRUE',
  set: ', next_action_at = c.next_action_at, provider_ref = coalesce(c.provider_ref, p.provider_ref)',
  carry: CARRIED,
})},
waiting AS (
  UPDATE payment p SET next_action_at = clock_timestamp() + k.wait_ms * interval '1 ms'
    FROM closed k WHERE p.id = k.payment_id AND k.verdict = 'not_sent'),
${tellLanes('closed')},
${FILE_ANSWERS}
SELECT id AS payment_id, generation, no, verdict, wait_ms, to_state AS state FROM moved
UNION ALL
SELECT payment_id, generation, no, verdict, wait_ms, 'submitting' FROM closed WHERE verdict = 'not_sent'`,
};

export type Recorded =
  | {
      readonly kind: 'recorded';
      readonly state: PaymentState;
      readonly waitMs: number;
      readonly sent: boolean;
      /** commit: the object was made, and the attempt to commit it is open. */
      readonly next: 'commit' | null;
    }
  /** The attempt was closed by somebody else: the answer is evidence, never applied. */
  | { readonly kind: 'late' };

/** ms from the recording until the next step. Where nobody can be asked, people are called at once. */
export function waitMs(outcome: Outcome, ladderDivisor: number): number {
  const { result, no } = outcome;
  const { looksUp, resends } = CLASS_RULES[outcome.capabilityClass];
  switch (EVIDENCE_OF[result.class]) {
    case 'not_sent':
      return retryDelayMs(no, result.retryAfterMs);
    case 'accepted':
      return 30_000 / ladderDivisor;
    case 'refused':
    case 'ambiguous':
      if (!looksUp && !resends) return 0;
      return result.class === 'in_flight'
        ? inFlightDelayMs(no, result.retryAfterMs)
        : (INQUIRY_LADDER_MS[0] ?? 0) / ladderDivisor;
  }
}

/**
 * Records what calls ended with, in the order of `outcomes`.
 * @throws StorageUnavailable, OutcomeUnknown: then nothing is known; record again, a second time
 * answers `late` for what the first one did.
 */
export async function recordOutcomes(
  sql: Sql,
  outcomes: readonly Outcome[],
  ladderDivisor: number,
): Promise<readonly Recorded[]> {
  const { rows } = await sql.query<{
    payment_id: string;
    generation: number;
    no: number;
    verdict: string;
    wait_ms: number;
    state: PaymentState;
  }>(RECORD, [
    ...toldColumns(outcomes, (o) => waitMs(o, ladderDivisor)),
    INQUIRY_LADDER_MS.map((step) => step / ladderDivisor),
    outcomes.map((o) => o.result.retryAfterMs),
  ]);
  return rowsByOutcome(outcomes, rows).map((row) => {
    return row
      ? {
          kind: 'recorded',
          state: row.state,
          waitMs: row.wait_ms,
          sent: row.verdict !== 'not_sent',
          next: null,
        }
      : { kind: 'late' };
  });
}

const FILE_LATE: Statement = {
  name: 'file-late-answer',
  text: `INSERT INTO evidence (payment_id, tenant_id, generation, attempt_no, source, kind, code, provider_ref,
      status, observed_amount, observed_currency)
    SELECT p.id, p.tenant_id, $2, $3, 'late_answer', $4, $5, $6, $7, $8, $9 FROM payment p
     WHERE p.id = $1
       AND NOT EXISTS (SELECT 1 FROM submission_attempt a WHERE a.payment_id = p.id AND a.generation = $2
             AND a.no = $3 AND a.owner = $10 AND a.result_class = $4 AND a.code = $5)
       AND NOT EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id AND e.generation = $2
             AND e.attempt_no = $3 AND e.source = 'late_answer')`,
};

/**
 * Files the answer of an attempt that was closed meanwhile: evidence for inquiry and people.
 * @returns false when the attempt was closed with this very answer (the commit whose answer was
 * lost was our own), or when the answer is filed already. Twice: once.
 */
export async function fileLateAnswer(sql: Sql, outcome: Outcome): Promise<boolean> {
  const { result } = outcome;
  const { rowCount } = await sql.query(FILE_LATE, [
    outcome.paymentId,
    outcome.generation,
    outcome.no,
    result.class,
    result.code,
    result.providerRef,
    result.status,
    result.observed.amountMinor,
    result.observed.currency,
    outcome.owner,
  ]);
  return rowCount === 1;
}

const ABANDON: Statement = {
  name: 'close-abandoned',
  text: `WITH target AS (
  SELECT a.payment_id, a.generation, a.no,
         CASE WHEN s.capability_class = 'T' AND a.phase = 'submit' THEN 'not_sent' ELSE 'ambiguous' END AS evidence
    FROM submission_attempt a JOIN submission s ON s.payment_id = a.payment_id AND s.generation = a.generation
   WHERE a.closed_at IS NULL AND ($1::text[] IS NULL OR a.payment_id = ANY ($1::text[])) AND ${ABANDONED}
     -- What is open on a payment that has moved on must not take the places of those that can be closed.
     AND (SELECT p.state FROM payment p WHERE p.id = a.payment_id) = 'submitting'
   ORDER BY a.payment_id LIMIT 200),
head AS (
  SELECT p.id FROM payment p JOIN target t ON t.payment_id = p.id WHERE ${stateIs('p', ['submitting'])}
   ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED),
closed AS (
  UPDATE submission_attempt a
     SET closed_at = clock_timestamp(), result_class = 'ambiguous', evidence = t.evidence, code = 'abandoned'
    FROM target t JOIN head ON head.id = t.payment_id
   WHERE a.payment_id = t.payment_id AND a.generation = t.generation AND a.no = t.no AND a.closed_at IS NULL
     AND ${ABANDONED}
  RETURNING a.payment_id, a.no, a.owner, a.evidence),
c AS (
  SELECT payment_id AS id, 'unknown'::text AS to_state, 'record-outcome'::text AS cause, $2::text AS actor,
         json_build_object('rule', 'T13', 'code', 'abandoned', 'attempt', no)::text AS detail
    FROM closed WHERE evidence = 'ambiguous'),
${moveCtes({ candidates: 'c', from: ['submitting'], guard: 'TRUE', set: ', next_action_at = clock_timestamp()' })},
waiting AS (
  UPDATE payment p SET next_action_at = clock_timestamp() FROM closed k
   WHERE p.id = k.payment_id AND k.evidence = 'not_sent')
SELECT id FROM moved`,
};

/**
 * Closes attempts whose owner's lease is over, or whose call is older than 60 s, as ambiguous
 * (T13); their first inquiry is due at once. A create that moves nothing closes as not sent and may be
 * repeated. At most 200 a call.
 * @param paymentIds only these; null: whichever there are.
 * @returns the ids that became unknown. Twice: the second call finds nothing.
 */
export async function closeAbandoned(
  sql: Sql,
  paymentIds: readonly string[] | null,
  actor: string,
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>(ABANDON, [paymentIds, actor]);
  return rows.map((r) => r.id);
}
