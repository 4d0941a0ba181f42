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

/** A key cannot be made or found as asked; the message is a sentence for whoever asked. */
export class KeyRefused extends Error {
  override readonly name = 'KeyRefused';
}

const LOCK_TENANT: Statement = {
  name: 'api-key-lock-tenant',
  text: 'SELECT pseudonym FROM tenant WHERE id = $1 FOR NO KEY UPDATE',
};
const INSERT: Statement = {
  name: 'api-key-insert',
  text: `INSERT INTO api_key (id, tenant_id, name, scopes, digest, pepper_key_id, expires_at)
SELECT $1, $2, $3, $4, $5, $6, clock_timestamp() + $7::double precision * interval '1 day'
 WHERE (SELECT count(*) FROM api_key WHERE tenant_id = $2 AND name = $3 AND revoked_at IS NULL
           AND expires_at > clock_timestamp()) < ${ACTIVE_KEYS_PER_NAME}
RETURNING to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS expires_at`,
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

export interface MadeApiKey {
  readonly id: string;
  /** What the owner is shown once. It is stored nowhere and cannot be read again. */
  readonly text: string;
  readonly tenantId: string;
  /** The tenant's name in logs. */
  readonly tenantRef: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** The database's clock, UTC, whole seconds. */
  readonly expiresAt: string;
}

/** `insertApiKey` in a transaction of its own. */
export function createApiKey(
  db: Pick<Database, 'transaction'>,
  keys: Pick<KeysFile, 'pepper'>,
  key: NewApiKey,
): Promise<MadeApiKey> {
  return db.transaction((tx) => insertApiKey(tx, keys, key));
}

/**
 * Makes a key for a tenant and stores its digest under the active pepper.
 * @param tx a transaction: the count of active keys and the insert stand under one lock.
 * @throws KeyRefused when the tenant is missing, the scopes or the life are not allowed, or two keys
 * of this name are active. Twice: two keys.
 */
export async function insertApiKey(
  tx: Sql,
  keys: Pick<KeysFile, 'pepper'>,
  key: NewApiKey,
): Promise<MadeApiKey> {
  const { tenantId, name, scopes, lifeDays = API_KEY_MAX_LIFE_DAYS } = key;
  assertAllowed(key, lifeDays);
  const { parts, text } = newApiKey(key.mode);
  const pepper = pepperOf(keys.pepper, keys.pepper.active);
  if (pepper === null) throw new KeyRefused('The key file lacks the active pepper.');
  const digest = apiKeyDigest(parts, pepper);
  // The tenant's row orders two makers, so that both cannot count one key and add a third.
  const [tenant] = (await tx.query<{ pseudonym: string }>(LOCK_TENANT, [tenantId])).rows;
  if (!tenant) throw new KeyRefused(`There is no tenant ${tenantId}. Create it first.`);
  const values = [parts.id, tenantId, name, [...scopes], digest, keys.pepper.active, lifeDays];
  const [row] = (await tx.query<{ expires_at: string }>(INSERT, values)).rows;
  if (!row) throw new KeyRefused(`Two keys named ${name} are active for ${tenantId}. Revoke one first.`);
  const { expires_at: expiresAt } = row;
  return { id: parts.id, text, tenantId, tenantRef: tenant.pseudonym, name, scopes, expiresAt };
}

/** A name stands in tables and logs. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$/;

function assertAllowed(key: NewApiKey, lifeDays: number): void {
  if (!NAME.test(key.name)) {
    throw new KeyRefused('The name of a key has 1 to 64 letters, digits, spaces or . _ -');
  }
  if (!(lifeDays > 0 && lifeDays <= API_KEY_MAX_LIFE_DAYS)) {
    throw new KeyRefused(`A key lives for more than 0 and at most ${API_KEY_MAX_LIFE_DAYS} days.`);
  }
  if (key.scopes.length === 0) throw new KeyRefused('A key without a scope can do nothing. Name its scopes.');
  for (const scope of key.scopes as readonly string[]) {
    if (!(SCOPES as readonly string[]).includes(scope)) {
      throw new KeyRefused(`There is no scope ${scope}. Known: ${SCOPES.join(', ')}.`);
    }
    if (!isScopeOfKeys(scope)) throw new KeyRefused(`A key is no person, so it cannot hold ${scope}.`);
  }
}

const FIND_ACTIVE: Statement = {
  name: 'api-key-find-active',
  text: `SELECT tenant_id, name, scopes FROM api_key
          WHERE id = $1 AND revoked_at IS NULL AND expires_at > clock_timestamp()`,
};

/**
 * Makes a second key with the tenant, name and scopes of an active one, under the active pepper. The
 * old one works until it is revoked or expires, so nobody has to be quick.
 * @throws KeyRefused as `insertApiKey`, or when no such key is active. Twice: the second finds two
 * active keys and is refused.
 */
export async function rotateApiKey(
  tx: Sql,
  keys: Pick<KeysFile, 'pepper'>,
  of: { readonly id: string; readonly mode: ApiKeyMode; readonly lifeDays?: number },
): Promise<MadeApiKey> {
  const { id, ...rest } = of;
  type Row = { tenant_id: string; name: string; scopes: Scope[] };
  const [old] = (await tx.query<Row>(FIND_ACTIVE, [id])).rows;
  if (!old) throw new KeyRefused(`No key ${id} is active. List the keys, or make a new one.`);
  const { tenant_id: tenantId, name, scopes } = old;
  return insertApiKey(tx, keys, { tenantId, name, scopes, ...rest });
}

const REVOKE: Statement = {
  name: 'api-key-revoke',
  text: `UPDATE api_key k SET revoked_at = clock_timestamp() FROM tenant t
          WHERE k.id = $1 AND t.id = k.tenant_id AND k.revoked_at IS NULL
      RETURNING k.tenant_id, t.pseudonym`,
};
const EXISTS: Statement = { name: 'api-key-exists', text: 'SELECT id FROM api_key WHERE id = $1' };

export type Revocation =
  | { readonly kind: 'revoked'; readonly tenantId: string; readonly tenantRef: string }
  | { readonly kind: 'repeated' }
  | { readonly kind: 'absent' };

/**
 * Revokes a key: every process refuses it once its cached copy is 5 s old.
 * @returns `repeated` when it was revoked before: the first time stays; `absent` without such a key.
 */
export async function revokeApiKey(db: Sql, id: string): Promise<Revocation> {
  const [row] = (await db.query<{ tenant_id: string; pseudonym: string }>(REVOKE, [id])).rows;
  if (row) return { kind: 'revoked', tenantId: row.tenant_id, tenantRef: row.pseudonym };
  return { kind: (await db.query(EXISTS, [id])).rowCount > 0 ? 'repeated' : 'absent' };
}

/** The pepper with this id, or null when the key file lacks it: keys made under it cannot be checked. */
export function pepperOf(pepper: KeysFile['pepper'], id: string): Buffer | null {
  const known = (): string | undefined => (Object.hasOwn(pepper.keys, id) ? pepper.keys[id] : undefined);
  let key = known();
  if (key === undefined) {
    // Made a moment ago under a pepper that this process has not read yet.
    pepper.refresh?.();
    key = known();
  }
  return key === undefined ? null : Buffer.from(key, 'base64');
}
