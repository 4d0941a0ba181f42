import type { PaymentState, TransitionId } from '../domain/payment-state.js';
import { move, stateIs, type MoveResult } from '../payments/gate.js';
import { escalateToReview, openCase } from '../payments/review-moves.js';
import type { Database, Sql, Statement } from '../persistence/database.js';
import type { LookupAnswer, ProviderResult } from '../providers/payment-provider.js';
import type { OpenOutcome } from './open-outcome.store.js';

const FILE: Statement = {
  name: 'file-lookups',
  text: `INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, code, provider_ref, status,
      observed_amount, observed_currency, paths, at)
    SELECT payment_id, tenant_id, generation, 'lookup', kind, code, provider_ref, status, observed_amount,
           observed_currency, string_to_array(paths, ','), coalesce(read_at, clock_timestamp())
      FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::bigint[], $9::text[], $10::text[], $11::timestamptz[])
        AS t (payment_id, tenant_id, generation, kind, code, provider_ref, status, observed_amount, observed_currency,
              paths, read_at)`,
};

/** Says that nothing moved so far, which holds until the next send. */
const isSilence = (answer: LookupAnswer): boolean =>
  answer.kind === 'absent' ||
  answer.kind === 'cannot_tell' ||
  (answer.kind === 'found' && answer.result.status === 'inert');

/** What was asked about, and the answer. */
export interface LookedUp {
  readonly payment: OpenOutcome;
  readonly answer: LookupAnswer;
}

/**
 * Files what lookups answered. Every answer is a row of its own; repeats are kept. A silence bears the
 * time at which the payment was read for the question: who slept since may not call it news.
 */
export async function fileLookups(sql: Sql, lookups: readonly LookedUp[]): Promise<void> {
  const hits = lookups.map(({ answer }): ProviderResult | null =>
    answer.kind === 'found' || answer.kind === 'found_other' ? answer.result : null,
  );
  const codes = lookups.map(({ answer }, i) => {
    const own = answer.kind === 'cannot_tell' ? answer.code : answer.kind === 'found_many' ? 'several' : null;
    return hits[i]?.code ?? own;
  });
  await sql.query(FILE, [
    lookups.map(({ payment }) => payment.id),
    lookups.map(({ payment }) => payment.tenantId),
    lookups.map(({ payment }) => payment.generation),
    lookups.map(({ answer }) => answer.kind),
    codes,
    hits.map((hit) => hit?.providerRef ?? null),
    hits.map((hit) => hit?.status ?? null),
    hits.map((hit) => hit?.observed.amountMinor ?? null),
    hits.map((hit) => hit?.observed.currency ?? null),
    lookups.map(({ answer }) => (answer.kind === 'absent' ? answer.by.join(',') : null)),
    lookups.map(({ payment, answer }) => (isSilence(answer) ? payment.readAt : null)),
  ]);
}

/** `fileLookups` for one. */
export async function fileLookup(sql: Sql, payment: OpenOutcome, answer: LookupAnswer): Promise<void> {
  await fileLookups(sql, [{ payment, answer }]);
}

/** The rule by which evidence moves a payment, by the state in which its outcome is open. */
const EVIDENCE_RULES: Partial<Record<PaymentState, TransitionId>> = {
  unknown: 'T14',
  submitted: 'T17',
  needs_review: 'T20',
};

/**
 * Files the hit and moves by it in one transaction: T14 from unknown, T17 from submitted, T20 from
 * review, which closes the case (by trigger). The workflow is woken. A hit is used only when every money field is
 * equal, and only where the payment stands as it was read before the question. In review it decides
 * nothing where another answer once contradicted it: T20's own guard leaves that to people.
 * @returns lost, with the state found, also when people decide; moved to needs_review (T16) when the
 * payment has another generation by now, since what was found may be a second payment.
 */
export async function settleByLookup(
  database: Database,
  payment: OpenOutcome,
  answer: Extract<LookupAnswer, { kind: 'found' }>,
  to: 'submitted' | 'succeeded' | 'failed',
  actor: string,
  nextPollMs: number,
): Promise<MoveResult> {
  return database.transaction(async (tx) => {
    await fileLookup(tx, payment, answer);
    const rule = EVIDENCE_RULES[payment.state];
    if (!rule) return { kind: 'lost', state: payment.state, version: payment.version };
    const result = await move(tx, {
      rule,
      tenant: null,
      paymentId: payment.id,
      to,
      actor,
      expectedVersion: payment.version,
      detail: { source: 'lookup', code: answer.result.code },
      providerRef: answer.result.providerRef,
      nextActionInMs: to === 'submitted' ? nextPollMs : null,
      // The run of an unknown payment waits for the same news in `submitted`.
      announce: payment.state === 'unknown' && to === 'submitted' ? null : 'wake',
    });
    return result.kind === 'lost' && to !== 'failed' ? tellOfOlder(tx, payment, actor, result) : result;
  });
}

