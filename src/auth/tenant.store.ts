import type { Sql, Statement } from '../persistence/database.js';

const FIND: Statement = {
  name: 'tenant-of-person',
  text: `SELECT t.pseudonym, EXISTS (SELECT FROM revoked_person r WHERE r.subject = $2) AS is_revoked
    FROM tenant t WHERE t.id = $1`,
};

export interface TenantOfPerson {
  /** The tenant's name in logs. */
  readonly pseudonym: string;
  /** Whether the person may come no more, whatever the tenant. */
  readonly is_revoked: boolean;
}

/** The tenant that a person names, and whether the person is revoked (primary keys); null: no such tenant. */
export async function findTenantOfPerson(
  db: Sql,
  tenantId: string,
  subject: string,
): Promise<TenantOfPerson | null> {
  return (await db.query<TenantOfPerson>(FIND, [tenantId, subject])).rows[0] ?? null;
}
