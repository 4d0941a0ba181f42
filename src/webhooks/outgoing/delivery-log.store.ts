import type { PaymentState } from '../../domain/payment-state.js';
import type { Sql, Statement } from '../../persistence/database.js';
import type { DeliveryCode } from './event-sender.js';

const RESEND: Statement = {
  name: 'webhook-delivery-resend',
  text: `UPDATE webhook_delivery SET done_at = NULL, result = NULL, tries = 0, next_try_at = clock_timestamp()
 WHERE tenant_id = $2 AND endpoint_id = (SELECT id FROM webhook_endpoint WHERE id = $1 AND tenant_id = $2
         AND status <> 'deleted')
   AND payment_id = $3 AND (version = $4 OR (version > $4 AND done_at IS NULL))
RETURNING version`,
};

/**
 * Queues one event again, also one that arrived; later open ones of its payment follow it at once.
 * @returns false when the endpoint was never told of it. Twice: queued once.
 */
export async function resendDelivery(
  tx: Sql,
  of: {
    readonly tenantId: string;
    readonly id: string;
    readonly paymentId: string;
    readonly version: number;
  },
): Promise<boolean> {
  const { rows } = await tx.query<{ version: number }>(RESEND, [
    of.id,
    of.tenantId,
    of.paymentId,
    of.version,
  ]);
  return rows.some((row) => row.version === of.version);
}

/** A delivery as its log shows it; times are Postgres timestamptz texts. */
export interface DeliveryRow {
  readonly payment_id: string;
  readonly version: number;
  readonly state: PaymentState;
  readonly occurred_at: string;
  readonly created_at: string;
  readonly tries: number;
  readonly last_try_at: string | null;
  readonly last_code: DeliveryCode | null;
  readonly last_http_status: number | null;
  readonly last_ms: number | null;
  readonly result: 'delivered' | 'given_up' | null;
  /** Null when it is done. */
  readonly next_try_at: string | null;
}

/** Where a page of the log ended. */
export interface LogPosition {
  /** Postgres timestamptz text. */
  readonly createdAt: string;
  readonly paymentId: string;
  readonly version: number;
}

const LOG: Statement = {
  name: 'webhook-delivery-log',
  text: `SELECT payment_id, version, state, occurred_at, created_at, tries, last_try_at, last_code, last_http_status,
       last_ms, result, CASE WHEN done_at IS NULL THEN next_try_at END AS next_try_at
  FROM webhook_delivery
 WHERE endpoint_id = $1 AND tenant_id = $2
   AND (created_at, payment_id, version) < (coalesce($3::timestamptz, 'infinity'), coalesce($4::text, ''), coalesce($5::integer, 0))
   AND ($6::text IS NULL OR coalesce(result, 'pending') = $6)
 ORDER BY created_at DESC, payment_id DESC, version DESC LIMIT $7`,
};

/** One page of an endpoint's log, newest first (webhook_delivery_log backwards); for one result, or all. */
export async function listDeliveries(
  sql: Sql,
  of: {
    readonly tenantId: string;
    readonly endpointId: string;
    readonly after: LogPosition | null;
    readonly result: 'delivered' | 'given_up' | 'pending' | null;
    readonly limit: number;
  },
): Promise<readonly DeliveryRow[]> {
  const { rows } = await sql.query<DeliveryRow>(LOG, [
    of.endpointId,
    of.tenantId,
    of.after?.createdAt ?? null,
    of.after?.paymentId ?? null,
    of.after?.version ?? null,
    of.result,
    of.limit,
  ]);
  return rows;
}
