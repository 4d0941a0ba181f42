import type { KeysFile } from '../config/config.js';
import type { Database, Sql, Statement } from '../persistence/database.js';
import { apiKeyDigest, newApiKey, type ApiKeyMode } from './api-key.js';
import { isScopeOfKeys, SCOPES, type Scope } from './scopes.js';

/** A stored key as its check needs it. Only keys that are neither revoked nor expired are found. */
export interface ApiKeyRow {
  readonly id: string;
  readonly tenant_id: string;
  /** The tenant's name in logs. */
  readonly pseudonym: string;
  readonly scopes: readonly string[];
  readonly digest: Buffer;
  readonly pepper_key_id: string;
  /** Milliseconds until the key expires, on the database's clock. */
  readonly expires_in_ms: number;
}

const FIND: Statement = {
  name: 'api-key-find',
  text: `SELECT k.id, k.tenant_id, t.pseudonym, k.scopes, k.digest, k.pepper_key_id,
       (extract(epoch FROM k.expires_at - clock_timestamp()) * 1000)::double precision AS expires_in_ms
  FROM api_key k JOIN tenant t ON t.id = k.tenant_id
 WHERE k.id = $1 AND k.revoked_at IS NULL AND k.expires_at > clock_timestamp()`,
};

/** The usable key with this id (primary key), or null. */
export async function findApiKey(db: Sql, id: string): Promise<ApiKeyRow | null> {
  const { rows } = await db.query<ApiKeyRow>(FIND, [id]);
  return rows[0] ?? null;
}

/** Longest life of a key: a year's audit then meets every key again. */
export const API_KEY_MAX_LIFE_DAYS = 365;
/** Old and new side by side, so that a rotation needs no downtime; more would hide forgotten ones. */
const ACTIVE_KEYS_PER_NAME = 2;

const LOCK_TENANT: Statement = {
  name: 'api-key-lock-tenant',
  text: 'SELECT id FROM tenant WHERE id = $1 FOR NO KEY UPDATE',
};
const INSERT: Statement = {
  name: 'api-key-insert',
  text: `INSERT INTO api_key (id, tenant_id, name, scopes, digest, pepper_key_id, expires_at)
SELECT $1, $2, $3, $4, $5, $6, clock_timestamp() + $7::double precision * interval '1 day'
 WHERE (SELECT count(*) FROM api_key WHERE tenant_id = $2 AND name = $3 AND revoked_at IS NULL
           AND expires_at > clock_timestamp()) < ${ACTIVE_KEYS_PER_NAME}`,
};

export interface NewApiKey {
  readonly tenantId: string;
  /** What the key is for, for people; two active keys may share it. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly mode: ApiKeyMode;
  /** Days until it expires, at most 365; absent: 365. */
  readonly lifeDays?: number;
}

/**
 * Makes a key for a tenant and stores its digest under the active pepper.
 * @returns the key's text, which cannot be read again, and its id.
 * @throws Error with a sentence when the tenant is missing, the scopes or the life are not allowed,
 * or two keys of this name are active. Twice: two keys.
 */
export async function createApiKey(
  db: Database,
  keys: Pick<KeysFile, 'pepper'>,
  key: NewApiKey,
): Promise<{ readonly id: string; readonly text: string }> {
  const lifeDays = key.lifeDays ?? API_KEY_MAX_LIFE_DAYS;
  assertAllowed(key, lifeDays);
  const { parts, text } = newApiKey(key.mode);
  const pepper = pepperOf(keys.pepper, keys.pepper.active);
  if (pepper === null) throw new Error('The key file lacks the active pepper.');
  const digest = apiKeyDigest(parts, pepper);
  await db.transaction(async (tx) => {
    // The tenant's row orders two makers, so that both cannot count one key and add a third.
    const tenant = await tx.query(LOCK_TENANT, [key.tenantId]);
    if (tenant.rowCount === 0) throw new Error(`There is no tenant ${key.tenantId}. Create it first.`);
    const done = await tx.query(INSERT, [
      parts.id,
      key.tenantId,
      key.name,
      [...key.scopes],
      digest,
      keys.pepper.active,
      lifeDays,
    ]);
    if (done.rowCount === 0) {
      throw new Error(`Two keys named ${key.name} are active for ${key.tenantId}. Revoke one first.`);
    }
  });
  return { id: parts.id, text };
}

function assertAllowed(key: NewApiKey, lifeDays: number): void {
  if (!(lifeDays > 0 && lifeDays <= API_KEY_MAX_LIFE_DAYS)) {
    throw new Error(`A key lives for more than 0 and at most ${API_KEY_MAX_LIFE_DAYS} days.`);
  }
  if (key.scopes.length === 0) throw new Error('A key without a scope can do nothing. Name its scopes.');
  for (const scope of key.scopes) {
    if (!SCOPES.includes(scope)) throw new Error(`There is no scope ${scope}. Known: ${SCOPES.join(', ')}.`);
    if (!isScopeOfKeys(scope)) throw new Error(`A key is no person, so it cannot hold ${scope}.`);
  }
}

const REVOKE: Statement = {
  name: 'api-key-revoke',
  text: 'UPDATE api_key SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = $1',
};

/**
 * Revokes a key: every process refuses it once its cached copy is 5 s old.
 * @returns false when there is no such key. Twice: the first time stays.
 */
export async function revokeApiKey(db: Sql, id: string): Promise<boolean> {
  return (await db.query(REVOKE, [id])).rowCount > 0;
}

/** The pepper with this id, or null when the key file lacks it: keys made under it cannot be checked. */
export function pepperOf(pepper: KeysFile['pepper'], id: string): Buffer | null {
  const key = Object.hasOwn(pepper.keys, id) ? pepper.keys[id] : undefined;
  return key === undefined ? null : Buffer.from(key, 'base64');
}
