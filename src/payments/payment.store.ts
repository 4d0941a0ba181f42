import type { PaymentState } from '../domain/payment-state.js';
import type { Sql, Statement } from '../persistence/database.js';

/** The head row as stored. Times are Postgres texts in UTC with microseconds. */
export interface PaymentRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly idempotency_key: string;
  readonly fingerprint: Buffer;
  readonly fingerprint_version: number;
  readonly amount: bigint;
  readonly currency: string;
  readonly destination: Buffer;
  readonly destination_key_id: string;
  readonly destination_digest: Buffer;
  readonly digest_key_id: string;
  readonly provider: string;
  readonly lane: string;
  readonly reference: string | null;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly execute_at: string;
  readonly not_after: string;
  readonly state: PaymentState;
  readonly version: number;
  readonly submission_started_at: string | null;
  readonly provider_ref: string | null;
  readonly next_action_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly created_by: string;
  /** First fence of the payment: when its first call to the provider began. Null before. */
  readonly first_call_at: string | null;
}

/** The columns of `PaymentRow`, for statements that alias payment as p. */
export const PAYMENT_COLUMNS = `p.id, p.tenant_id, p.idempotency_key, p.fingerprint, p.fingerprint_version, p.amount, p.currency,
  p.destination, p.destination_key_id, p.destination_digest, p.digest_key_id, p.provider, p.lane, p.reference,
  p.description, p.metadata, p.execute_at, p.not_after, p.state, p.version, p.submission_started_at,
  p.provider_ref, p.next_action_at, p.created_at, p.updated_at, p.created_by,
  (SELECT min(a.call_started_at) FROM submission_attempt a WHERE a.payment_id = p.id) AS first_call_at`;

/** What `insert` writes. `execute_at` null means now, on the database's clock. */
export interface NewPayment {
  readonly id: string;
  readonly tenantId: string;
  readonly idempotencyKey: string;
  readonly fingerprint: Buffer;
  readonly fingerprintVersion: number;
  readonly amount: bigint;
  readonly currency: string;
  readonly destination: Buffer;
  readonly destinationKeyId: string;
  readonly destinationDigest: Buffer;
  readonly digestKeyId: string;
  readonly provider: string;
  readonly lane: string;
  readonly reference: string | null;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Postgres timestamptz text; null: now. */
  readonly executeAt: string | null;
  /** Postgres timestamptz text; null: execute_at plus the tenant's lateness limit. */
  readonly notAfter: string | null;
  readonly actor: string;
  /** Largest distance of execute_at from now, in days. */
  readonly horizonDays: number;
  /**
   * The provider can neither recognise a repeat nor be asked about a payment (capability class D):
   * the tenant must have agreed to that, up to an amount.
   */
  readonly needsClassDConsent: boolean;
}

export type InsertResult =
  | { readonly kind: 'inserted'; readonly row: PaymentRow }
  /** The key exists already. */
  | { readonly kind: 'exists' }
  | { readonly kind: 'in_past' }
  | { readonly kind: 'beyond_horizon' }
  | { readonly kind: 'not_after_too_early' }
  /** The tenant has not agreed to providers of class D. */
  | { readonly kind: 'class_d_not_allowed' }
  /** Above the amount up to which the tenant agreed. */
  | { readonly kind: 'class_d_above_cap' };

/**
 * One statement and one commit: the rules of clock and tenant, the payment, transition 1 and the outbox row.
 * ON CONFLICT DO NOTHING without a target waits for an insert in flight and reveals nothing about
 * which unique rule was met.
 */