const HAS_NEWER: Statement = {
  name: 'has-newer-generation',
  text: `SELECT FROM submission WHERE payment_id = $1 AND generation > $2`,
};

/** What was found is of a generation that was followed by another: people hear of it, whatever the state. */
async function tellOfOlder(
  tx: Sql,
  { id, generation }: OpenOutcome,
  actor: string,
  lost: MoveResult,
): Promise<MoveResult> {
  const newer = await tx.query(HAS_NEWER, [id, generation]);
  if (newer.rowCount === 0) return lost;
  const reason = 'other_generation';
  const moved = await escalateToReview(tx, { tenant: null, paymentId: id, reason, actor });
  if (moved.kind === 'lost') await openCase(tx, { paymentId: id, reason });
  return moved;
}

const PAUSE_LANE: Statement = {
  name: 'pause-lane-several-found',
  text: `UPDATE lane SET paused = true, pause_reason = 'several_found', paused_at = clock_timestamp(),
      paused_by = $2 WHERE lane = $1 AND NOT paused`,
};

/**
 * Pauses a lane whose account shows several objects under one reference: it may pay twice.
 * @param actor who saw it. Twice: nothing.
 */
export async function pauseForSeveral(sql: Sql, lane: string, actor: string): Promise<void> {
  await sql.query(PAUSE_LANE, [lane, actor]);
}

/**
 * T16: people decide. The case row, and the answer that led to it, join the move. Several objects
 * under one reference mean that the account may pay twice: its lane is paused, whoever moved the
 * payment. An answer is for people wherever the payment stands by now; without one, the reason holds
 * only for the payment as it was read.
 * @param nextLookupMs when the provider is asked again while people decide; null: it cannot be asked.
 */
export async function escalate(
  database: Database,
  payment: OpenOutcome,
  reason: string,
  answer: LookupAnswer | null,
  actor: string,
  nextLookupMs: number | null,
): Promise<MoveResult> {
  return database.transaction(async (tx) => {
    // The lane comes before the payment in every lock order.
    if (answer?.kind === 'found_many') await pauseForSeveral(tx, payment.lane, actor);
    if (answer) await fileLookup(tx, payment, answer);
    const result = await move(tx, {
      rule: 'T16',
      tenant: null,
      paymentId: payment.id,
      from: ['submitted', 'unknown'],
      actor,
      expectedVersion: answer === null ? payment.version : null,
      detail: { code: reason },
      nextActionInMs: nextLookupMs,
      announce: 'wake',
    });
    if (result.kind === 'moved' || answer !== null) await openCase(tx, { paymentId: payment.id, reason });
    return result;
  });
}

const PLAN: Statement = {
  name: 'plan-inquiries',
  text: `WITH due AS (
  SELECT p.id, t.in_ms FROM unnest($1::text[], $2::double precision[], $3::integer[]) AS t (id, in_ms, version)
    JOIN payment p ON p.id = t.id AND p.version = t.version
   WHERE ${stateIs('p', ['submitted', 'unknown'])} FOR NO KEY UPDATE OF p SKIP LOCKED)
UPDATE payment p SET next_action_at = clock_timestamp() + due.in_ms * interval '1 ms' FROM due WHERE p.id = due.id`,
};

/** When to ask about a payment again, ms from now. */
export interface PlannedInquiry {
  readonly payment: OpenOutcome;
  readonly inMs: number;
}

/**
 * Plans the next inquiries of payments whose outcome is still open at the version that was read. One that
 * somebody holds keeps the time at which its claim ends.
 */
export async function planInquiries(sql: Sql, plans: readonly PlannedInquiry[]): Promise<void> {
  await sql.query(PLAN, [
    plans.map(({ payment }) => payment.id),
    plans.map(({ inMs }) => inMs),
    plans.map(({ payment }) => payment.version),
  ]);
}
