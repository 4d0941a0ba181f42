import type { Sealed } from '../../encryption/destination-cipher.js';
import type { Sql, Statement } from '../../persistence/database.js';
import { MOST_REPLAY_DAYS } from './replay.store.js';

export type EndpointStatus = 'active' | 'disabled';
export type StatusReason = 'by_request' | 'gone' | 'failing';

/** An endpoint as its tenant sees it; times are Postgres timestamptz texts. Never a secret. */
export interface EndpointRow {
  readonly id: string;
  readonly url: string;
  readonly description: string | null;
  /** Null: every type. */
  readonly event_types: readonly string[] | null;
  readonly status: EndpointStatus;
  /** Why it is disabled; null while it is active. */
  readonly status_reason: StatusReason | null;
  readonly status_changed_at: string;
  /** Until when the secret before this one signs too; null when it does not. */
  readonly previous_secret_until: string | null;
  /** The first failure since the last event that arrived. */
  readonly failing_since: string | null;
  /** How far a replay has come; null when none runs. */
  readonly replay_from: string | null;
  readonly created_at: string;
}

const COLUMNS = `id, url, description, event_types, status, status_reason, status_changed_at,
  CASE WHEN previous_secret_until > clock_timestamp() THEN previous_secret_until END AS previous_secret_until,
  failing_since, replay_from, created_at`;

/** Endpoints of one tenant: each costs every transition of the tenant a row. */
export const MOST_ENDPOINTS = 10;

const LOCK: Statement = {
  name: 'webhook-endpoint-lock-tenant',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('webhook_endpoint ' || $1, 0))`,
};
const INSERT: Statement = {
  name: 'webhook-endpoint-insert',
  text: `INSERT INTO webhook_endpoint (id, tenant_id, url, description, event_types, secret, secret_key_id, created_by)
SELECT $1, $2, $3, $4, $5::text[], $6, $7, $8
 WHERE (SELECT count(*) FROM webhook_endpoint WHERE tenant_id = $2 AND status <> 'deleted') < ${MOST_ENDPOINTS}
RETURNING ${COLUMNS}`,
};

export interface NewEndpoint {
  readonly id: string;
  readonly tenantId: string;
  readonly url: string;
  readonly description: string | null;
  readonly eventTypes: readonly string[] | null;
  readonly secret: Sealed;
  readonly actor: string;
}

/**
 * Stores an endpoint, active at once. Two makers of one tenant queue, so that both cannot count nine.
 * @param tx one transaction. @returns null when the tenant has ten.
 */
export async function insertEndpoint(tx: Sql, endpoint: NewEndpoint): Promise<EndpointRow | null> {
  await tx.query(LOCK, [endpoint.tenantId]);
  const { rows } = await tx.query<EndpointRow>(INSERT, [
    endpoint.id,
    endpoint.tenantId,
    endpoint.url,
    endpoint.description,
    endpoint.eventTypes,
    endpoint.secret.ciphertext,
    endpoint.secret.keyId,
    endpoint.actor,
  ]);
  return rows[0] ?? null;
}

const LIST: Statement = {
  name: 'webhook-endpoint-list',
  text: `SELECT ${COLUMNS} FROM webhook_endpoint WHERE tenant_id = $1 AND status <> 'deleted' ORDER BY created_at, id`,
};

/** The tenant's endpoints, oldest first (webhook_endpoint_by_tenant); at most ten. */
export async function listEndpoints(sql: Sql, tenantId: string): Promise<readonly EndpointRow[]> {
  return (await sql.query<EndpointRow>(LIST, [tenantId])).rows;
}

const FIND: Statement = {
  name: 'webhook-endpoint-find',
  text: `SELECT ${COLUMNS} FROM webhook_endpoint WHERE id = $1 AND tenant_id = $2 AND status <> 'deleted'`,
};

/** Null when the tenant has no such endpoint. */
export async function findEndpoint(sql: Sql, tenantId: string, id: string): Promise<EndpointRow | null> {
  return (await sql.query<EndpointRow>(FIND, [id, tenantId])).rows[0] ?? null;
}

/** The row before and after: `changed` is false when it stood so already. */
export interface Changed {
  readonly row: EndpointRow;
  readonly changed: boolean;
}

const change = (name: string, set: string, when = 'TRUE'): Statement => ({
  name: `webhook-endpoint-${name}`,
  text: `UPDATE webhook_endpoint SET ${set} WHERE id = $1 AND tenant_id = $2 AND status <> 'deleted' AND ${when}