const INSERT: Statement = {
  name: 'payment-insert',
  text: `WITH times AS (
  SELECT t.now, coalesce($17::timestamptz, t.now) AS execute_at,
         coalesce($18::timestamptz, coalesce($17::timestamptz, t.now)
           + n.lateness_limit_seconds * interval '1 second') AS not_after,
         n.allows_class_d, n.class_d_max_minor
    FROM (SELECT clock_timestamp() AS now) t LEFT JOIN tenant n ON n.id = $2),
judged AS (
  SELECT *, CASE WHEN execute_at < now THEN 'in_past'
                 WHEN execute_at > now + $20::double precision * interval '1 day' THEN 'beyond_horizon'
                 WHEN not_after <= execute_at THEN 'not_after_too_early'
                 WHEN $21::boolean AND allows_class_d IS NOT TRUE THEN 'class_d_not_allowed'
                 WHEN $21::boolean AND (class_d_max_minor IS NULL OR $6::bigint > class_d_max_minor)
                   THEN 'class_d_above_cap'
                 ELSE 'ok' END AS verdict FROM times),
p AS (
  INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency,
      destination, destination_key_id, destination_digest, digest_key_id, provider, lane, reference, description,
      metadata, execute_at, not_after, state, version, created_by)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16::jsonb,
         execute_at, not_after, 'scheduled', 1, $19
    FROM judged WHERE verdict = 'ok'
  ON CONFLICT DO NOTHING
  RETURNING *),
t AS (
  INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, detail)
  SELECT id, 1, tenant_id, NULL, 'scheduled', 'create', $19, '{"rule":"T1"}' FROM p),
o AS (INSERT INTO outbox (kind, payment_id, due_at) SELECT 'start', id, execute_at FROM p)
SELECT j.verdict, p.* , NULL::timestamptz AS first_call_at FROM judged j LEFT JOIN p ON TRUE`,
};

/**
 * Inserts a payment, its first transition and the request to start its workflow.
 * @throws LockTimeout when the same key is being inserted for longer than the lock limit;
 * StorageUnavailable, OutcomeUnknown. Twice: the second call answers `exists`.
 */
export async function insertPayment(tx: Sql, payment: NewPayment): Promise<InsertResult> {
  const { rows } = await tx.query<PaymentRow & { verdict: string; id: string | null }>(INSERT, [
    payment.id,
    payment.tenantId,
    payment.idempotencyKey,
    payment.fingerprint,
    payment.fingerprintVersion,
    payment.amount,
    payment.currency,
    payment.destination,
    payment.destinationKeyId,
    payment.destinationDigest,
    payment.digestKeyId,
    payment.provider,
    payment.lane,
    payment.reference,
    payment.description,
    payment.metadata === null ? null : JSON.stringify(payment.metadata),
    payment.executeAt,
    payment.notAfter,
    payment.actor,
    payment.horizonDays,
    payment.needsClassDConsent,
  ]);
  const row = rows[0];
  if (row === undefined) throw new Error('the insert answered no verdict');
  switch (row.verdict) {
    case 'ok':
      return row.id === null ? { kind: 'exists' } : { kind: 'inserted', row };
    case 'in_past':
    case 'beyond_horizon':
    case 'not_after_too_early':
    case 'class_d_not_allowed':
    case 'class_d_above_cap':
      return { kind: row.verdict };
    default:
      throw new Error(`the insert answered an unknown verdict`);
  }
}

const FIND: Statement = {
  name: 'payment-find',
  text: `SELECT ${PAYMENT_COLUMNS} FROM payment p WHERE p.tenant_id = $1 AND p.id = $2`,
};

/** The tenant's payment with this id (primary key), or null; another tenant's is null too. */
export async function findPayment(tx: Sql, tenantId: string, id: string): Promise<PaymentRow | null> {
  const { rows } = await tx.query<PaymentRow>(FIND, [tenantId, id]);
  return rows[0] ?? null;
}

const FIND_BY_KEY: Statement = {
  name: 'payment-find-by-key',
  text: `SELECT ${PAYMENT_COLUMNS} FROM payment p WHERE p.tenant_id = $1 AND p.idempotency_key = $2`,
};

/** The tenant's payment with this idempotency key (unique index), or null. */
export async function findPaymentByKey(tx: Sql, tenantId: string, key: string): Promise<PaymentRow | null> {
  const { rows } = await tx.query<PaymentRow>(FIND_BY_KEY, [tenantId, key]);
  return rows[0] ?? null;
}
