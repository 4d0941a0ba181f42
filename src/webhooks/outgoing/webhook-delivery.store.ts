import type { PaymentState } from '../../domain/payment-state.js';
import type { Sql, Statement } from '../../persistence/database.js';
import type { DeliveryCode } from './event-sender.js';

/** One event for one endpoint: the key of its row. */
export interface DeliveryKey {
  readonly endpointId: string;
  readonly paymentId: string;
  readonly version: number;
}

/** A delivery that this worker has taken, with where it goes. Secrets are sealed. */
export interface TakenDelivery extends DeliveryKey {
  readonly tenantId: string;
  readonly state: PaymentState;
  /** Postgres timestamptz text. */
  readonly occurredAt: string;
  /** This take's number; a record of another take of the row is refused. */
  readonly takes: number;
  /** Tries that ended before this one. */
  readonly tries: number;
  readonly url: string;
  readonly secret: Buffer;
  readonly secretKeyId: string;
  /** Null, or the one before while it still signs. */
  readonly previousSecret: Buffer | null;
  readonly previousSecretKeyId: string | null;
}

/** Due rows of one endpoint that are looked at in one take: those that wait for an earlier one included. */
const LOOK = 200;

/**
 * For each active endpoint with room its due rows (webhook_delivery_due), of which a row is free when no
 * earlier version of its payment is open at this endpoint (the primary key). One that waits for a retry
 * of an earlier one waits as long: it would be looked at each time for nothing.
 */
const TAKE: Statement = {
  name: 'webhook-delivery-take',
  text: `WITH looked AS (
  SELECT d.*, coalesce(b.busy, 0) AS busy FROM webhook_endpoint e
    LEFT JOIN unnest($1::text[], $2::integer[]) AS b (endpoint_id, busy) ON b.endpoint_id = e.id
   CROSS JOIN LATERAL (
    SELECT w.endpoint_id, w.payment_id, w.version, w.next_try_at,
           (SELECT f.next_try_at FROM webhook_delivery f
             WHERE f.endpoint_id = w.endpoint_id AND f.payment_id = w.payment_id AND f.version < w.version
               AND f.done_at IS NULL ORDER BY f.version LIMIT 1) AS waits_for
      FROM webhook_delivery w
     WHERE w.endpoint_id = e.id AND w.done_at IS NULL AND w.next_try_at <= now()
       AND (w.taken_until IS NULL OR w.taken_until < clock_timestamp())
     ORDER BY w.next_try_at, w.payment_id, w.version LIMIT ${LOOK} FOR UPDATE SKIP LOCKED) d
   WHERE e.status = 'active' AND coalesce(b.busy, 0) < $3),
ranked AS (
  SELECT l.*, row_number() OVER (PARTITION BY endpoint_id ORDER BY next_try_at, payment_id, version) AS place
    FROM looked l WHERE waits_for IS NULL),
chosen AS (SELECT * FROM ranked WHERE place + busy <= $3 ORDER BY place, next_try_at LIMIT $4),
postponed AS (
  UPDATE webhook_delivery w SET next_try_at = l.waits_for FROM looked l
   WHERE w.endpoint_id = l.endpoint_id AND w.payment_id = l.payment_id AND w.version = l.version
     AND l.waits_for > now())
UPDATE webhook_delivery w
   SET taken_until = clock_timestamp() + $5::double precision * interval '1 ms', takes = w.takes + 1
  FROM chosen c JOIN webhook_endpoint e ON e.id = c.endpoint_id
 WHERE w.endpoint_id = c.endpoint_id AND w.payment_id = c.payment_id AND w.version = c.version
RETURNING w.endpoint_id AS "endpointId", w.payment_id AS "paymentId", w.version, w.tenant_id AS "tenantId", w.state,
  w.occurred_at AS "occurredAt", w.takes, w.tries, e.url, e.secret, e.secret_key_id AS "secretKeyId",
  CASE WHEN e.previous_secret_until > clock_timestamp() THEN e.previous_secret END AS "previousSecret",
  e.previous_secret_key_id AS "previousSecretKeyId"`,
};

/**
 * Takes due deliveries for `forMs`, of each endpoint so many that with those in `busy` it has at most
 * `perEndpoint` under way here, at most `limit` in all, each endpoint's first before any one's second.
 * A delivery whose payment has an earlier one open at the endpoint is left. A worker that dies leaves
 * what it took to the next one.
 */
