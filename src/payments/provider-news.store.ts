import type { PaymentState } from '../domain/payment-state.js';
import type { StoredDestination } from '../encryption/destination-cipher.js';
import type { Sql, Statement } from '../persistence/database.js';
import type { ProviderResult } from '../providers/payment-provider.js';
import { moveCtes } from './gate.js';

/** How news names the payment that it is about. At least one of key, payment and object is not null. */
export interface NewsRefs {
  readonly provider: string;
  readonly account: string;
  readonly providerKey: string | null;
  readonly paymentId: string | null;
  readonly generation: number | null;
  readonly providerRef: string | null;
}

/** A payment as its news found it, with what a lookup needs. */
export interface NewsTarget extends StoredDestination {
  readonly state: PaymentState;
  readonly version: number;
  readonly lane: string;
  readonly amount: bigint;
  readonly currency: string;
  /** The provider's object that the payment is known to be, if any. */
  readonly providerRef: string | null;
  /** The generation that the news names. */
  readonly generation: number;
  readonly newestGeneration: number;
  readonly providerKey: string;
  /** Two phases: the one object that may be released; null before it is known, and in one phase. */
  readonly commitTarget: string | null;
  /** First send of the generation, epoch ms of the database's clock; null: none was sent. */
  readonly sentSinceMs: number | null;
}

/**
 * Only what was sent through this provider and account can be meant: news of one account never
 * reaches a payment of another. What the news names must agree: a key of one payment beside the id
 * of another fits none.
 */
const FIND: Statement = {
  name: 'news-find',
  text: `WITH hit AS (
  SELECT s.payment_id, s.generation, 1 AS way FROM submission s WHERE s.provider_key = $3
  UNION ALL
  SELECT s.payment_id, s.generation, 2 FROM submission s WHERE s.payment_id = $4
     AND s.generation = coalesce($5, (SELECT max(g.generation) FROM submission g WHERE g.payment_id = $4))
  UNION ALL
  SELECT s.payment_id, s.generation, 3 FROM payment p JOIN submission s ON s.payment_id = p.id
   WHERE $3::text IS NULL AND $4::text IS NULL AND p.provider_ref = $6
     AND s.generation = (SELECT max(g.generation) FROM submission g WHERE g.payment_id = p.id))
SELECT p.id, p.tenant_id, p.state, p.version, p.lane, p.amount, p.currency, p.destination, p.destination_key_id,
       p.destination_digest, p.digest_key_id, p.provider_ref AS "providerRef", s.generation,
       (SELECT max(g.generation) FROM submission g WHERE g.payment_id = p.id)::integer AS "newestGeneration",
       s.provider_key AS "providerKey", s.commit_target AS "commitTarget",
       (SELECT extract(epoch FROM min(a.call_started_at)) * 1000 FROM submission_attempt a
         WHERE a.payment_id = s.payment_id AND a.generation = s.generation)::double precision AS "sentSinceMs"
  FROM hit JOIN payment p ON p.id = hit.payment_id
  JOIN submission s ON s.payment_id = hit.payment_id AND s.generation = hit.generation
 WHERE p.provider = $1 AND s.account = $2
   AND ($3::text IS NULL OR s.provider_key = $3) AND ($4::text IS NULL OR s.payment_id = $4)
   AND ($5::integer IS NULL OR s.generation = $5)
 ORDER BY hit.way LIMIT 1`,
};

/**
 * The payment that news is about: by provider key, else by payment id and generation, else by the
 * provider's object (submission_provider_key_unique, primary keys, payment_by_provider_ref).
 * @returns null when there is none, or when what the news names does not fit together.
 */
export async function findByNews(sql: Sql, refs: NewsRefs): Promise<NewsTarget | null> {
  const { rows } = await sql.query<NewsTarget>(FIND, [
    refs.provider,
    refs.account,
    refs.providerKey,
    refs.paymentId,
    refs.generation,
    refs.providerRef,
  ]);
  return rows[0] ?? null;
}

const LOCK: Statement = {
  name: 'news-lock',
  text: `SELECT p.state, p.version,
      (SELECT max(g.generation) FROM submission g WHERE g.payment_id = p.id)::integer AS "newestGeneration",
      (SELECT c.reason FROM review_case c
            WHERE c.payment_id = p.id AND c.closed_at IS NULL) AS "caseReason"
    FROM payment p WHERE p.id = $1 FOR NO KEY UPDATE OF p`,
};

