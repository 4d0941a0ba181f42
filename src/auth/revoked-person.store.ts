import type { Sql, Statement } from '../persistence/database.js';

const REVOKE: Statement = {
  name: 'revoked-person-insert',
  text: `INSERT INTO revoked_person (subject, revoked_by, reason) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
};
/** The trigger ended them in this transaction, after the row was made. */
const VOIDED: Statement = {
  name: 'revoked-person-voided',
  text: `SELECT count(*)::integer AS voided FROM resolution r JOIN revoked_person p ON r.proposed_by = 'person:' || p.subject
    WHERE p.subject = $1 AND r.void_reason = 'proposer_revoked' AND r.voided_at >= p.revoked_at`,
};

export type PersonRevocation =
  /** With how many open proposals were ended. */
  { readonly kind: 'revoked'; readonly voided: number } | { readonly kind: 'repeated' };

/**
 * Takes a person's access away: their tokens are refused from the commit on, and their open proposals are
 * void with it (triggers of the table). Decisions that are under way are waited for.
 * @param tx a transaction. @param of.by `operator:<name>`. @param of.reason a code.
 * @returns `repeated` when it was revoked before: the first time and reason stay.
 * @throws LockTimeout when somebody decides for longer than the lock limit: nothing is changed, call again.
 */
export async function revokePerson(
  tx: Sql,
  of: { readonly subject: string; readonly by: string; readonly reason: string },
): Promise<PersonRevocation> {
  const { rowCount } = await tx.query(REVOKE, [of.subject, of.by, of.reason]);
  if (rowCount === 0) return { kind: 'repeated' };
  const { rows } = await tx.query<{ voided: number }>(VOIDED, [of.subject]);
  return { kind: 'revoked', voided: rows[0]?.voided ?? 0 };
}

const RESTORE: Statement = {
  name: 'revoked-person-delete',
  text: 'DELETE FROM revoked_person WHERE subject = $1',
};

/**
 * Gives a person the access back that the issuer's tokens say. Proposals that were ended stay void.
 * @returns false when the person was not revoked. Twice: false.
 */
export async function restorePerson(tx: Sql, subject: string): Promise<boolean> {
  return (await tx.query(RESTORE, [subject])).rowCount === 1;
}

/** More are a matter for SQL, not for a screen. */
export const LISTED_PEOPLE_MOST = 1_000;

/** Times: the database's clock, UTC, whole seconds. */
export interface RevokedPersonRow {
  readonly subject: string;
  readonly revoked_at: string;
  readonly revoked_by: string;
  readonly reason: string;
}

const LIST: Statement = {
  name: 'revoked-person-list',
  text: `SELECT subject, to_char(p.revoked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS revoked_at,
      revoked_by, reason
    FROM revoked_person p ORDER BY p.revoked_at DESC, subject LIMIT $1`,
};

/** Who is revoked, the newest first, at most 1,000; `hasMore` when there are more. */
export async function listRevokedPeople(
  tx: Sql,
): Promise<{ readonly people: readonly RevokedPersonRow[]; readonly hasMore: boolean }> {
  const { rows } = await tx.query<RevokedPersonRow>(LIST, [LISTED_PEOPLE_MOST + 1]);
  return { people: rows.slice(0, LISTED_PEOPLE_MOST), hasMore: rows.length > LISTED_PEOPLE_MOST };
}
