import type { Sql, Statement } from '../persistence/database.js';
import type { FollowUp } from './judge-line.js';
import type { LineKind } from './settlement-line.js';

/** A stored line with what is still to be done about it. */
export interface OpenLine {
  readonly provider: string;
  readonly txnId: string;
  readonly fileId: bigint;
  readonly rowNo: number;
  readonly kind: LineKind;
  readonly sourceId: string | null;
  readonly generation: number | null;
  readonly grossMinor: bigint;
  readonly currency: string;
  readonly paymentId: string;
  readonly bucket: string;
  readonly reason: string | null;
  readonly followUp: FollowUp;
}

const COLUMNS = `r.provider, r.txn_id AS "txnId", r.file_id AS "fileId", r.row_no AS "rowNo", r.kind,
  r.source_id AS "sourceId", r.generation, r.gross AS "grossMinor", r.currency, r.payment_id AS "paymentId",
  r.bucket, r.reason, r.follow_up AS "followUp"`;

const OPEN: Statement = {
  name: 'settlement-open-lines',
  text: `SELECT ${COLUMNS} FROM settlement_row r
    WHERE r.follow_up IS NOT NULL AND r.payment_id IS NOT NULL
      AND r.follow_up = ANY ($1::text[]) AND (r.file_id, r.row_no) > ($2::bigint, $3::integer)
    ORDER BY r.file_id, r.row_no LIMIT $4`,
};

/** Lines with something to do, after a place, in the order of files and rows (index settlement_row_open). */
export async function openLines(
  sql: Sql,
  asked: {
    readonly kinds: readonly FollowUp[];
    readonly after: { readonly fileId: bigint; readonly rowNo: number };
    readonly limit: number;
  },
): Promise<readonly OpenLine[]> {
  const { kinds, after, limit } = asked;
  return (await sql.query<OpenLine>(OPEN, [kinds, after.fileId, after.rowNo, limit])).rows;
}

const LOCK: Statement = {
  name: 'settlement-lock-line',
  text: `SELECT ${COLUMNS} FROM settlement_row r WHERE r.provider = $1 AND r.txn_id = $2 AND r.follow_up = $3
    FOR NO KEY UPDATE`,
};

/** The line, locked until the transaction ends; null when somebody did what was to be done. */
export async function lockOpenLine(tx: Sql, line: OpenLine): Promise<OpenLine | null> {
  return (await tx.query<OpenLine>(LOCK, [line.provider, line.txnId, line.followUp])).rows[0] ?? null;
}

const DONE: Statement = {
  name: 'settlement-line-done',
  text: `UPDATE settlement_row SET follow_up = NULL WHERE provider = $1 AND txn_id = $2`,
};

/** Nothing is left to do about the line. Twice: the same. */
export async function lineDone(tx: Sql, line: Pick<OpenLine, 'provider' | 'txnId'>): Promise<void> {
  await tx.query(DONE, [line.provider, line.txnId]);
}

const REJUDGE: Statement = {
  name: 'settlement-rejudge-line',
  text: `UPDATE settlement_row SET bucket = $3, reason = $4, follow_up = $5, payment_id = coalesce($6, payment_id)
    WHERE provider = $1 AND txn_id = $2`,
};

export interface NewJudgement {
  readonly bucket: string;
  readonly reason: string | null;
  readonly followUp: FollowUp | null;
  readonly paymentId: string | null;
}

/** Writes another judgement of a line: the line itself never changes. */
export async function rejudgeLine(
  tx: Sql,
  line: Pick<OpenLine, 'provider' | 'txnId'>,
  to: NewJudgement,
): Promise<void> {
  await tx.query(REJUDGE, [line.provider, line.txnId, to.bucket, to.reason, to.followUp, to.paymentId]);
}