/** Where a payment stands while the transaction holds it. */
export interface HeldPayment {
  readonly state: PaymentState;
  readonly version: number;
  /** Null: nothing was ever sent. */
  readonly newestGeneration: number | null;
  /** Of its open review case; null: none is open. */
  readonly caseReason: string | null;
}

/** Holds a payment until the transaction ends. @throws LockTimeout after 2 s. */
export async function holdForNews(tx: Sql, paymentId: string): Promise<HeldPayment> {
  const { rows } = await tx.query<HeldPayment>(LOCK, [paymentId]);
  if (!rows[0]) throw new Error(`payment ${paymentId} is gone, which the database rules out`);
  return rows[0];
}

const FILE: Statement = {
  name: 'news-file',
  text: `INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, code, provider_ref, status,
      observed_amount, observed_currency)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
};

export interface NewsEvidence {
  readonly source: 'lookup' | 'webhook';
  readonly kind: 'found' | 'found_other' | 'found_many' | 'told';
  /** Null for several objects. */
  readonly result: ProviderResult | null;
}

/** Files one piece of news. Every call is a row of its own. */
export async function fileNews(
  tx: Sql,
  target: NewsTarget,
  { source, kind, result }: NewsEvidence,
): Promise<void> {
  await tx.query(FILE, [
    target.id,
    target.tenant_id,
    target.generation,
    source,
    kind,
    result?.code ?? 'several',
    result?.providerRef ?? null,
    result?.status ?? null,
    result?.observed.amountMinor ?? null,
    result?.observed.currency ?? null,
  ]);
}

/**
 * T8 and T9 by news: the provider has the payment although our own call has not ended. The open
 * attempt, if there is one, closes as accepted if its call had begun, else as not sent: nobody will
 * call under it. What its call ends with later is filed and compared, never applied. News of an earlier
 * generation than the newest moves nothing: it would leave an open attempt on a final payment.
 */
const ACCEPT: Statement = {
  name: 'news-accept',
  text: `WITH closed AS (
  UPDATE submission_attempt a
     SET closed_at = clock_timestamp(), code = 'told_by_' || $4, provider_ref = $5,
         result_class = CASE WHEN a.call_started_at IS NULL THEN 'not_sent' ELSE 'accepted' END,
         evidence = CASE WHEN a.call_started_at IS NULL THEN 'not_sent' ELSE 'accepted' END
   WHERE a.payment_id = $1 AND a.generation = $2 AND a.closed_at IS NULL),
c AS (
  SELECT $1::text AS id, $3::text AS to_state, 'record-outcome'::text AS cause, $6::text AS actor, $7::text AS detail,
         $5::text AS provider_ref, clock_timestamp() + $8::double precision * interval '1 ms' AS next_action_at)
,${moveCtes({
    candidates: 'c',
    from: ['submitting'],
    guard: 'NOT EXISTS (SELECT 1 FROM submission g WHERE g.payment_id = p.id AND g.generation > $2)',
    set: ', next_action_at = c.next_action_at, provider_ref = coalesce(c.provider_ref, p.provider_ref)',
    announce: 'wake',
  })}
SELECT version FROM moved`,
};

export interface AcceptedByNews {
  readonly to: 'submitted' | 'succeeded';
  readonly source: 'lookup' | 'webhook';
  readonly providerRef: string | null;
  readonly actor: string;
  readonly detail: Readonly<Record<string, string>>;
  /** When the provider is to be asked again, in ms from now on the database's clock; null: never. */
  readonly nextPollMs: number | null;
}

/** Moves a payment that is `submitting` and locked by this transaction. @returns false: it was not. */
export async function acceptWhileSubmitting(
  tx: Sql,
  target: NewsTarget,
  accepted: AcceptedByNews,
): Promise<boolean> {
  const { rowCount } = await tx.query(ACCEPT, [
    target.id,
    target.generation,
    accepted.to,
    accepted.source,
    accepted.providerRef,
    accepted.actor,
    JSON.stringify({ rule: accepted.to === 'succeeded' ? 'T9' : 'T8', ...accepted.detail }),
    accepted.nextPollMs,
  ]);
  return rowCount === 1;
}

const PAUSE_LANE: Statement = {
  name: 'news-pause-lane',
  text: `UPDATE lane SET paused = true, pause_reason = 'several_found', paused_at = clock_timestamp(),
      paused_by = NULL WHERE lane = $1 AND NOT paused`,
};

/** Several objects under one reference: the account may pay twice. Before the payment in lock order. */
export async function pauseLaneByNews(tx: Sql, lane: string): Promise<void> {
  await tx.query(PAUSE_LANE, [lane]);
}
