import { START_LEAD_MS } from '../domain/start-lead.js';
import type { Sql, Statement } from '../persistence/database.js';
import type { Log } from '../platform/logger.js';
import * as metrics from './metrics.js';

/** How often the gauges are read (ms). */
export const DATABASE_GAUGES_EVERY_MS = 15_000;

/** No count reads more rows than this: a backlog must not make its own measurement slow. */
const MOST_ROWS = 100_000;
/** Unknown payments are looked at one by one. */
const MOST_UNKNOWN = 1_000;

/** Each part reads a partial index (payment_deadline, payment_submitting and so on). */
const STATES: Statement = {
  name: 'gauge-states',
  text: `SELECT state, count(*)::integer AS rows FROM
    (SELECT state FROM payment WHERE state IN ('scheduled', 'held') LIMIT ${MOST_ROWS}) waiting GROUP BY state
  ${['submitting', 'submitted', 'unknown', 'needs_review']
    .map(
      (state) => `UNION ALL SELECT '${state}', count(*)::integer FROM
    (SELECT 1 FROM payment WHERE state = '${state}' LIMIT ${MOST_ROWS}) ${state}`,
    )
    .join('\n  ')}`,
};

/** For each lane the first row of payment_due; lanes that are closed are late on purpose. */
const DUE: Statement = {
  name: 'gauge-due',
  text: `SELECT coalesce(greatest(0, max(extract(epoch FROM clock_timestamp() - o.execute_at))), 0)::double precision
           AS seconds
    FROM lane l CROSS JOIN LATERAL (
      SELECT p.execute_at FROM payment p WHERE p.state = 'scheduled' AND p.lane = l.lane
       ORDER BY p.execute_at LIMIT 1) o
   WHERE NOT l.paused AND l.wait_until IS NULL AND l.breaker = 'closed'`,
};

/** Each lane reads its part of payment_due. A paused lane has no expected end. */
const LANES: Statement = {
  name: 'gauge-lanes',
  text: `SELECT l.provider, CASE WHEN l.paused AND l.pause_reason = 'provider_refused_credential' THEN 'credential_refused'
           WHEN l.paused THEN 'paused' WHEN l.breaker <> 'closed' THEN 'broken'
           WHEN l.wait_until IS NOT NULL THEN 'throttled' ELSE 'open' END AS state,
         due.rows, CASE WHEN due.rows = 0 OR l.paused THEN 0 ELSE due.rows / l.rate
           + greatest(0, coalesce(extract(epoch FROM l.wait_until - clock_timestamp()), 0),
                      coalesce(extract(epoch FROM l.probe_at - clock_timestamp()), 0)) END::double precision AS seconds
    FROM lane l CROSS JOIN LATERAL (
      SELECT count(*)::integer AS rows FROM (
        SELECT 1 FROM payment p WHERE p.state = 'scheduled' AND p.lane = l.lane
           AND p.execute_at <= clock_timestamp() LIMIT ${MOST_ROWS}) waiting) due`,
};

const UNKNOWN: Statement = {
  name: 'gauge-unknown',
  text: `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - since.at)), 0)::double precision AS seconds,
         coalesce(min(extract(epoch FROM life.ends - clock_timestamp())
           / nullif(extract(epoch FROM life.ends - life.begins), 0)), 1)::double precision AS life_left
    FROM (SELECT id FROM payment WHERE state = 'unknown' ORDER BY next_action_at LIMIT ${MOST_UNKNOWN}) p
    CROSS JOIN LATERAL (SELECT min(t.at) AS at FROM payment_transition t
      WHERE t.payment_id = p.id AND t.to_state = 'unknown') since
    LEFT JOIN LATERAL (SELECT s.key_valid_until AS ends, s.opened_at AS begins FROM submission s
      WHERE s.payment_id = p.id ORDER BY s.generation DESC LIMIT 1) life ON TRUE`,
};

const REVIEW: Statement = {
  name: 'gauge-review',
  text: `SELECT reason, count(*)::integer AS rows,
         max(extract(epoch FROM clock_timestamp() - opened_at))::double precision AS seconds
    FROM review_case WHERE closed_at IS NULL GROUP BY reason`,
};