export async function takeDeliveries(
  sql: Sql,
  room: {
    readonly busy: ReadonlyMap<string, number>;
    readonly perEndpoint: number;
    readonly limit: number;
    readonly forMs: number;
  },
): Promise<readonly TakenDelivery[]> {
  const { rows } = await sql.query<TakenDelivery>(TAKE, [
    [...room.busy.keys()],
    [...room.busy.values()],
    room.perEndpoint,
    room.limit,
    room.forMs,
  ]);
  return rows;
}

/** What is written of every try: whoever took the row last may write it, and nobody else. */
const TRIED = `taken_until = NULL, tries = w.tries + 1, last_try_at = clock_timestamp(), last_code = $5,
      last_http_status = $6, last_ms = $7`;
const MINE = `w.endpoint_id = $1 AND w.payment_id = $2 AND w.version = $3 AND w.takes = $4 AND w.done_at IS NULL`;

const DELIVERED: Statement = {
  name: 'webhook-delivery-delivered',
  text: `WITH done AS (
  UPDATE webhook_delivery w SET ${TRIED}, result = 'delivered', done_at = clock_timestamp() WHERE ${MINE}
  RETURNING w.endpoint_id)
UPDATE webhook_endpoint e SET failing_since = NULL, failures = 0
  FROM done WHERE e.id = done.endpoint_id AND e.failing_since IS NOT NULL`,
};

const FAILED: Statement = {
  name: 'webhook-delivery-failed',
  text: `WITH tried AS (
  UPDATE webhook_delivery w SET ${TRIED},
      next_try_at = clock_timestamp() + coalesce($8::double precision, 0) * interval '1 ms',
      result = CASE WHEN $8::double precision IS NULL THEN 'given_up' END,
      done_at = CASE WHEN $8::double precision IS NULL THEN clock_timestamp() END
   WHERE ${MINE} RETURNING w.endpoint_id),
judged AS (
  SELECT e.id, CASE WHEN $5 = 'gone' THEN 'gone'
      WHEN e.failures + 1 >= $10 AND e.failing_since < clock_timestamp() - $9::double precision * interval '1 ms'
        THEN 'failing' END AS reason
    FROM webhook_endpoint e JOIN tried ON tried.endpoint_id = e.id FOR NO KEY UPDATE OF e)
UPDATE webhook_endpoint e
   SET failing_since = coalesce(e.failing_since, clock_timestamp()), failures = e.failures + 1,
       status = CASE WHEN j.reason IS NULL THEN e.status ELSE 'disabled' END,
       status_reason = coalesce(j.reason, e.status_reason),
       status_changed_at = CASE WHEN j.reason IS NULL THEN e.status_changed_at ELSE clock_timestamp() END
  FROM judged j WHERE e.id = j.id AND e.status = 'active'
RETURNING j.reason`,
};

export interface Tried {
  readonly code: DeliveryCode;
  readonly httpStatus: number | null;
  /** Of the try, on this machine's monotonic clock. */
  readonly durationMs: number;
}

const triedValues = (of: TakenDelivery, { code, httpStatus, durationMs }: Tried): unknown[] => [
  of.endpointId,
  of.paymentId,
  of.version,
  of.takes,
  code,
  httpStatus,
  Math.round(durationMs),
];

/** The event arrived; what the endpoint failed before is forgotten. Twice, or after another take: nothing. */
export async function recordDelivered(sql: Sql, of: TakenDelivery, tried: Tried): Promise<void> {
  await sql.query(DELIVERED, triedValues(of, tried));
}

/** When an endpoint that only fails is dead: both have to be reached. */
export interface DeadAfter {
  /** Ms since the first failure after the last success. */
  readonly ms: number;
  /** Failures in that time: a single event is none. */
  readonly failures: number;
}

/**
 * The event did not arrive: it is tried again after `againInMs`, or given up (null). 410 disables the
 * endpoint at once, nothing but failures disables it by `dead`; its deliveries stay queued.
 * @returns why the endpoint was disabled by this, else null. Twice, or after another take: nothing.
 */
export async function recordFailed(
  sql: Sql,
  of: TakenDelivery,
  tried: Tried,
  rules: { readonly againInMs: number | null; readonly dead: DeadAfter },
): Promise<'gone' | 'failing' | null> {
  const { rows } = await sql.query<{ reason: 'gone' | 'failing' | null }>(FAILED, [
    ...triedValues(of, tried),
    rules.againInMs,
    rules.dead.ms,
    rules.dead.failures,
  ]);
  return rows[0]?.reason ?? null;
}
