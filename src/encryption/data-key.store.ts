import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../persistence/database-errors.js';
import type { Rows, Sql, Statement } from '../persistence/database.js';

/** A data key as stored: only its key-encryption key opens it. */
export interface DataKeyRow {
  readonly id: string;
  readonly tenant_id: string;
  /** `YYYY-MM`, UTC. */
  readonly month: string;
  readonly wrapped: Buffer;
  readonly kek_id: string;
}

const FIND: Statement = {
  name: 'data-keys-find',
  text: 'SELECT id, tenant_id, month, wrapped, kek_id FROM data_key WHERE id = ANY ($1::text[])',
};

/** The keys of these ids (primary key), in any order; an id without a row is left out. */
export async function findDataKeys(sql: Sql, ids: readonly string[]): Promise<readonly DataKeyRow[]> {
  return (await run<DataKeyRow>(sql, FIND, [[...new Set(ids)]])).rows;
}

const OF_MONTH: Statement = {
  name: 'data-key-of-month',
  text: 'SELECT id, tenant_id, month, wrapped, kek_id FROM data_key WHERE tenant_id = $1 AND month = $2',
};

/** The tenant's key of the month (index data_key_month_unique), or null. */
export async function findDataKeyOfMonth(
  sql: Sql,
  tenantId: string,
  month: string,
): Promise<DataKeyRow | null> {
  return (await run<DataKeyRow>(sql, OF_MONTH, [tenantId, month])).rows[0] ?? null;
}

const INSERT: Statement = {
  name: 'data-key-insert',
  text: `INSERT INTO data_key (id, tenant_id, month, wrapped, kek_id) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING`,
};

/**
 * Stores a key unless the tenant has one of this month: whoever waited here for another's insert finds
 * that one afterwards. Never inside a transaction that may be undone: others would seal under a key that
 * no row holds. Twice: nothing.
 * @returns `retired` when the database refuses the key-encryption key: nothing was stored.
 */
export async function insertDataKey(sql: Sql, row: DataKeyRow): Promise<'stored' | 'retired'> {
  try {
    await run(sql, INSERT, [row.id, row.tenant_id, row.month, row.wrapped, row.kek_id]);
    return 'stored';
  } catch (error) {
    if (isKekRetired(error)) return 'retired';
    throw error;
  }
}

/** True for the refusal of the trigger data_key_kek_not_retired: a retired key would have wrapped a data key. */
export function isKekRetired(error: unknown): boolean {
  return (error as { constraint?: unknown } | null)?.constraint === 'data_key_kek_not_retired';
}

/** A lost answer leaves nothing open for the caller: whoever asks again finds the key or makes it. */
async function run<R>(sql: Sql, statement: Statement, values: readonly unknown[]): Promise<Rows<R>> {
  try {
    return await sql.query<R>(statement, values);
  } catch (error) {
    if (!(error instanceof OutcomeUnknown) && !(error instanceof LockTimeout)) throw error;
    throw new StorageUnavailable('the data keys could not be asked', { cause: error });
  }
}
