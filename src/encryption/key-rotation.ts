import type { Sql, Statement } from '../persistence/database.js';
import { isKekRetired, type DataKeyRow } from './data-key.store.js';
import type { KeyEncryption } from './key-encryption.js';
import { unreadableCode, type UnreadableCode } from './unreadable.js';

/** Keys read and wrapped again by one pair of statements. */
const BATCH = 200;

const OTHERS: Statement = {
  name: 'data-keys-of-other-kek',
  text: `SELECT id, tenant_id, month, wrapped, kek_id FROM data_key
    WHERE id > $2 AND kek_id <> $1 ORDER BY id LIMIT ${BATCH}`,
};

/** By the key that it was read under: what another rotation wrapped meanwhile stays as it is. */
const REWRAP: Statement = {
  name: 'data-keys-rewrap',
  text: `UPDATE data_key k SET wrapped = x.wrapped, kek_id = $5
    FROM unnest($1::text[], $2::bytea[], $3::text[], $4::bytea[]) AS x (id, old, old_kek_id, wrapped)
   WHERE k.id = x.id AND k.kek_id = x.old_kek_id AND k.wrapped = x.old`,
};

export interface Rewrapping {
  /** Keys that the active key-encryption key wraps since now. */
  readonly rewrapped: number;
  /** Keys that did not open, by id, and why: they stay as they were. */
  readonly unreadable: ReadonlyMap<string, UnreadableCode>;
}

/**
 * Wraps every data key again that another key-encryption key than the active one wraps. What the data
 * keys seal is not touched, and everybody goes on meanwhile: a process that has the old bytes in memory
 * has the same data key. In batches by primary key, each its own commit, so that a rotation which is
 * interrupted goes on where it ended. Twice: nothing is left to do.
 * Retire the other keys before (`retireKeys`), or a process may go on to store data keys under them.
 * @param sql a session of payments_admin.
 * @throws faults of storage; what the key-encryption key throws when it cannot wrap; Error when another
 * rotation retired the active key meanwhile.
 */
export async function rewrapDataKeys(sql: Sql, kek: KeyEncryption): Promise<Rewrapping> {
  const unreadable = new Map<string, UnreadableCode>();
  let rewrapped = 0;
  let after = '';
  for (;;) {
    const { rows } = await sql.query<DataKeyRow>(OTHERS, [kek.activeId, after]);
    const last = rows.at(-1);
    if (last === undefined) return { rewrapped, unreadable };
    after = last.id;
    const fresh: Wrapped[] = [];
    for (const row of rows) {
      const wrapped = await wrappedAgain(kek, row);
      if (typeof wrapped === 'string') unreadable.set(row.id, wrapped);
      else fresh.push({ row, wrapped });
    }
    rewrapped += await store(sql, kek.activeId, fresh);
  }
}

interface Wrapped {
  readonly row: DataKeyRow;
  readonly wrapped: Buffer;
}

async function store(sql: Sql, activeId: string, fresh: readonly Wrapped[]): Promise<number> {
  const values = [
    fresh.map(({ row }) => row.id),
    fresh.map(({ row }) => row.wrapped),
    fresh.map(({ row }) => row.kek_id),
    fresh.map(({ wrapped }) => wrapped),
    activeId,
  ];
  try {
    return (await sql.query(REWRAP, values)).rowCount;
  } catch (error) {
    if (!isKekRetired(error)) throw error;
    throw new Error(`another rotation retired ${activeId} meanwhile: see which key is active on every host`, {
      cause: error,
    });
  }
}

async function wrappedAgain(kek: KeyEncryption, row: DataKeyRow): Promise<Buffer | UnreadableCode> {
  const place = { id: row.id, tenant: row.tenant_id, month: row.month };
  let bytes: Buffer;
  try {
    bytes = await kek.unwrap(place, { kekId: row.kek_id, wrapped: row.wrapped });
  } catch (error) {
    const code = unreadableCode(error);
    if (code === null) throw error;
    return code;
  }
  const { kekId, wrapped } = await kek.wrap(place, bytes);
  bytes.fill(0);
  // The row says which key wrapped it by one value for the whole batch.
  if (kekId !== kek.activeId) throw new Error('the active key-encryption key changed: rotate again');
  return wrapped;
}

const DELETE: Statement = {
  name: 'data-keys-delete-of-tenant',
  text: 'DELETE FROM data_key WHERE tenant_id = $1',
};

/**
 * Deletes a tenant's data keys: its destinations, stored requests and foreign bodies never open again,
 * in no copy of the database that is younger. Scheduled payments of the tenant are held when they are due.
 * Processes forget the keys within five minutes. Twice: 0.
 * @param sql a session of payments_admin. @returns how many keys there were.
 */
export async function deleteDataKeys(sql: Sql, tenantId: string): Promise<number> {
  return (await sql.query(DELETE, [tenantId])).rowCount;
}
