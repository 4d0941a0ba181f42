import type { Sql, Statement } from '../persistence/database.js';

const FIND: Statement = { name: 'tenant-pseudonym', text: 'SELECT pseudonym FROM tenant WHERE id = $1' };

/** The name of a tenant in logs (primary key), or null when there is no such tenant. */
export async function findTenantPseudonym(db: Sql, tenantId: string): Promise<string | null> {
  return (await db.query<{ pseudonym: string }>(FIND, [tenantId])).rows[0]?.pseudonym ?? null;
}
