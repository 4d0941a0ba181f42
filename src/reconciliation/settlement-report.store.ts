import type { Database, Sql, Statement } from '../persistence/database.js';
import type { StoredFile } from './settlement-file.store.js';
import { BUCKETS, CLEAN_BUCKETS, type Bucket } from './settlement-line.js';

/** One row that needs somebody, or a payment that no row tells of (`rowNo` null). */
export interface TroubleRow {
  readonly rowNo: number | null;
  readonly bucket: Bucket;
  readonly reason: string | null;
  readonly txnId: string | null;
  readonly paymentId: string | null;
  /** Payments that might be meant, by amount and time: a hint for people, never evidence. */
  readonly suggestions: readonly string[];
}

export interface SettlementReport {
  readonly fileId: bigint;
  readonly provider: string;
  /** Rows after the header. */
  readonly rows: number;
  /** Rows that an earlier file had brought. */
  readonly known: number;
  readonly counts: Readonly<Record<Bucket, number>>;
  /** In the order of the file, missing payments last; at most `limit`. */
  readonly trouble: readonly TroubleRow[];
  readonly troubleLeftOut: number;
  /** Postgres timestamptz text, the provider's clock; null: the file brought no new row. */
  readonly cutOff: string | null;
}

const COUNTS: Statement = {
  name: 'settlement-report-counts',
  text: `SELECT bucket, count(*)::integer AS rows FROM settlement_row WHERE file_id = $1 GROUP BY bucket
    UNION ALL SELECT bucket, count(*)::integer FROM settlement_fault WHERE file_id = $1 GROUP BY bucket
    UNION ALL SELECT 'missing_at_provider', count(*)::integer FROM settlement_missing
     WHERE file_id = $1 AND appeared_at IS NULL`,
};

const TROUBLE: Statement = {
  name: 'settlement-report-trouble',
  text: `SELECT row_no AS "rowNo", bucket, reason, txn_id AS "txnId", payment_id AS "paymentId", gross, currency,
      booked_at AS "bookedAt", provider
     FROM settlement_row WHERE file_id = $1 AND bucket NOT IN ('matched', 'other')
    UNION ALL SELECT row_no, bucket, reason, txn_id, NULL, NULL, NULL, NULL, NULL FROM settlement_fault WHERE file_id = $1
    UNION ALL SELECT NULL, 'missing_at_provider', NULL, NULL, payment_id, NULL, NULL, NULL, NULL
      FROM settlement_missing WHERE file_id = $1 AND appeared_at IS NULL
    ORDER BY 1 NULLS LAST, 5 LIMIT $2`,
};

/**
 * Payments of this amount that were started in the days before the booking and that no line tells of:
 * open ones (partial indexes of their states) and those reported missing.
 */
const SUGGEST: Statement = {
  name: 'settlement-report-suggest',
  text: `SELECT p.id FROM payment p
    WHERE p.provider = $1 AND p.amount = $2 AND p.currency = $3
      AND p.submission_started_at BETWEEN $4::timestamptz - $5::double precision * interval '1 ms'
        AND $4::timestamptz + interval '1 day'
      AND (p.state IN ('submitting', 'submitted', 'unknown', 'needs_review')
        OR p.id IN (SELECT m.payment_id FROM settlement_missing m WHERE m.appeared_at IS NULL))
      AND NOT EXISTS (SELECT 1 FROM settlement_row r WHERE r.payment_id = p.id AND r.kind = 'payment')
    ORDER BY p.submission_started_at DESC, p.id LIMIT 3`,
};

interface StoredTrouble extends Omit<TroubleRow, 'suggestions'> {
  readonly gross: bigint | null;
  readonly currency: string | null;
  readonly bookedAt: string | null;
  readonly provider: string | null;
}

/** Unexpected lines without a payment get suggestions, the first ones of a report only. */
const MOST_SUGGESTED = 50;

/**
 * What a file came to, read from what is stored: the same for a file that was read before.
 * @param limit most rows of trouble to name; the counts are whole.
 */
export async function readReport(
  database: Database,
  file: StoredFile,
  options: { readonly limit: number; readonly lagMs: number },
): Promise<SettlementReport> {
  const counted = await database.query<{ bucket: Bucket; rows: number }>(COUNTS, [file.id]);
  const counts = Object.fromEntries(BUCKETS.map((bucket) => [bucket, 0])) as Record<Bucket, number>;
  for (const { bucket, rows } of counted.rows) counts[bucket] += rows;
  const stored = await database.query<StoredTrouble>(TROUBLE, [file.id, options.limit]);
  const trouble: TroubleRow[] = [];
  let asked = 0;
  for (const row of stored.rows) {
    const mayAsk =
      row.bucket === 'unexpected_at_provider' && row.paymentId === null && asked < MOST_SUGGESTED;
    if (mayAsk) asked++;
    const suggestions = mayAsk ? await suggest(database, row, options.lagMs) : [];
    const { rowNo, bucket, reason, txnId, paymentId } = row;
    trouble.push({ rowNo, bucket, reason, txnId, paymentId, suggestions });
  }
  const all = BUCKETS.reduce((sum, b) => sum + (CLEAN_BUCKETS.includes(b) ? 0 : counts[b]), 0);
  return {
    fileId: file.id,
    provider: file.provider,
    rows: file.rowsDone,
    known: file.rowsKnown,
    counts,
    trouble,
    troubleLeftOut: all - trouble.length,
    cutOff: file.lastBookedAt,
  };
}

async function suggest(sql: Sql, row: StoredTrouble, lagMs: number): Promise<readonly string[]> {
  if (row.gross === null || row.gross >= 0n) return [];
  const { rows } = await sql.query<{ id: string }>(SUGGEST, [
    row.provider,
    -row.gross,
    row.currency,
    row.bookedAt,
    lagMs,
  ]);
  return rows.map((each) => each.id);
}
