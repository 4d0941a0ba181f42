import type { PaymentState } from '../domain/payment-state.js';
import { arrayLiteral } from '../persistence/array-literal.js';
import type { Sql, Statement } from '../persistence/database.js';
import type { Judgement } from './judge-line.js';
import type { SettlementLine } from './settlement-line.js';

/** What is known of a line: its own row if it came before, and the payment that it names. */
export interface LineKnowledge {
  /** Place of the line in the question, from 0. */
  readonly no: number;
  readonly storedFileId: bigint | null;
  readonly storedIsSame: boolean | null;
  readonly bySource: string | null;
  readonly paymentId: string | null;
  readonly paymentProvider: string;
  readonly amount: bigint;
  readonly currency: string;
  readonly state: PaymentState;
  readonly providerRef: string | null;
  readonly lastGeneration: number | null;
  readonly knowsGeneration: boolean | null;
  readonly bookedAfterMs: number | null;
  readonly hasOtherLine: boolean;
  readonly wasMissing: boolean;
}

const PAYMENT = 'q.id, q.provider, q.amount, q.currency, q.state, q.provider_ref, q.submission_started_at';

/**
 * One portion of lines as arrays, joined by key to what they name (settlement_row_pkey, payment_pkey,
 * payment_by_provider_ref, submission_pkey, settlement_row_by_payment, settlement_missing_pkey). The
 * object is looked for only when the payment of our reference is not that object. OFFSET 0 keeps each look-up a look-up: the planner would otherwise rather
 * read all of payment once for a portion.
 */
const KNOW: Statement = {
  name: 'settlement-know-lines',
  text: `SELECT t.no::integer - 1 AS no, k.file_id AS "storedFileId",
    CASE WHEN s.id IS NOT NULL THEN s.id WHEN n.provider_ref = t.source_id AND n.provider = $1 THEN n.id
      END AS "bySource",
    p.id AS "paymentId", p.provider AS "paymentProvider", p.amount, p.currency, p.state,
    p.provider_ref AS "providerRef", g.last AS "lastGeneration", g.knows AS "knowsGeneration",
    (extract(epoch FROM p.submission_started_at) * 1000)::double precision AS "startedAtMs",
    EXISTS (SELECT 1 FROM settlement_row o WHERE o.payment_id = p.id AND o.kind = 'payment'
       AND o.bucket <> 'unexpected_at_provider' AND (o.provider, o.txn_id) <> ($1, t.txn_id) OFFSET 0) AS "hasOtherLine",
    EXISTS (SELECT 1 FROM settlement_missing m WHERE m.payment_id = p.id AND m.appeared_at IS NULL
       OFFSET 0) AS "wasMissing"
  FROM unnest($2::text[], $3::text[], $4::text[], $5::integer[]) WITH ORDINALITY
    AS t (txn_id, source_id, payment_id, generation, no)
  LEFT JOIN LATERAL (SELECT l.file_id FROM settlement_row l
     WHERE $6::boolean AND l.provider = $1 AND l.txn_id = t.txn_id OFFSET 0) k ON true
  LEFT JOIN LATERAL (SELECT ${PAYMENT} FROM payment q WHERE q.id = t.payment_id OFFSET 0) n ON true
  LEFT JOIN LATERAL (SELECT ${PAYMENT} FROM payment q WHERE q.provider_ref = t.source_id AND q.provider = $1
      AND (n.id IS NULL OR n.provider_ref IS DISTINCT FROM t.source_id OR n.provider <> $1)
     ORDER BY q.id LIMIT 1) s ON true
  CROSS JOIN LATERAL (SELECT coalesce(n.id, s.id), coalesce(n.provider, s.provider), coalesce(n.amount, s.amount),
      coalesce(n.currency, s.currency), coalesce(n.state, s.state),
      CASE WHEN n.id IS NULL THEN s.provider_ref ELSE n.provider_ref END,
      CASE WHEN n.id IS NULL THEN s.submission_started_at ELSE n.submission_started_at END)
    AS p (id, provider, amount, currency, state, provider_ref, submission_started_at)
  LEFT JOIN LATERAL (SELECT max(u.generation) AS last, bool_or(u.generation = t.generation) AS knows
     FROM submission u WHERE u.payment_id = p.id) g ON true`,
};

