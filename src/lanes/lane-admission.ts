import { PROBE_LASTS_MS } from './lane-policy.js';

/**
 * Whether a lane admits a call, as SQL. Pause, the wait that the provider asked for and the breaker
 * are conditions in the statement that acts, on the database's clock; nobody reads them first and
 * decides later. Each function takes the alias of a `lane` row.
 */

/** Tokens as they stand now. A clock that was set back takes none away. */
export const tokensNow = (lane: string): string =>
  `least(${lane}.burst, ${lane}.tokens + ${lane}.rate * greatest(0, extract(epoch FROM clock_timestamp() - ${lane}.refilled_at)))`;

/** True while only single probes may go, until one of them is answered well. */
export const needsProbe = (lane: string): string =>
  `(${lane}.wait_until IS NOT NULL OR ${lane}.breaker <> 'closed')`;

/** True while nobody knows when the lane admits more than single probes. */
export const isClosed = (lane: string): string => `(${lane}.paused OR ${needsProbe(lane)})`;

/** True when neither a person, nor the provider's word, nor the breaker keeps everything back just now. */
export const isPassable = (lane: string): string =>
  `(NOT ${lane}.paused AND (${lane}.wait_until IS NULL OR ${lane}.wait_until <= clock_timestamp())
     AND (${lane}.breaker = 'closed' OR ${lane}.probe_at <= clock_timestamp()))`;

/**
 * True while the lane's probe is under way. It is over as soon as its attempt is closed, by whomever,
 * and after a while in any case. A statement that waited for the lane's lock sees the new probe in the
 * row and cannot see its attempt: so what is asked for is a closed attempt, never an open one.
 */
export const isProbing = (lane: string): string =>
  `(coalesce(${lane}.probe_until > clock_timestamp(), false) AND NOT EXISTS (
     SELECT 1 FROM submission_attempt q WHERE q.payment_id = ${lane}.probe_payment_id
        AND q.generation = ${lane}.probe_generation AND q.no = ${lane}.probe_no AND q.closed_at IS NOT NULL))`;

/**
 * True when an open attempt `attempt` may be claimed: its lane is open, or it is the lane's probe. What
 * was opened just before the lane closed is not called any more; the sweep closes it as not sent.
 */
export const mayBeCalled = (lane: string, attempt: string): string =>
  `(NOT ${lane}.paused AND (NOT ${needsProbe(lane)}
     OR coalesce((${attempt}.payment_id, ${attempt}.generation, ${attempt}.no)
          = (${lane}.probe_payment_id, ${lane}.probe_generation, ${lane}.probe_no), false)))`;

/** Milliseconds until the lane is passable again, 0 when it is or when only a person can tell. */
export const laneWaitMs = (lane: string): string =>
  `(1000 * greatest(0, coalesce(extract(epoch FROM ${lane}.wait_until - clock_timestamp()), 0),
     CASE WHEN ${lane}.breaker <> 'closed' THEN coalesce(extract(epoch FROM ${lane}.probe_at - clock_timestamp()), 0)
          ELSE 0 END))::double precision`;

/**
 * Milliseconds until the open breaker lets a call try, 0 and less: now; null while it is closed. An
 * inquiry of an unknown payment waits so long, at most until its key's life ends: one alert tells of the
 * provider, not a case for each payment. When the time has come and no payment is there to be the probe,
 * the inquiry goes, or a lane without new payments would never hear that its provider is well again.
 */
export const probeInMs = (lane: string): string =>
  `(CASE WHEN ${lane}.breaker <> 'closed' THEN
     coalesce(extract(epoch FROM ${lane}.probe_at - clock_timestamp()) * 1000, 0) END)::double precision`;

/**
 * Locks the lane named by `lane` (a parameter) if it admits a call and `condition` holds, and tells its
 * tokens: `available` is what this statement may take, one at most for a probe.
 */
export const laneTokens = (lane: string, condition: string): string => `
  SELECT l.lane, l.rate, clock_timestamp() AS t, ${needsProbe('l')} AS is_probe, ${tokensNow('l')} AS tokens,
         CASE WHEN ${needsProbe('l')} THEN least(1, ${tokensNow('l')}) ELSE ${tokensNow('l')} END AS available
    FROM lane l
   WHERE l.lane = ${lane} AND ${isPassable('l')} AND NOT (${needsProbe('l')} AND ${isProbing('l')}) AND ${condition}
     FOR NO KEY UPDATE OF l`;

/**
 * CTE `w`: takes a token for each row of `moved` from the lane locked as `l`, and remembers which
 * attempt is the probe. A statement that joins both opens the attempts of `moved` with
 * `is_probe = (SELECT is_probe FROM l)`.
 * @param opened SQL on `moved`: generation and number of the attempt that was opened.
 */
export const takeTokens = (opened: { readonly generation: string; readonly no: string }): string => `w AS (
  UPDATE lane SET tokens = l.tokens - n.n, refilled_at = l.t,
         breaker = CASE WHEN l.is_probe AND lane.breaker <> 'closed' THEN 'half_open' ELSE lane.breaker END,
         probe_payment_id = CASE WHEN l.is_probe THEN n.payment_id END,
         probe_generation = CASE WHEN l.is_probe THEN n.generation END,
         probe_no = CASE WHEN l.is_probe THEN n.no END,
         probe_until = CASE WHEN l.is_probe THEN l.t + interval '${PROBE_LASTS_MS} ms' END
    FROM l, (SELECT count(*)::integer AS n, min(id) AS payment_id, min(${opened.generation})::smallint AS generation,
                    min(${opened.no})::smallint AS no FROM moved) n
   WHERE lane.lane = l.lane AND n.n > 0)`;
