import type { Sql, Statement } from '../persistence/database.js';

export type SettlementFormat = 'csv' | 'camt053';

/** A file as its row has it. */
export interface StoredFile {
  readonly id: bigint;
  readonly provider: string;
  readonly format: SettlementFormat;
  readonly rowsDone: number;
  /** Rows that an earlier file had brought with the same content. */
  readonly rowsKnown: number;
  /** Postgres timestamptz texts, by the provider's clock; null: no readable row. */
  readonly firstBookedAt: string | null;
  readonly lastBookedAt: string | null;
  readonly isFinished: boolean;
}

const COLUMNS = `id, provider, format, rows_done AS "rowsDone", rows_known AS "rowsKnown",
  first_booked_at AS "firstBookedAt", last_booked_at AS "lastBookedAt", finished_at IS NOT NULL AS "isFinished"`;

const REGISTER: Statement = {
  name: 'settlement-register-file',
  text: `INSERT INTO settlement_file (provider, sha256, format, size_bytes) VALUES ($1, $2, $3, $4)
    ON CONFLICT ON CONSTRAINT settlement_file_unique DO NOTHING`,
};

const FIND: Statement = {
  name: 'settlement-find-file',
  text: `SELECT ${COLUMNS} FROM settlement_file WHERE provider = $1 AND sha256 = $2`,
};

/** Null: these bytes were never read for this provider (unique constraint settlement_file_unique). */
export async function findFile(sql: Sql, provider: string, sha256: Buffer): Promise<StoredFile | null> {
  return (await sql.query<StoredFile>(FIND, [provider, sha256])).rows[0] ?? null;
}

/** The file of these bytes, registered now or before. Twice: the same row. */
export async function registerFile(
  sql: Sql,
  file: {
    readonly provider: string;
    readonly sha256: Buffer;
    readonly format: SettlementFormat;
    readonly sizeBytes: number;
  },
): Promise<StoredFile> {
  await sql.query(REGISTER, [file.provider, file.sha256, file.format, file.sizeBytes]);
  const stored = await findFile(sql, file.provider, file.sha256);
  if (!stored) throw new Error('a settlement file that was registered is gone, which the database rules out');
  return stored;
}

const LOCK: Statement = {
  name: 'settlement-lock-file',
  text: `SELECT rows_done AS "rowsDone" FROM settlement_file WHERE id = $1 FOR NO KEY UPDATE`,
};

/** How far the import is, held until the transaction ends: two imports of one file cannot both go on. */
export async function lockFile(tx: Sql, fileId: bigint): Promise<number> {
  return (await tx.query<{ rowsDone: number }>(LOCK, [fileId])).rows[0]?.rowsDone ?? -1;
}

const ADVANCE: Statement = {
  name: 'settlement-advance-file',
  text: `UPDATE settlement_file SET rows_done = $2, rows_known = rows_known + $3,
      first_booked_at = least(first_booked_at, $4::timestamptz),
      last_booked_at = greatest(last_booked_at, $5::timestamptz)
    WHERE id = $1`,
};

export interface Progress {
  readonly rowsDone: number;
  readonly rowsKnown: number;
  /** Of this portion, RFC 3339 texts; null: no readable row in it. */
  readonly firstBookedAt: string | null;
  readonly lastBookedAt: string | null;
}

/** Notes that the rows up to `rowsDone` are stored; in the transaction that stored them. */
export async function advanceFile(tx: Sql, fileId: bigint, progress: Progress): Promise<void> {
  const { rowsDone, rowsKnown, firstBookedAt, lastBookedAt } = progress;
  await tx.query(ADVANCE, [fileId, rowsDone, rowsKnown, firstBookedAt, lastBookedAt]);
}

const FINISH: Statement = {
  name: 'settlement-finish-file',
  text: `UPDATE settlement_file SET finished_at = coalesce(finished_at, clock_timestamp()) WHERE id = $1`,
};

/** Every row is stored. Twice: the first time stays. */
export async function finishFile(sql: Sql, fileId: bigint): Promise<void> {
  await sql.query(FINISH, [fileId]);
}

const PROVIDER: Statement = {
  name: 'settlement-knows-provider',
  text: `SELECT EXISTS (SELECT 1 FROM lane WHERE provider = $1) AS known,
    ARRAY(SELECT DISTINCT provider FROM lane ORDER BY provider) AS providers`,
};

/**
 * Whether payments go through this provider: a mistyped name would make every row unexpected.
 * @returns the names that are known, when it is none of them.
 */
export async function knowsProvider(
  sql: Sql,
  provider: string,
): Promise<{ readonly known: boolean; readonly providers: readonly string[] }> {
  const { rows } = await sql.query<{ known: boolean; providers: string[] }>(PROVIDER, [provider]);
  return rows[0] ?? { known: false, providers: [] };
}
