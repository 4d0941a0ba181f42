import { needsProbe } from './lane-admission.js';
import { BREAKER, CODES_OF_OUR_OWN, THROTTLE } from './lane-policy.js';

/**
 * What ended calls mean for their lanes, as CTEs of the statement that records them: the wait after a
 * 429, the breaker and its probe, and the pause after a refused credential are written in the commit
 * that closes the attempt, or not at all.
 */

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(', ');
const isIll = (k: string): string => `${k}.class IN ('ambiguous', 'not_sent')`;
/** Why a lane is paused until a person looks: several objects may be several payments. */
const pauseOf = (
  k: string,
): string => `CASE WHEN ${k}.class = 'key_mismatch' AND ${k}.code = 'several_found' THEN 'several_found'
                  WHEN ${k}.class = 'config' THEN 'provider_refused_credential' END`;
const isOfProvider = (k: string): string => `${k}.code NOT IN (${quoted(CODES_OF_OUR_OWN)})`;

/**
 * CTE `lanes`: the lanes that this batch has news for, locked in their order, as they stand now.
 * Lanes are locked before payments: the CTE that locks payments must ask `LANES_ARE_LOCKED`. A lane
 * that is well, and hears of nothing else, is neither locked nor written: what is recorded in a burst
 * must not hold back what is started.
 * @param told CTE with payment_id and class of every ended call.
 */
export const lockLanes = (told: string): string => `told_lanes AS (
  SELECT p.lane, bool_or(${isIll('t')} OR t.class IN ('throttled', 'config', 'key_mismatch')) AS is_news
    FROM ${told} t JOIN payment p ON p.id = t.payment_id GROUP BY p.lane),
lanes AS (
  SELECT l.* FROM lane l JOIN told_lanes t ON t.lane = l.lane
   WHERE t.is_news OR l.recent <> '' OR ${needsProbe('l')}
   ORDER BY l.lane FOR NO KEY UPDATE OF l)`;

/** Always true, once `lanes` has its locks. */
export const LANES_ARE_LOCKED = '(SELECT count(*) FROM lanes) >= 0';

const doubling = (first: number, longest: number, step: string): string =>
  `least(${longest}, ${first} * power(2, least(${step}, 16)))`;
const inMs = (ms: string): string => `clock_timestamp() + (${ms}) * interval '1 ms'`;

/** The provider's own word within bounds, else doubling. Jitter only shortens, so that 60 s stay the most. */
const throttleMs = (step: string): string =>
  `CASE WHEN j.asked_ms IS NULL THEN ${doubling(THROTTLE.firstMs, THROTTLE.longestMs, step)} * (0.75 + 0.25 * random())
        ELSE greatest(${THROTTLE.shortestMs}, least(${THROTTLE.longestAskedMs}, j.asked_ms)) END`;

const OPENS = `CASE
    WHEN w.breaker <> 'closed' OR NOT w.breaker_enabled THEN NULL
    WHEN length(w.seen) - length(rtrim(w.seen, '1')) >= ${BREAKER.failuresInARow} THEN 'failures_in_a_row'
    WHEN length(replace(w.seen, '0', '')) >= ${BREAKER.failuresInWindow} THEN 'half_of_recent_calls' END`;
/** The provider answered the probe: with an outcome, or that there are too many calls. */
const ANSWERED = `j.probe IN ('well', 'throttled')`;
const BREAKER_STAYS = `j.breaker <> 'closed' AND j.probe = 'ill'`;
/** Calls that were under way when the lane was throttled say the same once more: only the probe lets the wait grow. */
const WAIT_GROWS = `j.is_throttled AND (j.wait_until IS NULL OR j.probe = 'throttled')`;
const WAIT_STAYS = `j.wait_until IS NOT NULL AND j.probe = 'ill'`;
/** Not while a call that was under way longer asked for more. */
const WAIT_ENDS = `j.probe = 'well' AND j.wait_until <= clock_timestamp()`;

/**
 * CTEs that write what the closed attempts say about their lanes. While the breaker is open or the
 * lane waits, only the probe's answer ends that: others were under way before.
 * `recent` holds the last answers, 1 for each that was ambiguous or never left, from the first of
 * these on: answers before it could only push it out sooner.
 * @param closed CTE of the attempts that this statement closed, with lane, payment_id, generation, no,
 * owner, class, code, retry_after_ms and ord, their order.
 */
