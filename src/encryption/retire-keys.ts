import { ADVISORY_LOCKS } from '../persistence/advisory-locks.js';
import type { Sql, Statement } from '../persistence/database.js';

const LOCK: Statement = {
  name: 'kek-retire-lock',
  text: `SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.retireKeys})`,
};

const REINSTATE: Statement = {
  name: 'kek-reinstate',
  text: 'DELETE FROM retired_key_encryption_key WHERE kek_id = $1',
};

const RETIRE: Statement = {
  name: 'kek-retire',
  text: `INSERT INTO retired_key_encryption_key (kek_id)
    SELECT x.id FROM (SELECT unnest($2::text[]) UNION SELECT kek_id FROM data_key) AS x (id) WHERE x.id <> $1
    ON CONFLICT DO NOTHING RETURNING kek_id`,
};

export interface Retiring {
  /** Ids that were not retired before, sorted. */
  readonly retired: readonly string[];
  /** True when the active key had been retired: the rotation goes back to it. */
  readonly isReinstated: boolean;
}

/**
 * Retires every key-encryption key but the active one, of the file and of the data keys. From this commit
 * on no process stores a data key that another key wraps; those stored before are seen by whoever reads
 * afterwards, because this waits for every open transaction that stores one. Twice: nothing is new.
 * @param tx a transaction of payments_admin: nothing stands before it commits.
 * @param ids the ids of the key file; the active one among them stays.
 * @throws LockTimeout when somebody stores a data key for longer than the lock limit: call again.
 */
export async function retireKeys(tx: Sql, activeId: string, ids: readonly string[]): Promise<Retiring> {
  await tx.query(LOCK);
  const { rowCount } = await tx.query(REINSTATE, [activeId]);
  const { rows } = await tx.query<{ kek_id: string }>(RETIRE, [activeId, ids]);
  return { retired: rows.map((row) => row.kek_id).sort(), isReinstated: rowCount > 0 };
}

const RETIRED: Statement = { name: 'kek-retired', text: 'SELECT kek_id FROM retired_key_encryption_key' };

/** The retired ones. A data key that one of them wraps is in the table by now, or will never be. */
export async function findRetiredKeys(sql: Sql): Promise<ReadonlySet<string>> {
  return new Set((await sql.query<{ kek_id: string }>(RETIRED)).rows.map((row) => row.kek_id));
}
