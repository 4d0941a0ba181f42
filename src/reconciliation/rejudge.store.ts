import type { Sql, Statement } from '../persistence/database.js';
import type { SettlementLine } from './settlement-line.js';

const UNEXPECTED: Statement = {
  name: 'settlement-unexpected-lines',
  text: `SELECT r.provider, r.txn_id AS "txnId", r.row_no AS "rowNo", r.kind, r.source_id AS "sourceId", r.reference,
      r.gross AS "grossMinor", r.fee AS "feeMinor", r.net AS "netMinor", r.currency, r.booked_at AS "bookedAt",
      r.available_at AS "availableAt", r.batch, r.generation
     FROM settlement_row r
    WHERE r.bucket = 'unexpected_at_provider' AND r.payment_id IS NULL
      AND (r.provider, r.txn_id) > ($1::text, $2::text)
    ORDER BY r.provider, r.txn_id LIMIT $3`,
};

export type UnexpectedLine = Omit<SettlementLine, 'paymentId'> & { readonly provider: string };

/** Unexpected lines that name no payment, after a place, in one order (index settlement_row_unexpected). */
export async function unexpectedLines(
  sql: Sql,
  after: { readonly provider: string; readonly txnId: string },
  limit: number,
): Promise<readonly UnexpectedLine[]> {
  return (await sql.query<UnexpectedLine>(UNEXPECTED, [after.provider, after.txnId, limit])).rows;
}

const WAKE_OVERDUE: Statement = {
  name: 'reconcile-wake-overdue',
  text: `INSERT INTO outbox (kind, payment_id, due_at)
    SELECT 'wake', p.id, p.execute_at FROM payment p
     WHERE p.state IN ('submitted', 'unknown')
       AND p.next_action_at < clock_timestamp() - $1::double precision * interval '1 ms'
       AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.kind = 'wake' AND o.payment_id = p.id)
     ORDER BY p.next_action_at LIMIT $2`,
};

/**
 * Wakes the workflows of open outcomes whose inquiry is overdue by this long (payment_submitted,
 * payment_unknown). @returns how many. Twice: those that wait to be woken are left out.
 */
export async function wakeOverdue(sql: Sql, overdueMs: number, limit: number): Promise<number> {
  return (await sql.query(WAKE_OVERDUE, [overdueMs, limit])).rowCount;
}
