import type { Sql, Statement } from '../persistence/database.js';
import type { PaymentState } from '../domain/payment-state.js';

export type OutboxKind = 'start' | 'wake' | 'cancel';
export const OUTBOX_KINDS: readonly OutboxKind[] = ['cancel', 'wake', 'start'];

/** A taken row with what its publication needs. Durations on the database's clock. */
export interface OutboxRow {
  readonly id: bigint;
  readonly payment_id: string;
  readonly state: PaymentState;
  readonly version: number;
  readonly lane: string;
  readonly rate: number;
  readonly provider: string;
  readonly pseudonym: string;
  readonly due_in_ms: number;
  readonly due_second: bigint;
}

/** What a workflow target needs of payment `p`, its lane `l` and its tenant `t`. */
export const TARGET_COLUMNS = `p.id AS payment_id, p.state, p.version, p.lane, l.rate, p.provider, t.pseudonym,
  (extract(epoch FROM p.execute_at - clock_timestamp()) * 1000)::double precision AS due_in_ms,
  floor(extract(epoch FROM p.execute_at))::bigint AS due_second`;

const FREE = `(taken_until IS NULL OR taken_until < clock_timestamp())`;

/** Starts due within this time; null: all. now() and not the clock, so that the index bounds the walk. */
const WITHIN = (parameter: string): string =>
  `due_at <= coalesce(now() + ${parameter}::double precision * interval '1 ms', 'infinity'::timestamptz)`;

const PENDING: Statement = {
  name: 'outbox-pending',
  text: `SELECT kind FROM unnest($1::text[]) AS kind
    WHERE EXISTS (SELECT 1 FROM outbox o WHERE o.kind = kind.kind AND ${FREE}
                     AND (o.kind <> 'start' OR o.${WITHIN('$2')}))`,
};

/** The kinds that have something to take; of starts only those due within `startsWithinMs` (null: all). */
export async function pendingKinds(sql: Sql, startsWithinMs: number | null): Promise<readonly OutboxKind[]> {
  const { rows } = await sql.query<{ kind: OutboxKind }>(PENDING, [OUTBOX_KINDS, startsWithinMs]);
  return rows.map((r) => r.kind);
}

const STALE: Statement = {
  name: 'outbox-stale',
  text: `SELECT EXISTS (SELECT 1 FROM outbox o WHERE o.kind = 'start' AND o.${WITHIN('$1')} AND ${FREE}
                     AND o.created_at < now() - $2::double precision * interval '1 ms')
       OR EXISTS (SELECT 1 FROM outbox o WHERE o.created_at < now() - $3::double precision * interval '1 ms'
                     AND ${FREE}) AS stale`,
};

/**
 * True when a start that is due within `leadMs` has waited for longer than `soonMs` (index outbox_by_due), or
 * any row for longer than `farMs` (index outbox_by_age).
 */
export async function hasStaleStarts(
  sql: Sql,
  { leadMs, soonMs, farMs }: { readonly leadMs: number; readonly soonMs: number; readonly farMs: number },
): Promise<boolean> {
  const { rows } = await sql.query<{ stale: boolean }>(STALE, [leadMs, soonMs, farMs]);
  return rows[0]?.stale === true;
}

/** More starts than this that were left by the last second's commits: creates keep the machine busy. */
const MANY_FRESH_STARTS = 100;
/** More payments than this that are due about now: paying them does. 25 a second. */
const MANY_DUE = 750;

/** What waits for a paused lane, or is overdue for long, is nothing that a start would delay. */
const PRESSED: Statement = {
  name: 'outbox-pressed',
  text: `SELECT (SELECT count(*) > ${MANY_FRESH_STARTS} FROM (SELECT 1 FROM outbox
            WHERE created_at > now() - interval '1 second' LIMIT ${MANY_FRESH_STARTS + 1}) fresh)
    OR (SELECT count(*) > ${MANY_DUE} FROM (SELECT 1 FROM lane l CROSS JOIN LATERAL (
            SELECT 1 FROM payment p WHERE p.lane = l.lane AND p.state = 'scheduled'
               AND p.execute_at BETWEEN now() - interval '60 seconds' AND now() + interval '30 seconds'
             LIMIT ${MANY_DUE + 1}) due
            WHERE NOT l.paused LIMIT ${MANY_DUE + 1}) soon) AS pressed`,
};

/**
 * True while there is more urgent work than starts that are far off: many creates, or many payments due from
 * 60 s ago to 30 s from now (indexes outbox_by_age, payment_due). On the database's clock.
 */
export async function isPressed(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ pressed: boolean }>(PRESSED);
  return rows[0]?.pressed === true;
}

