import type { Sql, Statement } from '../persistence/database.js';

/** What the audit log knows. A new word needs no migration; it must say who did what in the past tense. */
export type AuditAction =
  | 'key_made'
  | 'key_rotated'
  | 'key_revoked'
  | 'lane_paused'
  | 'lane_resumed'
  | 'resolution_proposed'
  | 'resolution_approved'
  | 'auditor_read'
  | 'limits_changed'
  | 'webhook_endpoint_added'
  | 'webhook_endpoint_changed'
  | 'webhook_endpoint_removed'
  | 'webhook_secret_rotated'
  | 'key_encryption_key_retired'
  | 'key_encryption_key_reinstated'
  | 'data_keys_rewrapped'
  | 'data_keys_deleted'
  | 'person_revoked'
  | 'person_restored';

export interface AuditEntry {
  /** Whose data it concerned; null: every tenant's. In a session of one tenant it must be that one. */
  readonly tenantId: string | null;
  /** `person:<subject>`, `api_key:<id>`, or `operator:<name>` for the command line. */
  readonly actor: string;
  readonly action: AuditAction;
  /** The id of what was acted on: a payment, a lane, a key, a proposal, an endpoint, a person. */
  readonly target: string;
  /** The reason, as a code. */
  readonly code?: string | null;
  /** Codes, ids, numbers and switches, such as the value before and after. Never free text, never a secret. */
  readonly detail?: Readonly<Record<string, string | number | boolean | null>>;
  /** Allowed for `MONEY_ACTIONS` alone. */
  readonly money?: { readonly amountMinor: bigint; readonly currency: string };
}

/** Only what people decide about money carries an amount; no other record outside the payments does. */
export const MONEY_ACTIONS: ReadonlySet<AuditAction> = new Set([
  'resolution_proposed',
  'resolution_approved',
  'limits_changed',
]);

const NAME = /^[a-z][a-z0-9_]{0,31}$/;
const CODE = /^[A-Za-z0-9*][A-Za-z0-9_.:/*+-]{0,127}$/;

const INSERT: Statement = {
  name: 'audit-log-insert',
  text: `INSERT INTO audit_log (tenant_id, actor, action, target, code, amount, currency, detail)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
};

/**
 * Writes one entry. Its time is the database's, its database role that of the session. Call it in the
 * transaction of what it tells, so that neither exists without the other. Twice: two entries.
 * @throws Error when the detail holds anything but codes, or an amount stands where none may;
 * faults of storage; the error of Postgres when a form is wrong or the tenant is not the session's.
 */
export async function recordAudit(sql: Sql, entry: AuditEntry): Promise<void> {
  const { tenantId, actor, action, target, code = null, money } = entry;
  if (money !== undefined && !MONEY_ACTIONS.has(action)) {
    throw new Error(`An audit entry of ${action} carries no amount.`);
  }
  await sql.query(INSERT, [
    tenantId,
    actor,
    action,
    target,
    code,
    money?.amountMinor.toString() ?? null,
    money?.currency ?? null,
    detailText(entry),
  ]);
}

function detailText({ action, detail = {} }: AuditEntry): string {
  for (const [name, value] of Object.entries(detail)) {
    if (!NAME.test(name) || (typeof value === 'string' && !CODE.test(value))) {
      throw new Error(`The detail of an audit entry of ${action} holds something else than codes.`);
    }
  }
  return JSON.stringify(detail);
}