/** Of lines that came before: which are the same in every field that money or identity hangs on. */
const SAME: Statement = {
  name: 'settlement-same-lines',
  text: `SELECT t.no::integer - 1 AS no
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[])
      WITH ORDINALITY AS t (txn_id, kind, source_id, reference, gross, fee, net, currency, no)
    CROSS JOIN LATERAL (SELECT l.* FROM settlement_row l
       WHERE l.provider = $1 AND l.txn_id = t.txn_id OFFSET 0) k
   WHERE (k.kind, k.gross, k.fee, k.net, k.currency, k.source_id, k.reference) IS NOT DISTINCT FROM
      (t.kind, t.gross, t.fee, t.net, t.currency, t.source_id, t.reference)`,
};

type KnownRow = Omit<LineKnowledge, 'storedIsSame' | 'bookedAfterMs'> & {
  /** Epoch ms on the database's clock. */
  readonly startedAtMs: number | null;
};

/**
 * What is known of each line, in their order.
 * @param looksForLines false: no line is taken for stored, which saves a look for each; whoever stores one
 * that is learns it from `insertRows`.
 */
export async function knowLines(
  sql: Sql,
  provider: string,
  lines: readonly SettlementLine[],
  looksForLines: boolean,
): Promise<readonly LineKnowledge[]> {
  if (lines.length === 0) return [];
  const { rows } = await sql.query<KnownRow>(KNOW, [
    provider,
    arrayLiteral(lines.map((l) => l.txnId)),
    arrayLiteral(lines.map((l) => l.sourceId)),
    arrayLiteral(lines.map((l) => l.paymentId)),
    arrayLiteral(lines.map((l) => l.generation)),
    looksForLines,
  ]);
  const ordered: (KnownRow | undefined)[] = Array.from({ length: lines.length });
  for (const row of rows) ordered[row.no] = row;
  const same = await sameLines(sql, provider, lines, ordered);
  return lines.map((line, no) => {
    const row = ordered[no];
    if (row === undefined) throw new Error('a settlement line got no answer, which the statement rules out');
    const bookedAfterMs = row.startedAtMs === null ? null : Date.parse(line.bookedAt) - row.startedAtMs;
    return { ...row, bookedAfterMs, storedIsSame: row.storedFileId === null ? null : same.has(no) };
  });
}

/** Few lines of a file came before, or all of them: only these are compared. @returns their places. */
async function sameLines(
  sql: Sql,
  provider: string,
  lines: readonly SettlementLine[],
  known: readonly (KnownRow | undefined)[],
): Promise<ReadonlySet<number>> {
  const places = known.flatMap((row, no) => (row?.storedFileId == null ? [] : [no]));
  if (places.length === 0) return new Set();
  const stored = places.flatMap((no) => lines[no] ?? []);
  const { rows } = await sql.query<{ no: number }>(SAME, [
    provider,
    arrayLiteral(stored.map((l) => l.txnId)),
    arrayLiteral(stored.map((l) => l.kind)),
    arrayLiteral(stored.map((l) => l.sourceId)),
    arrayLiteral(stored.map((l) => l.reference)),
    arrayLiteral(stored.map((l) => l.grossMinor)),
    arrayLiteral(stored.map((l) => l.feeMinor)),
    arrayLiteral(stored.map((l) => l.netMinor)),
    arrayLiteral(stored.map((l) => l.currency)),
  ]);
  return new Set(rows.flatMap(({ no }) => places[no] ?? []));
}

/**
 * By txn_id, so that two imports that meet wait for each other in one order. Without ON CONFLICT, which looks
 * in the index a second time for each row.
 */
const INSERT: Statement = {
  name: 'settlement-insert-rows',
  text: `INSERT INTO settlement_row (provider, file_id, txn_id, row_no, kind, source_id, reference, gross, fee, net,
      currency, booked_at, available_at, batch, payment_id, generation, bucket, reason, follow_up)
    SELECT $1::text, $2::bigint, t.* FROM unnest($3::text[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::bigint[],
      $9::bigint[], $10::bigint[], $11::text[], $12::timestamptz[], $13::timestamptz[], $14::text[], $15::text[],
      $16::smallint[], $17::text[], $18::text[], $19::text[]) AS t (txn_id)
     ORDER BY t.txn_id`,
};
/** Its violation says that a line of this provider and id is stored. */
const UNIQUE_LINE = 'settlement_row_pkey';

