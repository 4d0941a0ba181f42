import type { Sql, Statement } from '../../persistence/database.js';

/** An event whose signature was right, as it is stored. */
export interface NewEvent {
  readonly provider: string;
  readonly account: string;
  readonly eventId: string;
  readonly type: string;
  /** Epoch ms of the provider's clock; null when it does not say. */
  readonly occurredAtMs: number | null;
  /** Ciphertexts, both under `keyId`. */
  readonly event: Buffer;
  readonly body: Buffer;
  readonly keyId: string;
}

const INSERT: Statement = {
  name: 'webhook-insert',
  text: `INSERT INTO webhook_inbox (provider, account, event_id, type, occurred_at, event, body, key_id)
    VALUES ($1, $2, $3, $4, to_timestamp($5::double precision / 1000), $6, $7, $8)
    ON CONFLICT (provider, account, event_id) DO NOTHING`,
};

/**
 * Stores an event unless its id is known for this provider and account (webhook_inbox_event_unique).
 * @returns false for a repeat, which changes nothing.
 */
export async function insertEvent(sql: Sql, event: NewEvent): Promise<boolean> {
  const { rowCount } = await sql.query(INSERT, [
    event.provider,
    event.account,
    event.eventId,
    event.type,
    event.occurredAtMs,
    event.event,
    event.body,
    event.keyId,
  ]);
  return rowCount === 1;
}

/** An event that this worker has taken. */
export interface TakenEvent {
  readonly id: bigint;
  readonly provider: string;
  readonly account: string;
  readonly eventId: string;
  readonly type: string;
  readonly event: Buffer;
  readonly keyId: string;
  /** Null until it was matched; from then on the event has its row of evidence. */
  readonly paymentId: string | null;
  /** This try included. */
  readonly tries: number;
  /** Since it came, ms on the database's clock. */
  readonly ageMs: number;
}

const TAKE: Statement = {
  name: 'webhook-take',
  text: `WITH due AS (
  SELECT id FROM webhook_inbox
   WHERE provider = $1 AND processed_at IS NULL AND next_try_at <= now()
     AND (taken_until IS NULL OR taken_until < clock_timestamp())
   ORDER BY next_try_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
UPDATE webhook_inbox i
   SET taken_until = clock_timestamp() + $3::double precision * interval '1 ms', tries = i.tries + 1
  FROM due WHERE i.id = due.id
RETURNING i.id, i.provider, i.account, i.event_id AS "eventId", i.type, i.event, i.key_id AS "keyId",
  i.payment_id AS "paymentId", i.tries,
  (extract(epoch FROM clock_timestamp() - i.received_at) * 1000)::double precision AS "ageMs"`,
};

/**
 * Takes up to `limit` open events of a provider whose next try is due, for `forMs`: nobody else
 * takes them until then (index webhook_inbox_open). A worker that dies leaves them to the next one.
 */
export async function takeEvents(
  sql: Sql,
  provider: string,
  limit: number,
  forMs: number,
): Promise<readonly TakenEvent[]> {
  return (await sql.query<TakenEvent>(TAKE, [provider, limit, forMs])).rows;
}

/** What an event says, as evidence of the payment that it was matched to. */
export interface EventEvidence {
  readonly paymentId: string;
  readonly generation: number;
  readonly kind: 'told' | 'hint' | 'returned';
  readonly code: string;
  readonly providerRef: string | null;
  readonly status: string | null;
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
}

const MATCH: Statement = {
  name: 'webhook-match',
  text: `WITH matched AS (
  UPDATE webhook_inbox SET payment_id = $2 WHERE id = $1 AND payment_id IS NULL RETURNING payment_id)
INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, code, provider_ref, status, observed_amount,
    observed_currency)
SELECT p.id, p.tenant_id, $3, 'webhook', $4, $5, $6, $7, $8, $9 FROM matched JOIN payment p ON p.id = matched.payment_id`,
};

/** Ties an event to its payment and files its evidence, in one commit. Twice: one row. */
export async function matchEvent(sql: Sql, id: bigint, evidence: EventEvidence): Promise<void> {
  await sql.query(MATCH, [
    id,
    evidence.paymentId,
    evidence.generation,
    evidence.kind,
    evidence.code,
    evidence.providerRef,
    evidence.status,
    evidence.amountMinor,
    evidence.currency,
  ]);
}

const FINISH: Statement = {
  name: 'webhook-finish',
  text: `UPDATE webhook_inbox SET processed_at = clock_timestamp(), result = $2, taken_until = NULL
    WHERE id = $1 AND processed_at IS NULL`,
};

/** The event has had its effect, or never will. Twice: the first result stays. */
export async function finishEvent(sql: Sql, id: bigint, result: string): Promise<void> {
  await sql.query(FINISH, [id, result]);
}

const AGAIN: Statement = {
  name: 'webhook-again',
  text: `UPDATE webhook_inbox SET result = $2, taken_until = NULL,
      next_try_at = clock_timestamp() + $3::double precision * interval '1 ms'
    WHERE id = $1 AND processed_at IS NULL`,
};

/** Gives the event back, to be tried again after `afterMs`. */
export async function tryEventAgain(sql: Sql, id: bigint, result: string, afterMs: number): Promise<void> {
  await sql.query(AGAIN, [id, result, afterMs]);
}
