import type { Sql, Statement } from '../../persistence/database.js';

/** Transitions of all tenants that one step walks over: milliseconds, and an index bounds it. */
const STEP = 5_000;
/** A transition that began before the replay was asked for is committed by then: above a transaction's 8 s. */
const SETTLED = "interval '30 seconds'";

/**
 * One step of one endpoint's replay: the next transitions from where it stands (payment_transition_by_time),
 * of which the tenant's are queued unless they were delivered. A row that waits or was given up before the
 * replay was asked for is due anew, with all its tries. At the end the walk waits, going over the newest
 * again, until what was on its way when it was asked for is certainly there.
 */
const REPLAY: Statement = {
  name: 'webhook-replay-step',
  text: `WITH mine AS (
  SELECT id, tenant_id, event_types, replay_from, replay_asked_at FROM webhook_endpoint
   WHERE replay_from IS NOT NULL AND status = 'active' ORDER BY replay_asked_at, id LIMIT 1
   FOR NO KEY UPDATE SKIP LOCKED),
walked AS (
  SELECT t.payment_id, t.seq, t.tenant_id, t.to_state, t.at FROM mine m CROSS JOIN LATERAL (
    SELECT * FROM payment_transition t WHERE t.at >= m.replay_from ORDER BY t.at LIMIT ${STEP}) t),
queued AS (
  INSERT INTO webhook_delivery AS d (endpoint_id, payment_id, version, tenant_id, state, occurred_at)
  SELECT m.id, w.payment_id, w.seq, w.tenant_id, w.to_state, w.at FROM mine m JOIN walked w ON w.tenant_id = m.tenant_id
   WHERE m.event_types IS NULL OR 'payment.' || w.to_state = ANY (m.event_types)
  ON CONFLICT (endpoint_id, payment_id, version) DO UPDATE
    SET done_at = NULL, result = NULL, tries = 0, next_try_at = clock_timestamp()
    WHERE d.result IS DISTINCT FROM 'delivered'
      AND coalesce(d.done_at, d.last_try_at, 'infinity') < (SELECT m.replay_asked_at FROM mine m)
  RETURNING 1),
stands AS (SELECT count(*) AS walked, max(at) AS at FROM walked)
UPDATE webhook_endpoint e SET replay_from = CASE
    WHEN s.walked < ${STEP} AND e.replay_asked_at < clock_timestamp() - ${SETTLED} THEN NULL
    ELSE coalesce(s.at, e.replay_from) END
  FROM mine m, stands s WHERE e.id = m.id
RETURNING (SELECT count(*)::integer FROM queued) AS queued, s.walked = ${STEP} AS "isFull"`,
};

/**
 * Does one step of the replay that was asked for first.
 * @returns how many events were queued and whether there is more to walk over at once; null when there
 * is no replay. Two workers at once: each takes another endpoint.
 */
export async function replayStep(
  sql: Sql,
): Promise<{ readonly queued: number; readonly isFull: boolean } | null> {
  const { rows } = await sql.query<{ queued: number; isFull: boolean }>(REPLAY);
  return rows[0] ?? null;
}

/** Days that a delivery is kept after it was queued, and up to which a replay may go back. */
export const KEPT_DAYS = 31;
export const MOST_REPLAY_DAYS = 30;
/** Deliveries that one step of tidying removes. */
const TIDY_STEP = 1_000;

const TIDY: Statement = {
  name: 'webhook-delivery-tidy',
  text: `DELETE FROM webhook_delivery d USING (
  SELECT old.* FROM webhook_endpoint e CROSS JOIN LATERAL (
    SELECT w.endpoint_id, w.payment_id, w.version FROM webhook_delivery w
     WHERE w.endpoint_id = e.id
       AND w.created_at < CASE e.status WHEN 'deleted' THEN 'infinity' ELSE now() - interval '${KEPT_DAYS} days' END
     ORDER BY w.created_at LIMIT ${TIDY_STEP} FOR UPDATE SKIP LOCKED) old LIMIT ${TIDY_STEP}) old
 WHERE d.endpoint_id = old.endpoint_id AND d.payment_id = old.payment_id AND d.version = old.version`,
};

/**
 * Removes deliveries that were queued more than 31 days ago, and all of endpoints that were deleted
 * (webhook_delivery_log). @returns whether there may be more.
 */
export async function tidyDeliveries(sql: Sql): Promise<boolean> {
  return (await sql.query(TIDY)).rowCount === TIDY_STEP;
}