export interface JudgedLine {
  readonly line: SettlementLine;
  readonly judgement: Judgement;
}

/**
 * Stores new lines with their judgement, or none of them; unique by provider and txn id.
 * @returns `known` when another import stored one of them meanwhile: the transaction is to be undone.
 */
export async function insertRows(
  tx: Sql,
  file: { readonly id: bigint; readonly provider: string },
  rows: readonly JudgedLine[],
): Promise<'stored' | 'known'> {
  if (rows.length === 0) return 'stored';
  try {
    await tx.query(INSERT, valuesOf(file, rows));
    return 'stored';
  } catch (error) {
    if ((error as { constraint?: unknown }).constraint === UNIQUE_LINE) return 'known';
    throw error;
  }
}

function valuesOf(
  file: { readonly id: bigint; readonly provider: string },
  rows: readonly JudgedLine[],
): readonly unknown[] {
  const lines = rows.map((r) => r.line);
  const judgements = rows.map((r) => r.judgement);
  return [
    file.provider,
    file.id,
    arrayLiteral(lines.map((l) => l.txnId)),
    arrayLiteral(lines.map((l) => l.rowNo)),
    arrayLiteral(lines.map((l) => l.kind)),
    arrayLiteral(lines.map((l) => l.sourceId)),
    arrayLiteral(lines.map((l) => l.reference)),
    arrayLiteral(lines.map((l) => l.grossMinor)),
    arrayLiteral(lines.map((l) => l.feeMinor)),
    arrayLiteral(lines.map((l) => l.netMinor)),
    arrayLiteral(lines.map((l) => l.currency)),
    arrayLiteral(lines.map((l) => l.bookedAt)),
    arrayLiteral(lines.map((l) => l.availableAt)),
    arrayLiteral(lines.map((l) => l.batch)),
    arrayLiteral(judgements.map((j) => j.paymentId)),
    arrayLiteral(lines.map((l) => l.generation)),
    arrayLiteral(judgements.map((j) => j.bucket)),
    arrayLiteral(judgements.map((j) => j.reason)),
    arrayLiteral(judgements.map((j) => j.followUp)),
  ];
}

/** A row without an identity of its own. */
export interface FaultRow {
  readonly rowNo: number;
  readonly bucket: 'unreadable' | 'duplicate';
  readonly reason: string;
  readonly txnId: string | null;
}

const INSERT_FAULTS: Statement = {
  name: 'settlement-insert-faults',
  text: `INSERT INTO settlement_fault (file_id, row_no, bucket, reason, txn_id)
    SELECT $1::bigint, t.* FROM unnest($2::integer[], $3::text[], $4::text[], $5::text[]) AS t`,
};

/** Stores rows that could not become lines. */
export async function insertFaults(tx: Sql, fileId: bigint, faults: readonly FaultRow[]): Promise<void> {
  if (faults.length === 0) return;
  await tx.query(INSERT_FAULTS, [
    fileId,
    faults.map((f) => f.rowNo),
    faults.map((f) => f.bucket),
    faults.map((f) => f.reason),
    faults.map((f) => f.txnId),
  ]);
}

const COUNT: Statement = {
  name: 'settlement-count',
  text: `INSERT INTO settlement_count AS c (provider, bucket, rows)
    SELECT $1::text, t.bucket, t.rows FROM unnest($2::text[], $3::bigint[]) AS t (bucket, rows) ORDER BY t.bucket
    ON CONFLICT ON CONSTRAINT settlement_count_pkey DO UPDATE SET rows = c.rows + excluded.rows`,
};

/** Adds to the counts that the metrics show; in the transaction that found the rows. */
export async function countBuckets(
  tx: Sql,
  provider: string,
  found: ReadonlyMap<string, number>,
): Promise<void> {
  if (found.size > 0) await tx.query(COUNT, [provider, [...found.keys()], [...found.values()]]);
}

const APPEARED: Statement = {
  name: 'settlement-appeared',
  text: `UPDATE settlement_missing SET appeared_at = clock_timestamp()
    WHERE payment_id = ANY ($1::text[]) AND appeared_at IS NULL`,
};

/** A line told of payments that were reported missing. */
export async function noteAppeared(tx: Sql, paymentIds: readonly string[]): Promise<void> {
  if (paymentIds.length > 0) await tx.query(APPEARED, [paymentIds]);
}
