import type { PaymentState, TransitionId } from '../domain/payment-state.js';
import type { CapabilityClass } from '../domain/submission-policy.js';
import { probeInMs } from '../lanes/lane-admission.js';
import { move, type MoveResult } from '../payments/gate.js';
import { escalateToReview, openCase } from '../payments/review-moves.js';
import type { Database, Sql, Statement } from '../persistence/database.js';
import type { LookupAnswer, ProviderResult } from '../providers/payment-provider.js';

/** What an inquiry needs to know of a payment whose outcome is open. Durations in ms, database clock. */
export interface OpenOutcome {
  readonly id: string;
  readonly tenantId: string;
  readonly state: PaymentState;
  readonly version: number;
  readonly provider: string;
  readonly lane: string;
  readonly amount: bigint;
  readonly currency: string;
  readonly destination: Buffer;
  readonly destination_key_id: string;
  readonly destination_digest: Buffer;
  readonly digest_key_id: string;
  readonly reference: string | null;
  readonly description: string | null;
  readonly providerRef: string | null;
  /** Null only while no generation was opened, which an open outcome rules out. */
  readonly generation: number | null;
  readonly providerKey: string | null;
  readonly capabilityClass: CapabilityClass | null;
  /** Two phases: the one object that may be committed. */
  readonly commitTarget: string | null;
  /** Where the generation was sent to; null as `generation`. */
  readonly adapter: string | null;
  readonly account: string | null;
  readonly baseUrl: string | null;
  /** The generation's first send: epoch ms on the database's clock; null when nothing was sent. */
  readonly sentSinceMs: number | null;
  /** Until the key may no longer be used; negative when that is over, null when it was never used. */
  readonly keyValidInMs: number | null;
  readonly nextActionInMs: number | null;
  /** Until the open breaker of its lane lets a call try; null while the breaker is closed. */
  readonly breakerProbeInMs: number | null;
  /** Since the generation's first ambiguous end; null when there was none. */
  readonly sinceFirstAmbiguousMs: number | null;
  /** From the generation's first ambiguous end to its last attempt's end; null when there was none. */
  readonly firstToLastMs: number | null;
  /** Since the payment entered its present state. */
  readonly sinceStateMs: number;
  /** No later than what was read: a Postgres timestamptz text. */
  readonly readAt: string;
}

const OPEN_OUTCOME: Statement = {
  name: 'open-outcome',
  text: `SELECT p.id, p.tenant_id AS "tenantId", p.state, p.version, p.provider, p.lane, p.amount, p.currency,
    p.destination, p.destination_key_id, p.destination_digest, p.digest_key_id, p.provider_ref AS "providerRef",
    p.reference, p.description, s.generation, s.provider_key AS "providerKey", s.capability_class AS "capabilityClass",
    s.commit_target AS "commitTarget", s.adapter, s.account, s.base_url AS "baseUrl",
    ${probeInMs('l')} AS "breakerProbeInMs",
    (extract(epoch FROM s.key_valid_until - clock_timestamp()) * 1000)::double precision AS "keyValidInMs",
    a."sentSinceMs", a."sinceFirstAmbiguousMs", a."firstToLastMs",
    (extract(epoch FROM p.next_action_at - clock_timestamp()) * 1000)::double precision AS "nextActionInMs",
    (SELECT extract(epoch FROM clock_timestamp() - t.at) * 1000 FROM payment_transition t
      WHERE t.payment_id = p.id AND t.seq = p.version)::double precision AS "sinceStateMs",
    transaction_timestamp() AS "readAt"
  FROM payment p LEFT JOIN lane l ON l.lane = p.lane LEFT JOIN submission s ON s.payment_id = p.id
   AND s.generation = (SELECT max(generation) FROM submission g WHERE g.payment_id = p.id)
  LEFT JOIN LATERAL (
    SELECT (extract(epoch FROM min(b.call_started_at)) * 1000)::double precision AS "sentSinceMs",
           (extract(epoch FROM clock_timestamp() - min(b.closed_at) FILTER (WHERE b.evidence = 'ambiguous')) * 1000
             )::double precision AS "sinceFirstAmbiguousMs",
           (extract(epoch FROM max(b.closed_at) - min(b.closed_at) FILTER (WHERE b.evidence = 'ambiguous')) * 1000
             )::double precision AS "firstToLastMs"
      FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation) a ON TRUE
  WHERE p.id = $1`,
};

/** Reads one payment for its inquiry (primary keys). Null for an unknown id. */
export async function readOpenOutcome(sql: Sql, paymentId: string): Promise<OpenOutcome | null> {
  const { rows } = await sql.query<OpenOutcome>(OPEN_OUTCOME, [paymentId]);
  return rows[0] ?? null;
}

const FILE: Statement = {
  name: 'file-lookup',
  text: `INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, code, provider_ref, status,
      observed_amount, observed_currency, paths, at)
    VALUES ($1, $2, $3, 'lookup', $4, $5, $6, $7, $8, $9, $10, coalesce($11::timestamptz, clock_timestamp()))`,
};

/** Says that nothing moved so far, which holds until the next send. */
const isSilence = (answer: LookupAnswer): boolean =>
  answer.kind === 'absent' ||
  answer.kind === 'cannot_tell' ||
  (answer.kind === 'found' && answer.result.status === 'inert');

/**
 * Files what a lookup answered. Every answer is a row of its own; repeats are kept. A silence bears the
 * time at which the payment was read for the question: who slept since may not call it news.
 */
export async function fileLookup(sql: Sql, payment: OpenOutcome, answer: LookupAnswer): Promise<void> {
  const hit: ProviderResult | null =
    answer.kind === 'found' || answer.kind === 'found_other' ? answer.result : null;
  const code = answer.kind === 'cannot_tell' ? answer.code : answer.kind === 'found_many' ? 'several' : null;
  await sql.query(FILE, [
    payment.id,
    payment.tenantId,
    payment.generation,
    answer.kind,
    hit?.code ?? code,
    hit?.providerRef ?? null,
    hit?.status ?? null,
    hit?.observed.amountMinor ?? null,
    hit?.observed.currency ?? null,
    answer.kind === 'absent' ? answer.by : null,
    isSilence(answer) ? payment.readAt : null,
  ]);
}

/** The rule by which evidence moves a payment, by the state in which its outcome is open. */
const EVIDENCE_RULES: Partial<Record<PaymentState, TransitionId>> = {
  unknown: 'T14',
  submitted: 'T17',
  needs_review: 'T20',
};

/**
 * Files the hit and moves by it in one transaction: T14 from unknown, T17 from submitted, T20 from
 * review, which closes the case (by trigger) and wakes the workflow. A hit is used only when every money field is
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
      announce: payment.state === 'needs_review' ? 'wake' : null,
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
      announce: null,
    });
    if (result.kind === 'moved' || answer !== null) await openCase(tx, { paymentId: payment.id, reason });
    return result;
  });
}

const PLAN: Statement = {
  name: 'plan-inquiry',
  text: `UPDATE payment SET next_action_at = clock_timestamp() + $2::double precision * interval '1 ms'
    WHERE id = $1 AND state IN ('submitted', 'unknown') AND version = $3`,
};

/** Plans the next inquiry of a payment whose outcome is still open at this version. */
export async function planInquiry(sql: Sql, payment: OpenOutcome, inMs: number): Promise<void> {
  await sql.query(PLAN, [payment.id, inMs, payment.version]);
}