/** Of each kind the soonest due rows (outbox_by_due). A start that may be put off does not wait yet. */
const OUTBOX: Statement = {
  name: 'gauge-outbox',
  text: `SELECT kind, count(*)::integer AS rows, greatest(0, max(extract(epoch FROM clock_timestamp() -
           CASE kind WHEN 'start' THEN greatest(created_at, due_at - interval '${START_LEAD_MS} ms')
             ELSE created_at END)))::double precision AS seconds
    FROM unnest('{start,wake,cancel}'::text[]) kind CROSS JOIN LATERAL (
      SELECT created_at, due_at FROM outbox o WHERE o.kind = kind.kind ORDER BY due_at LIMIT ${MOST_ROWS}) waiting
   GROUP BY kind`,
};

/** Open events are few (webhook_inbox_open). */
const WEBHOOKS: Statement = {
  name: 'gauge-webhooks',
  text: `SELECT count(*) FILTER (WHERE received_at < clock_timestamp() - interval '15 minutes')::integer AS rows,
         coalesce(max(extract(epoch FROM clock_timestamp() - received_at)), 0)::double precision AS seconds
    FROM (SELECT received_at FROM webhook_inbox WHERE processed_at IS NULL LIMIT ${MOST_ROWS}) open`,
};

/** For each active endpoint the first of its open rows (webhook_delivery_due). */
const WEBHOOKS_OUT: Statement = {
  name: 'gauge-webhooks-out',
  text: `SELECT coalesce(greatest(0, max(extract(epoch FROM clock_timestamp() - d.next_try_at))), 0)::double precision
           AS seconds
    FROM webhook_endpoint e CROSS JOIN LATERAL (
      SELECT w.next_try_at FROM webhook_delivery w
       WHERE w.endpoint_id = e.id AND w.done_at IS NULL
         AND (w.taken_until IS NULL OR w.taken_until < clock_timestamp())
       ORDER BY w.next_try_at LIMIT 1) d
   WHERE e.status = 'active'`,
};

const RECOVERY_HOLD: Statement = {
  name: 'gauge-recovery-hold',
  text: `SELECT count(*)::integer AS rows FROM setting WHERE name = 'recovery_hold' AND value = 'on'`,
};

/** One row for each provider and bucket. */
const SETTLEMENT: Statement = {
  name: 'gauge-settlement',
  text: `SELECT bucket, sum(rows)::double precision AS rows FROM settlement_count GROUP BY bucket`,
};

/** The newest anchor (primary key); without one the oldest transition (payment_transition_by_time). */
const ANCHOR_AGE: Statement = {
  name: 'gauge-anchor-age',
  text: `SELECT coalesce(extract(epoch FROM clock_timestamp() - coalesce(
      (SELECT a.at FROM audit_anchor a ORDER BY a.no DESC LIMIT 1),
      (SELECT min(t.at) FROM payment_transition t))), 0)::double precision AS seconds`,
};

async function readAnchorAge(sql: Sql): Promise<void> {
  const { rows } = await sql.query<{ seconds: number }>(ANCHOR_AGE);
  metrics.anchorAgeSeconds.set({}, rows[0]?.seconds ?? 0);
}

interface Grouped {
  readonly rows: number;
  readonly seconds: number;
}

async function readStates(sql: Sql): Promise<void> {
  const { rows } = await sql.query<Grouped & { state: metrics.OpenState }>(STATES);
  for (const state of ['scheduled', 'held', 'submitting', 'submitted', 'unknown', 'needs_review'] as const) {
    metrics.current.set({ state }, rows.find((row) => row.state === state)?.rows ?? 0);
  }
}

async function readWaits(sql: Sql): Promise<void> {
  const due = await sql.query<{ seconds: number }>(DUE);
  metrics.dueOldestSeconds.set({}, due.rows[0]?.seconds ?? 0);
  const unknown = await sql.query<{ seconds: number; life_left: number }>(UNKNOWN);
  metrics.unknownOldestSeconds.set({}, unknown.rows[0]?.seconds ?? 0);
  metrics.keyLifeLeftRatioMin.set({}, Math.max(0, unknown.rows[0]?.life_left ?? 1));
}

const LANE_STATES = ['open', 'throttled', 'broken', 'credential_refused', 'paused'] as const;

