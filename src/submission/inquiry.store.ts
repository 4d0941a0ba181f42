import type { PaymentState } from '../domain/payment-state.js';
import { move, type MoveResult } from '../payments/gate.js';
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
  readonly providerRef: string | null;
  /** Null only while no generation was opened, which an open outcome rules out. */
  readonly generation: number | null;
  readonly providerKey: string | null;
  readonly nextActionInMs: number | null;
  /** Since the generation's first ambiguous end; null when there was none. */
  readonly sinceFirstAmbiguousMs: number | null;
  /** Since the payment entered its present state. */
  readonly sinceStateMs: number;
}

const OPEN_OUTCOME: Statement = {
  name: 'open-outcome',
  text: `SELECT p.id, p.tenant_id AS "tenantId", p.state, p.version, p.provider, p.lane, p.amount, p.currency,
    p.destination, p.destination_key_id, p.destination_digest, p.digest_key_id, p.provider_ref AS "providerRef",
    s.generation, s.provider_key AS "providerKey",
    (extract(epoch FROM p.next_action_at - clock_timestamp()) * 1000)::double precision AS "nextActionInMs",
    (SELECT extract(epoch FROM clock_timestamp() - min(a.closed_at)) * 1000 FROM submission_attempt a
      WHERE a.payment_id = p.id AND a.generation = s.generation AND a.evidence = 'ambiguous')::double precision
      AS "sinceFirstAmbiguousMs",
    (SELECT extract(epoch FROM clock_timestamp() - t.at) * 1000 FROM payment_transition t
      WHERE t.payment_id = p.id AND t.seq = p.version)::double precision AS "sinceStateMs"
  FROM payment p LEFT JOIN submission s ON s.payment_id = p.id
   AND s.generation = (SELECT max(generation) FROM submission g WHERE g.payment_id = p.id)
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
      observed_amount, observed_currency)
    VALUES ($1, $2, $3, 'lookup', $4, $5, $6, $7, $8, $9)`,
};

/** Files what a lookup answered. Every answer is a row of its own; repeats are kept. */
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
  ]);
}

/**
 * Files the hit and moves by it in one transaction: T14 from unknown, T17 from submitted. A hit is
 * used only when the adapter found every money field equal.
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
    return move(tx, {
      rule: payment.state === 'unknown' ? 'T14' : 'T17',
      tenant: null,
      paymentId: payment.id,
      to,
      actor,
      detail: { source: 'lookup', code: answer.result.code },
      providerRef: answer.result.providerRef,
      nextActionInMs: to === 'submitted' ? nextPollMs : null,
      announce: null,
    });
  });
}

const OPEN_CASE: Statement = {
  name: 'open-review-case',
  text: `INSERT INTO review_case (payment_id, tenant_id, reason, due_at)
    VALUES ($1, $2, $3, clock_timestamp() + interval '4 hours') ON CONFLICT DO NOTHING`,
};

const PAUSE_LANE: Statement = {
  name: 'pause-lane-several-found',
  text: `UPDATE lane SET paused = true, pause_reason = 'several_found', paused_at = clock_timestamp()
    WHERE lane = $1 AND NOT paused`,
};

/**
 * T16: people decide. The case row, and the answer that led to it, join the move. Several objects
 * under one reference mean that the account may pay twice: its lane is paused, whoever moved the
 * payment.
 */
export async function escalate(
  database: Database,
  payment: OpenOutcome,
  reason: string,
  answer: LookupAnswer | null,
  actor: string,
): Promise<MoveResult> {
  return database.transaction(async (tx) => {
    // The lane comes before the payment in every lock order.
    if (answer?.kind === 'found_many') await tx.query(PAUSE_LANE, [payment.lane]);
    if (answer) await fileLookup(tx, payment, answer);
    const result = await move(tx, {
      rule: 'T16',
      tenant: null,
      paymentId: payment.id,
      from: ['submitted', 'unknown'],
      actor,
      detail: { code: reason },
      announce: null,
    });
    if (result.kind === 'moved') await tx.query(OPEN_CASE, [payment.id, payment.tenantId, reason]);
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
