import type { Sql, Statement } from '../persistence/database.js';

/** Entries of one answer. Attempts and inquiries are bounded far below it. */
export const HISTORY_LIMIT = 2_000;

/** One thing that happened to a payment. Members beside `kind` and `at` as in the view. */
export interface HistoryRow {
  readonly kind: 'transition' | 'attempt' | 'evidence';
  /** Postgres text of a timestamptz: the database's clock. */
  readonly at: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const FIND_HISTORY: Statement = {
  name: 'payment-find-history',
  text: `WITH owned AS (SELECT id FROM payment WHERE tenant_id = $1 AND id = $2)
SELECT kind, at, body FROM (
  SELECT 'transition' AS kind, t.at, 1 AS rank, t.seq AS place,
         jsonb_build_object('seq', t.seq, 'from', t.from_state, 'to', t.to_state, 'cause', t.cause,
           'actor', t.actor, 'detail', t.detail::jsonb) AS body
    FROM owned JOIN payment_transition t ON t.payment_id = owned.id
  UNION ALL
  SELECT 'attempt', a.opened_at, 2, a.generation * 1000 + a.no,
         jsonb_build_object('generation', a.generation, 'attempt', a.no, 'phase', a.phase,
           'call_started_at', a.call_started_at, 'closed_at', a.closed_at, 'evidence', a.evidence,
           'result_class', a.result_class, 'code', a.code, 'provider_ref', a.provider_ref,
           'http_status', a.http_status, 'replayed', a.replayed)
    FROM owned JOIN submission_attempt a ON a.payment_id = owned.id
  UNION ALL
  SELECT 'evidence', e.at, 3, 0,
         jsonb_build_object('source', e.source, 'evidence', e.kind, 'generation', e.generation,
           'attempt', e.attempt_no, 'code', e.code, 'provider_ref', e.provider_ref, 'status', e.status,
           'observed_amount', e.observed_amount::text, 'observed_currency', e.observed_currency)
    FROM owned JOIN evidence e ON e.payment_id = owned.id) entry
ORDER BY at, rank, place LIMIT ${HISTORY_LIMIT + 1}`,
};

/**
 * Every transition, attempt and piece of evidence of the tenant's payment in one snapshot, oldest
 * first; at most `HISTORY_LIMIT + 1` rows, of which the last only says that there are more. Empty
 * when the tenant has no such payment: each payment has its first transition.
 */
export async function findHistory(db: Sql, tenantId: string, id: string): Promise<readonly HistoryRow[]> {
  return (await db.query<HistoryRow>(FIND_HISTORY, [tenantId, id])).rows;
}