async function readLanes(sql: Sql): Promise<void> {
  const { rows } = await sql.query<Grouped & { provider: string; state: metrics.LaneState }>(LANES);
  for (const [provider, lanes] of Map.groupBy(rows, (row) => row.provider)) {
    for (const state of LANE_STATES) {
      metrics.laneState.set({ provider, state }, lanes.filter((lane) => lane.state === state).length);
    }
    metrics.laneBacklog.set({ provider }, lanes.reduce((sum, lane) => sum + lane.rows, 0)); // prettier-ignore
    metrics.laneExpectedEndSeconds.set({ provider }, Math.max(...lanes.map((lane) => lane.seconds)));
  }
}

/** Buckets that contradict what is recorded. */
const CONTRADICTIONS: readonly metrics.SettlementBucket[] = [
  'unexpected_at_provider',
  'missing_at_provider',
  'amount_differs',
  'currency_differs',
];

/**
 * Counters that the command line filled: what it imports must reach a process that is scraped. Each
 * reading adds what is new since the one before; the first adds everything.
 */
async function readSettlement(sql: Sql, seen: Map<metrics.SettlementBucket, number>): Promise<void> {
  const { rows } = await sql.query<{ bucket: metrics.SettlementBucket; rows: number }>(SETTLEMENT);
  for (const { bucket, rows: total } of rows) {
    const fresh = total - (seen.get(bucket) ?? 0);
    if (fresh <= 0) continue;
    seen.set(bucket, total);
    metrics.settlementRowsTotal.add({ bucket }, fresh);
    if (CONTRADICTIONS.includes(bucket)) metrics.contradictionsTotal.add({ source: 'settlement' }, fresh);
  }
}

const oldest = (rows: readonly Grouped[]): number => Math.max(0, ...rows.map((row) => row.seconds));

async function readQueues(sql: Sql): Promise<void> {
  const outbox = (await sql.query<Grouped & { kind: metrics.OutboxWork }>(OUTBOX)).rows;
  metrics.outboxOldestSeconds.set({}, oldest(outbox));
  for (const kind of ['start', 'wake', 'cancel'] as const) {
    metrics.outboxRows.set({ kind }, outbox.find((row) => row.kind === kind)?.rows ?? 0);
  }
  const cases = (await sql.query<Grouped & { reason: string }>(REVIEW)).rows;
  metrics.reviewOldestSeconds.set({}, oldest(cases));
  metrics.reviewOpen.reset();
  for (const { reason, rows } of cases) metrics.reviewOpen.set({ reason }, rows);
  const webhooks = (await sql.query<Grouped>(WEBHOOKS)).rows[0];
  metrics.webhookParked.set({}, webhooks?.rows ?? 0);
  metrics.webhookOldestSeconds.set({}, webhooks?.seconds ?? 0);
  const out = await sql.query<{ seconds: number }>(WEBHOOKS_OUT);
  metrics.webhookOutOldestSeconds.set({}, out.rows[0]?.seconds ?? 0);
  const hold = await sql.query<{ rows: number }>(RECOVERY_HOLD);
  metrics.recoveryHold.set({}, hold.rows[0]?.rows ?? 0);
}

export interface DatabaseGauges {
  /** Reads all gauges now. Throws nothing; false when Postgres did not answer. */
  refresh(): Promise<boolean>;
  /** No reading starts after this; resolves when the one under way has ended. */
  stop(): Promise<void>;
}

/**
 * Reads the gauges that only Postgres knows, now and every 15 s, one statement after the other,
 * never two readings at once. A failed reading is logged, leaves the old values and the old
 * `database_gauges_last_run_seconds`, and is tried again at the next turn.
 */
export function startDatabaseGauges(options: {
  readonly sql: Sql;
  readonly log: Log;
  readonly everyMs?: number;
}): DatabaseGauges {
  const seen = new Map<metrics.SettlementBucket, number>();
  let running: Promise<boolean> | null = null;
  const read = async (): Promise<boolean> => {
    try {
      await readStates(options.sql);
      await readWaits(options.sql);
      await readLanes(options.sql);
      await readQueues(options.sql);
      await readSettlement(options.sql, seen);
      await readAnchorAge(options.sql);
      metrics.databaseGaugesLastRunSeconds.set({}, Date.now() / 1_000);
      return true;
    } catch (error) {
      options.log.warn({ err: error }, 'database_gauges_failed');
      return false;
    } finally {
      running = null;
    }
  };
  const refresh = (): Promise<boolean> => (running ??= read());
  const timer = setInterval(() => void refresh(), options.everyMs ?? DATABASE_GAUGES_EVERY_MS);
  timer.unref();
  void refresh();
  return {
    refresh,
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
