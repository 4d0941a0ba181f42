import { ADVISORY_LOCKS } from '../persistence/advisory-locks.js';
import type { Sql, Statement } from '../persistence/database.js';

const HOLD: Statement = {
  name: 'decision-hold-people',
  text: `SELECT pg_advisory_xact_lock_shared(${ADVISORY_LOCKS.revokePeople})`,
};

/**
 * From here to the end of the transaction nobody is revoked. First of all in a decision: its later
 * statements then see every revocation that was committed, and none that holds rows is waited for.
 * @throws LockTimeout after 2 s.
 */
export async function holdPeople(tx: Sql): Promise<void> {
  await tx.query(HOLD);
}

/** SQL: none of these actors (`person:<subject>`, SQL expressions of text) is revoked (primary key). */
export function noneRevoked(...actors: readonly string[]): string {
  const subjects = actors.map((actor) => `substr(${actor}, ${'person:'.length + 1})`).join(', ');
  return `NOT EXISTS (SELECT FROM revoked_person gone WHERE gone.subject IN (${subjects}))`;
}

const IS_REVOKED: Statement = {
  name: 'decision-is-revoked',
  text: `SELECT NOT ${noneRevoked('$1::text')} AS is_revoked`,
};

/** Whether the actor's access was taken away: why a guarded statement did nothing. */
export async function isRevoked(tx: Sql, actor: string): Promise<boolean> {
  return (await tx.query<{ is_revoked: boolean }>(IS_REVOKED, [actor])).rows[0]?.is_revoked === true;
}
