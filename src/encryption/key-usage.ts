import { KEY_PURPOSES, type KeyPurpose, type KeysFile } from '../config/key-file.js';
import type { Database, Sql, Statement } from '../persistence/database.js';
import { findRetiredKeys } from './retire-keys.js';

/** Where one key id of the key file stands. */
export interface KeyUsage {
  readonly purpose: KeyPurpose;
  readonly id: string;
  /**
   * active: new rows take it. needed: rows name it. unused: it is retired and no row names it: it may be
   * removed, no process can take it again. idle: no row names it now, but it is not retired, so that a process
   * may still take it; keys that wrap nothing are never more than that. missing: rows name it and the key
   * file lacks it.
   */
  readonly standing: 'active' | 'needed' | 'unused' | 'idle' | 'missing';
  /** Rows that need it, by what they are; cursors of lists are nowhere stored. */
  readonly rows: Readonly<Record<string, number>>;
}

interface Counted {
  readonly purpose: KeyPurpose;
  readonly what: string;
  readonly id: string;
  readonly rows: number;
}

/** Ids of data keys begin with dk_: those rows need the key that wraps the data key, counted by ADMIN. */
const direct = (what: string, table: string, column: string): string =>
  `SELECT 'encryption' AS purpose, '${what}' AS what, ${column} AS id, count(*)::integer AS rows FROM ${table}
    WHERE ${column} IS NOT NULL AND ${column} NOT LIKE 'dk\\_%' GROUP BY ${column}`;

/** Reads whole tables: for an operator's question, not for a request. As payments_read. */
const READ: Statement = {
  name: 'key-usage-read',
  text: `${direct('destinations', 'payment', 'destination_key_id')}
  UNION ALL ${direct('stored requests', 'submission', 'parameters_key_id')}
  UNION ALL ${direct('events', 'webhook_inbox', 'key_id')}
  UNION ALL ${direct('webhook secrets', 'webhook_endpoint', 'secret_key_id')}
  UNION ALL ${direct('webhook secrets', 'webhook_endpoint', 'previous_secret_key_id')}
  UNION ALL SELECT 'digest', 'destinations', digest_key_id, count(*)::integer FROM payment GROUP BY digest_key_id`,
};

const LIMIT: Statement = {
  name: 'key-usage-limit',
  text: `SELECT set_config('statement_timeout', $1, true), set_config('transaction_read_only', 'on', true)`,
};

/** As payments_admin, which reads no payment. Revoked and expired API keys need no pepper. */
const ADMIN: Statement = {
  name: 'key-usage-admin',
  text: `SELECT 'encryption' AS purpose, 'data keys' AS what, kek_id AS id, count(*)::integer AS rows
    FROM data_key GROUP BY kek_id
  UNION ALL SELECT 'pepper', 'API keys', pepper_key_id, count(*)::integer FROM api_key
    WHERE revoked_at IS NULL AND expires_at > clock_timestamp() GROUP BY pepper_key_id`,
};

/**
 * Which keys of the file rows still need, and which ids rows name that the file lacks. In the order of the
 * purposes, each by id.
 * @param from.read sessions of payments_read, whose driver waits longer than `limitMs`; @param from.admin
 * a session of payments_admin; @param from.limitMs how long the server may read whole tables.
 * @throws faults of storage.
 */
export async function keyUsage(
  keys: KeysFile,
  from: { readonly read: Pick<Database, 'transaction'>; readonly admin: Sql; readonly limitMs: number },
): Promise<readonly KeyUsage[]> {
  // Before the count: what a retired key wraps cannot be stored after this.
  const retired = await findRetiredKeys(from.admin);
  const admin = await from.admin.query<Counted>(ADMIN);
  const read = await from.read.transaction(async (tx) => {
    await tx.query(LIMIT, [String(from.limitMs)]);
    return tx.query<Counted>(READ);
  });
  const counted = [...read.rows, ...admin.rows];
  return KEY_PURPOSES.flatMap((purpose) => {
    const named = counted.filter((row) => row.purpose === purpose);
    const ids = new Set([...Object.keys(keys[purpose].keys), ...named.map((row) => row.id)]);
    return [...ids].sort().map((id) => {
      const rows: Record<string, number> = {};
      for (const row of named) if (row.id === id) rows[row.what] = (rows[row.what] ?? 0) + row.rows;
      return { purpose, id, standing: standingOf(keys, purpose, id, { rows, retired }), rows };
    });
  });
}

function standingOf(
  keys: KeysFile,
  purpose: KeyPurpose,
  id: string,
  of: { readonly rows: Readonly<Record<string, number>>; readonly retired: ReadonlySet<string> },
): KeyUsage['standing'] {
  if (!Object.hasOwn(keys[purpose].keys, id)) return 'missing';
  if (keys[purpose].active === id) return 'active';
  if (Object.keys(of.rows).length > 0) return 'needed';
  return purpose === 'encryption' && of.retired.has(id) ? 'unused' : 'idle';
}