RETURNING ${COLUMNS}`,
});

const ENABLE = change(
  'enable',
  `status = 'active', status_reason = NULL, status_changed_at = clock_timestamp(), failing_since = NULL, failures = 0`,
  `status = 'disabled'`,
);
const DISABLE = change(
  'disable',
  `status = 'disabled', status_reason = 'by_request', status_changed_at = clock_timestamp()`,
  `status = 'active'`,
);

/**
 * Makes the endpoint active or disabled. Enabled, it forgets its failures, and what waits for it goes on.
 * @returns null when the tenant has no such endpoint. Twice: changes nothing.
 */
export async function setEndpointStatus(
  tx: Sql,
  tenantId: string,
  id: string,
  status: EndpointStatus,
): Promise<Changed | null> {
  const { rows } = await tx.query<EndpointRow>(status === 'active' ? ENABLE : DISABLE, [id, tenantId]);
  if (rows[0]) return { row: rows[0], changed: true };
  const row = await findEndpoint(tx, tenantId, id);
  return row && { row, changed: false };
}

const DELETE = change(
  'delete',
  `status = 'deleted', status_reason = NULL, status_changed_at = clock_timestamp(), secret = NULL,
   secret_key_id = NULL, previous_secret = NULL, previous_secret_key_id = NULL, previous_secret_until = NULL,
   replay_from = NULL, replay_asked_at = NULL`,
);

/** Forgets the endpoint and its secrets for ever. @returns false when the tenant has no such endpoint. */
export async function deleteEndpoint(tx: Sql, tenantId: string, id: string): Promise<boolean> {
  return (await tx.query(DELETE, [id, tenantId])).rowCount > 0;
}

/**
 * The secret before stays for `$5` ms. While one stays already, the newest is replaced and that one stays
 * as long as it would have, or shorter: who repeats a rotation whose answer was lost must not lose the
 * secret that receivers still use.
 */
const ROTATE = change(
  'rotate',
  `secret = $3, secret_key_id = $4,
   previous_secret = CASE WHEN $5::double precision > 0 THEN
     CASE WHEN previous_secret_until > clock_timestamp() THEN previous_secret ELSE secret END END,
   previous_secret_key_id = CASE WHEN $5::double precision > 0 THEN
     CASE WHEN previous_secret_until > clock_timestamp() THEN previous_secret_key_id ELSE secret_key_id END END,
   previous_secret_until = CASE WHEN $5::double precision > 0 THEN least(
     CASE WHEN previous_secret_until > clock_timestamp() THEN previous_secret_until END,
     clock_timestamp() + $5::double precision * interval '1 ms') END`,
);

/**
 * Puts a new secret in place; the one before goes on signing for `previousForMs` (0: ends at once). At
 * most two sign: see ROTATE. @returns null when the tenant has no such endpoint. Twice: another secret.
 */
export async function rotateSecret(
  tx: Sql,
  of: {
    readonly tenantId: string;
    readonly id: string;
    readonly secret: Sealed;
    readonly previousForMs: number;
  },
): Promise<EndpointRow | null> {
  const values = [of.id, of.tenantId, of.secret.ciphertext, of.secret.keyId, of.previousForMs];
  return (await tx.query<EndpointRow>(ROTATE, values)).rows[0] ?? null;
}

const REPLAY = change(
  'replay',
  `replay_from = $3::timestamptz, replay_asked_at = clock_timestamp()`,
  `$3::timestamptz >= clock_timestamp() - interval '${MOST_REPLAY_DAYS} days'`,
);

/**
 * Asks for a replay of what happened since `since` (Postgres timestamptz text, at most 30 days back) and
 * did not arrive; the worker queues it. @returns null when the tenant has no such endpoint, or `since` lies further back. Twice: anew.
 */
export async function askReplay(
  tx: Sql,
  tenantId: string,
  id: string,
  since: string,
): Promise<EndpointRow | null> {
  return (await tx.query<EndpointRow>(REPLAY, [id, tenantId, since])).rows[0] ?? null;
}