export const tellLanes = (closed: string): string => `lane_news AS (
  SELECT n.lane,
         string_agg(CASE WHEN ${isIll('k')} THEN '1' ELSE '0' END, '' ORDER BY k.ord)
           FILTER (WHERE ${isOfProvider('k')}) AS answers,
         bool_or(k.class = 'throttled') AS is_throttled,
         max(k.retry_after_ms) FILTER (WHERE k.class = 'throttled') AS asked_ms,
         max(${pauseOf('k')}) AS pauses,
         max(k.owner) FILTER (WHERE k.class IN ('config', 'key_mismatch')) AS told_by,
         max(CASE WHEN k.class = 'throttled' THEN 'throttled' WHEN NOT ${isOfProvider('k')} THEN 'nothing'
                  WHEN ${isIll('k')} THEN 'ill' ELSE 'well' END)
           FILTER (WHERE k.payment_id = n.probe_payment_id AND k.generation = n.probe_generation
                     AND k.no = n.probe_no) AS probe
    FROM lanes n JOIN ${closed} k ON k.lane = n.lane GROUP BY n.lane),
lane_seen AS (
  SELECT n.*, s.is_throttled, s.asked_ms, s.pauses, s.told_by, s.probe,
         CASE WHEN n.breaker = 'closed' THEN right(n.recent || coalesce(s.answers, ''), ${BREAKER.window})
              ELSE '' END AS seen
    FROM lanes n JOIN lane_news s ON s.lane = n.lane),
lane_judged AS (SELECT w.*, ${OPENS} AS opens FROM lane_seen w),
lane_told AS (
  UPDATE lane SET
    recent = CASE WHEN j.opens IS NOT NULL OR position('1' IN j.seen) = 0 THEN '' ELSE j.seen END,
    breaker = CASE WHEN j.opens IS NOT NULL THEN 'open' WHEN j.breaker = 'closed' OR ${ANSWERED} THEN 'closed'
                   WHEN j.probe IS NOT NULL THEN 'open' ELSE j.breaker END,
    breaker_reason = CASE WHEN j.opens IS NOT NULL THEN j.opens WHEN ${ANSWERED} THEN NULL ELSE j.breaker_reason END,
    opened_at = CASE WHEN j.opens IS NOT NULL THEN clock_timestamp() WHEN ${ANSWERED} THEN NULL ELSE j.opened_at END,
    probe_at = CASE WHEN j.opens IS NOT NULL THEN ${inMs(String(BREAKER.firstProbeMs))}
                    WHEN ${ANSWERED} THEN NULL
                    WHEN ${BREAKER_STAYS} THEN ${inMs(doubling(BREAKER.firstProbeMs, BREAKER.longestProbeMs, 'j.probe_step'))}
                    ELSE j.probe_at END,
    probe_step = CASE WHEN j.opens IS NOT NULL THEN 1 WHEN ${ANSWERED} THEN 0
                      WHEN ${BREAKER_STAYS} THEN least(j.probe_step + 1, 16) ELSE j.probe_step END,
    wait_until = CASE WHEN ${WAIT_GROWS} THEN ${inMs(throttleMs('j.throttle_step'))}
                      WHEN j.is_throttled THEN greatest(j.wait_until, ${inMs(throttleMs('greatest(0, j.throttle_step - 1)'))})
                      WHEN ${WAIT_ENDS} THEN NULL
                      WHEN ${WAIT_STAYS} THEN ${inMs(throttleMs('j.throttle_step'))}
                      ELSE j.wait_until END,
    throttle_step = CASE WHEN ${WAIT_GROWS} OR ${WAIT_STAYS} THEN least(j.throttle_step + 1, 16)
                         WHEN NOT j.is_throttled AND ${WAIT_ENDS} THEN 0 ELSE j.throttle_step END,
    probe_payment_id = CASE WHEN j.probe IS NULL THEN j.probe_payment_id END,
    probe_generation = CASE WHEN j.probe IS NULL THEN j.probe_generation END,
    probe_no = CASE WHEN j.probe IS NULL THEN j.probe_no END,
    probe_until = CASE WHEN j.probe IS NULL THEN j.probe_until END,
    paused = j.paused OR j.pauses IS NOT NULL,
    pause_reason = CASE WHEN j.paused OR j.pauses IS NULL THEN j.pause_reason ELSE j.pauses END,
    paused_at = CASE WHEN j.paused OR j.pauses IS NULL THEN j.paused_at ELSE clock_timestamp() END,
    paused_by = CASE WHEN j.paused OR j.pauses IS NULL THEN j.paused_by ELSE 'worker:' || j.told_by END
   FROM lane_judged j WHERE lane.lane = j.lane)`;
