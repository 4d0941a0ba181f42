import type { Sql, Statement } from '../persistence/database.js';

/** A key as people see it: no digest. Times: the database's clock, UTC, whole seconds. */
export interface ListedApiKey {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly pepper_key_id: string;
  readonly status: 'active' | 'expired' | 'revoked';
  readonly created_at: string;
  readonly expires_at: string;
  readonly revoked_at: string | null;
}

/** More are a matter for SQL, not for a screen. */
export const LISTED_KEYS_MOST = 1_000;

const TIME = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS ${column}`;

const LIST: Statement = {
  name: 'api-key-list',
  text: `SELECT id, tenant_id, name, scopes, pepper_key_id,
       CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= clock_timestamp() THEN 'expired'
            ELSE 'active' END AS status,
       ${['created_at', 'expires_at', 'revoked_at'].map(TIME).join(', ')}
  FROM api_key
 WHERE ($1::text IS NULL OR tenant_id = $1) AND ($2::text IS NULL OR pepper_key_id = $2)
   AND ($3 OR (revoked_at IS NULL AND expires_at > clock_timestamp()))
 ORDER BY tenant_id, name, api_key.created_at, id LIMIT $4`,
};

export interface ApiKeyFilter {
  /** Null: of every tenant. */
  readonly tenantId: string | null;
  /** Null: under every pepper. A pepper may leave the key file when no active key is listed under it. */
  readonly pepperId: string | null;
  /** Also what was revoked or has expired. */
  readonly isAll: boolean;
}

/** By tenant, name and age, at most 1,000; `hasMore` when there are more. Reads the whole table: it has few rows. */
export async function listApiKeys(
  db: Sql,
  { tenantId, pepperId, isAll }: ApiKeyFilter,
): Promise<{ readonly keys: readonly ListedApiKey[]; readonly hasMore: boolean }> {
  const { rows } = await db.query<ListedApiKey>(LIST, [tenantId, pepperId, isAll, LISTED_KEYS_MOST + 1]);
  return { keys: rows.slice(0, LISTED_KEYS_MOST), hasMore: rows.length > LISTED_KEYS_MOST };
}