const TAKE: Statement = {
  name: 'outbox-take',
  text: `WITH c AS (
  SELECT id FROM outbox WHERE kind = $1 AND ${FREE} AND ${WITHIN('$3')} ORDER BY due_at, id LIMIT $2 FOR UPDATE SKIP LOCKED),
u AS (
  UPDATE outbox o SET taken_until = clock_timestamp() + interval '15 seconds' FROM c WHERE o.id = c.id
  RETURNING o.id, o.payment_id, o.due_at)
SELECT u.id, ${TARGET_COLUMNS}
  FROM u JOIN payment p ON p.id = u.payment_id JOIN lane l ON l.lane = p.lane JOIN tenant t ON t.id = p.tenant_id
 ORDER BY u.due_at, u.id`,
};

/** Takes up to `limit` rows of a kind, due within `withinMs` (null: all), for 15 s, soonest first (index outbox_by_due). */
export async function takeOutbox(
  sql: Sql,
  kind: OutboxKind,
  limit: number,
  withinMs: number | null = null,
): Promise<readonly OutboxRow[]> {
  const { rows } = await sql.query<OutboxRow>(TAKE, [kind, limit, withinMs]);
  return rows;
}

const DELETE: Statement = { name: 'outbox-delete', text: `DELETE FROM outbox WHERE id = ANY ($1::bigint[])` };

/** Published: gone. Twice: nothing. */
export async function deleteOutbox(sql: Sql, ids: readonly bigint[]): Promise<void> {
  await sql.query(DELETE, [ids]);
}

const GIVE_BACK: Statement = {
  name: 'outbox-give-back',
  text: `UPDATE outbox SET taken_until = NULL WHERE id = ANY ($1::bigint[])`,
};

/** Not published: any relay may take them at once. */
export async function giveBackOutbox(sql: Sql, ids: readonly bigint[]): Promise<void> {
  await sql.query(GIVE_BACK, [ids]);
}

const TAKE_SLOTS: Statement = {
  name: 'due-slot-take',
  text: `INSERT INTO due_slot (due_second, lane, taken) SELECT * FROM unnest($1::bigint[], $2::text[], $3::integer[])
    ON CONFLICT (due_second, lane) DO UPDATE SET taken = due_slot.taken + EXCLUDED.taken
    RETURNING due_second, lane, taken`,
};

/**
 * Takes the next slots of each due second and lane; one batched upsert in a commit of its own, or
 * all relays would queue on one row. @returns slot numbers in the order of `rows`, from 0.
 */
export async function takeSlots(
  sql: Sql,
  rows: readonly Pick<OutboxRow, 'due_second' | 'lane'>[],
): Promise<readonly number[]> {
  const keyOf = (r: { due_second: bigint; lane: string }): string => `${r.due_second}|${r.lane}`;
  const wanted = new Map<string, { due_second: bigint; lane: string; count: number }>();
  for (const row of rows) {
    const entry = wanted.get(keyOf(row)) ?? { due_second: row.due_second, lane: row.lane, count: 0 };
    entry.count++;
    wanted.set(keyOf(row), entry);
  }
  // Sorted, so that two relays lock the same rows in the same order.
  const entries = [...wanted].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
  const taken = await sql.query<{ due_second: bigint; lane: string; taken: number }>(TAKE_SLOTS, [
    entries.map((e) => e.due_second),
    entries.map((e) => e.lane),
    entries.map((e) => e.count),
  ]);
  const next = new Map(taken.rows.map((r) => [keyOf(r), r.taken - (wanted.get(keyOf(r))?.count ?? 0)]));
  return rows.map((row) => {
    const slot = next.get(keyOf(row)) ?? 0;
    next.set(keyOf(row), slot + 1);
    return slot;
  });
}

const WAKE_AFTER: Statement = {
  name: 'plan-wake-after',
  text: `WITH free AS (
  SELECT id FROM payment WHERE id = ANY ($1::text[]) AND state = (SELECT 'scheduled'::text)
     FOR NO KEY UPDATE SKIP LOCKED)
UPDATE payment p SET wake_after = clock_timestamp() + x.ms * interval '1 ms'
  FROM free JOIN unnest($1::text[], $2::double precision[]) AS x (id, ms) USING (id)
 WHERE p.id = free.id`,
};

/**
 * Tells the sweep until when a payment of a slow lane is not missing but waits for its slot. One that
 * somebody holds locked is left out: at worst the sweep wakes it for nothing. The sub-select keeps
 * the planner on the primary key; it would walk the whole partial index of scheduled payments.
 */
export async function planWakeAfter(
  sql: Sql,
  waits: readonly { readonly paymentId: string; readonly inMs: number }[],
): Promise<void> {
  await sql.query(WAKE_AFTER, [waits.map((w) => w.paymentId), waits.map((w) => w.inMs)]);
}
