import type { PaymentState } from '../domain/payment-state.js';
import type { Sql, Statement } from '../persistence/database.js';
import { move } from './gate.js';
import { escalateBeforeCall, escalateToReview, openCase, settleInReview } from './review-moves.js';

/**
 * What a line of a provider's settlement file does to its payment. Each runs in the transaction of its
 * caller. A final state is never rewritten: news against it is evidence and a case.
 */

/** A line as evidence. Money in minor units, positive. */
export interface SettlementNews {
  readonly paymentId: string;
  readonly provider: string;
  /** Null: the line names the provider's object that we know, not our reference. */
  readonly generation: number | null;
  readonly providerRef: string | null;
  readonly amountMinor: bigint;
  readonly currency: string;
  /** The bucket and reason of the line, codes. */
  readonly kind: string;
  readonly code: string | null;
}

const LOCK: Statement = {
  name: 'settlement-lock',
  text: `SELECT p.state FROM payment p WHERE p.id = $1 FOR NO KEY UPDATE`,
};

/**
 * The guard on money, in the database: provider, amount, currency, newest generation and object are
 * the payment's. Null: they are; else in which they differ.
 */
const DIFFERENCE: Statement = {
  name: 'settlement-difference',
  text: `SELECT CASE WHEN s.generation IS NULL THEN 'never_sent'
      WHEN p.provider <> $2 THEN 'other_provider'
      WHEN p.amount <> $3 OR p.currency <> $4 THEN 'other_money'
      WHEN s.generation <> $5 THEN 'other_generation'
      WHEN p.provider_ref <> $6 OR ($5::smallint IS NULL AND p.provider_ref IS DISTINCT FROM $6) THEN 'other_object'
      END AS difference
    FROM payment p LEFT JOIN submission s ON s.payment_id = p.id
     AND s.generation = (SELECT max(g.generation) FROM submission g WHERE g.payment_id = p.id)
    WHERE p.id = $1`,
};

const FILE: Statement = {
  name: 'settlement-file-evidence',
  text: `INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, code, provider_ref, status,
      observed_amount, observed_currency)
    SELECT p.id, p.tenant_id, $2, 'settlement', $3, $4, $5, $6, $7, $8 FROM payment p WHERE p.id = $1`,
};

/** `status` says what the line proves; a line that contradicts the instruction proves nothing. */
async function fileEvidence(tx: Sql, news: SettlementNews, status: 'succeeded' | null): Promise<void> {
  await tx.query(FILE, [
    news.paymentId,
    news.generation,
    news.kind,
    news.code,
    news.providerRef,
    status,
    news.amountMinor,
    news.currency,
  ]);
}

async function lockState(tx: Sql, paymentId: string): Promise<PaymentState | null> {
  return (await tx.query<{ state: PaymentState }>(LOCK, [paymentId])).rows[0]?.state ?? null;
}

export type SettledBy =
  | { readonly kind: 'settled'; readonly from: 'unknown' | 'submitted' | 'needs_review' }
  /** In review for a reason that only people close: the line is evidence for them, and moves nothing. */
  | { readonly kind: 'with_people' }
  /** It has succeeded already, by this object: the line agrees. */
  | { readonly kind: 'agrees' }
  /** A call is under way or being closed: come back with the line later. */
  | { readonly kind: 'too_early' }
  /** The state found, or what the line names, does not allow it: it is a contradiction now. A code. */
  | { readonly kind: 'contradicts'; readonly reason: string };

const ACTOR = 'settlement';

/**
 * The provider booked the payment: `unknown` (T14), `submitted` (T17) and `needs_review` (T20) become
 * `succeeded` when every money field is equal, which the database compares under the row's lock. One
 * that has succeeded since the line was judged is compared, too: by another object it is paid twice.
 * Files the line as evidence and wakes the workflow. Twice: the second `agrees`.
 * @throws faults of storage: nothing of it stands, call again.
 */
export async function settleByLine(tx: Sql, news: SettlementNews): Promise<SettledBy> {
  const state = await lockState(tx, news.paymentId);
  switch (state) {
    case 'submitting':
      return { kind: 'too_early' };
    case 'succeeded':
    case 'returned': {
      const reason = await difference(tx, news);
      return reason === null ? { kind: 'agrees' } : { kind: 'contradicts', reason };
    }
    case null:
    case 'scheduled':
    case 'held':
    case 'cancelled':
    case 'expired':
      return { kind: 'contradicts', reason: 'never_sent' };
    case 'failed':
      return { kind: 'contradicts', reason: 'after_failed' };
    case 'unknown':
    case 'submitted':
    case 'needs_review':
      return settleOpen(tx, news, state);
  }
}

/** In what the line differs from the payment that it names, as a code; null: in nothing. */
async function difference(tx: Sql, news: SettlementNews): Promise<string | null> {
  const { paymentId, provider, amountMinor, currency, generation, providerRef } = news;
  const { rows } = await tx.query<{ difference: string | null }>(DIFFERENCE, [
    paymentId,
    provider,
    amountMinor,
    currency,
    generation,
    providerRef,
  ]);
  return rows[0] ? rows[0].difference : 'no_payment';
}

async function settleOpen(
  tx: Sql,
  news: SettlementNews,
  from: 'unknown' | 'submitted' | 'needs_review',
): Promise<SettledBy> {
  const { paymentId, providerRef } = news;
  const reason = await difference(tx, news);
  if (reason !== null) return { kind: 'contradicts', reason };
  await fileEvidence(tx, news, 'succeeded');
  const decided = { paymentId, to: 'succeeded', providerRef, actor: ACTOR, nextActionInMs: null } as const;
  const result =
    from === 'needs_review'
      ? await settleInReview(tx, { ...decided, source: 'settlement', code: news.kind })
      : await move(tx, {
          ...decided,
          rule: from === 'unknown' ? 'T14' : 'T17',
          tenant: null,
          detail: { source: 'settlement', code: news.kind },
          announce: 'wake',
        });
  if (result.kind !== 'moved') {
    // The row is held: only the guard of T20 can refuse.
    if (from === 'needs_review') return { kind: 'with_people' };
    throw new Error(`payment ${paymentId} is locked in ${from}, yet its settlement line did not move it`);
  }
  return { kind: 'settled', from };
}

export interface Contradicted {
  /** The state left by T16; null: the state stayed. */
  readonly escalatedFrom: PaymentState | null;
  readonly caseOpened: boolean;
}

/**
 * The line cannot be true beside what is recorded: it is filed as evidence, people get a case, and a
 * payment whose outcome is open goes to review (T16), from `submitting` before a call goes out. Nothing
 * else moves. Twice: one more row of
 * evidence, one case.
 * @param reason code of the case.
 */
export async function contradictByLine(tx: Sql, news: SettlementNews, reason: string): Promise<Contradicted> {
  const state = await lockState(tx, news.paymentId);
  if (state === null) return { escalatedFrom: null, caseOpened: false };
  await fileEvidence(tx, news, null);
  const { paymentId } = news;
  if (state === 'submitting' || state === 'submitted' || state === 'unknown') {
    const result =
      state === 'submitting'
        ? await escalateBeforeCall(tx, { paymentId, reason, actor: ACTOR })
        : await escalateToReview(tx, { tenant: null, paymentId, reason, actor: ACTOR });
    if (result?.kind === 'moved') return { escalatedFrom: state, caseOpened: true };
  }
  return {
    escalatedFrom: null,
    caseOpened: await openCase(tx, { paymentId, reason }),
  };
}
