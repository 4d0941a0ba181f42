import type { Sql, Statement } from '../persistence/database.js';
import { isProbing, laneWaitMs, needsProbe, tokensNow } from './lane-admission.js';

/** No count reads more rows than this: a backlog must not make its own report slow. */
const MOST_ROWS = 100_000;

/** A lane as it stands now, with what waits for it. Times are Postgres texts of its own clock. */
export interface LaneRow {
  readonly lane: string;
  readonly provider: string;
  readonly account: string;
  readonly rate: number;
  readonly burst: number;
  readonly cap: number;
  readonly tokens: number;
  readonly paused: boolean;
  readonly pause_reason: string | null;
  readonly paused_at: string | null;
  readonly paused_by: string | null;
  readonly resumed_at: string | null;
  readonly resumed_by: string | null;
  readonly breaker: 'closed' | 'open' | 'half_open';
  readonly breaker_enabled: boolean;
  readonly breaker_reason: string | null;
  readonly opened_at: string | null;
  readonly probe_at: string | null;
  readonly is_probing: boolean;
  readonly failures_in_a_row: number;
  readonly recent_failures: number;
  readonly wait_until: string | null;
  readonly backlog: number;
  readonly oldest_due_at: string | null;
  /** Null while nobody can tell: the lane is paused, or nothing waits. */
  readonly backlog_ends_at: string | null;
}

/**
 * Due payments are counted in the index payment_due, those that had started and wait in
 * payment_submitting. What is armed for later is no backlog.
 */
const READ: Statement = {
  name: 'lane-states',
  text: `SELECT l.lane, l.provider, l.account, l.rate, l.burst, l.cap, ${tokensNow('l')} AS tokens,
    l.paused, l.pause_reason, l.paused_at, l.paused_by, l.resumed_at, l.resumed_by, l.breaker, l.breaker_enabled,
    l.breaker_reason, l.opened_at, l.probe_at, ${needsProbe('l')} AND ${isProbing('l')} AS is_probing,
    length(l.recent) - length(rtrim(l.recent, '1')) AS failures_in_a_row,
    length(replace(l.recent, '0', '')) AS recent_failures, l.wait_until,
    b.backlog, b.oldest_due_at,
    CASE WHEN NOT l.paused AND b.backlog > 0
      THEN clock_timestamp() + (${laneWaitMs('l')} + 1000 * b.backlog / l.rate) * interval '1 ms' END AS backlog_ends_at
  FROM lane l CROSS JOIN LATERAL (
    SELECT count(*)::integer AS backlog,
           min(due.execute_at) AS oldest_due_at
      FROM ((SELECT p.execute_at FROM payment p
              WHERE p.lane = l.lane AND p.state = 'scheduled' AND p.execute_at <= clock_timestamp()
              ORDER BY p.execute_at LIMIT ${MOST_ROWS})
            UNION ALL
            (SELECT p.execute_at FROM payment p
              WHERE p.state = 'submitting' AND p.lane = l.lane AND p.next_action_at IS NOT NULL
              LIMIT ${MOST_ROWS})) due) b
  WHERE ($1::text IS NULL OR l.provider = $1) AND ($2::text IS NULL OR l.account = $2)
  ORDER BY l.provider, l.account`,
};

/** Which lanes: all of a provider, or of one account of it. Nulls: every lane. */
export interface LaneFilter {
  readonly provider: string | null;
  readonly account: string | null;
}

/** @returns the lanes by provider and account; empty when there is none. */
export async function readLanes(sql: Sql, { provider, account }: LaneFilter): Promise<readonly LaneRow[]> {
  const { rows } = await sql.query<LaneRow>(READ, [provider, account]);
  return rows;
}

const PAUSE: Statement = {
  name: 'lane-pause',
  text: `WITH l AS (
  SELECT lane FROM lane WHERE provider = $1 AND ($2::text IS NULL OR account = $2) AND NOT paused
   ORDER BY lane FOR NO KEY UPDATE)
UPDATE lane SET paused = true, pause_reason = $3, paused_at = clock_timestamp(), paused_by = $4
  FROM l WHERE lane.lane = l.lane RETURNING lane.lane`,
};

/**
 * Pauses lanes: nothing is started (T7), tried again (T11) or sent again (T15) on them until somebody
 * resumes them, whatever restarts. One that is paused keeps its first reason, time and author.
 * @param by who asked, as in transitions. @returns the lanes that this call paused.
 */
export async function pauseLanes(
  sql: Sql,
  lanes: { readonly provider: string; readonly account: string | null },
  { reason, by }: { readonly reason: string; readonly by: string },
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ lane: string }>(PAUSE, [lanes.provider, lanes.account, reason, by]);
  return rows.map((row) => row.lane);
}

const RESUME: Statement = {
  name: 'lane-resume',
  text: `WITH l AS (
  SELECT lane FROM lane WHERE provider = $1 AND ($2::text IS NULL OR account = $2) AND paused
   ORDER BY lane FOR NO KEY UPDATE)
UPDATE lane SET paused = false, resumed_at = clock_timestamp(), resumed_by = $3
  FROM l WHERE lane.lane = l.lane RETURNING lane.lane`,
};

/**
 * Ends a pause. The wait that a provider asked for and an open breaker stay: they end by themselves.
 * @returns the lanes that this call resumed. Twice: the second finds none.
 */
export async function resumeLanes(
  sql: Sql,
  lanes: { readonly provider: string; readonly account: string | null },
  by: string,
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ lane: string }>(RESUME, [lanes.provider, lanes.account, by]);
  return rows.map((row) => row.lane);
}
