import { TARGET_COLUMNS, type OutboxRow } from '../outbox/outbox.store.js';
import { isPassable, isProbing, mayBeCalled, needsProbe } from '../lanes/lane-admission.js';
import { earlierMayHavePaid } from '../payments/earlier-generation.js';
import { GUARDS, moveCtes } from '../payments/gate.js';
import { ADVISORY_LOCKS } from '../persistence/advisory-locks.js';
import type { Sql, Statement } from '../persistence/database.js';
import { leaseAlive } from './worker-lease.js';

export type SweepTarget = Omit<OutboxRow, 'id'>;

const LOCK: Statement = {
  name: 'sweep-lock',
  text: `SELECT pg_try_advisory_xact_lock(${ADVISORY_LOCKS.sweep}) AS mine`,
};

/** True when this transaction is the only sweep now. A frozen holder is freed by its transaction's limit. */
export async function lockSweep(tx: Sql): Promise<boolean> {
  const { rows } = await tx.query<{ mine: boolean }>(LOCK);
  return rows[0]?.mine === true;
}

const EXPIRE: Statement = {
  name: 'sweep-expire',
  text: `WITH c AS (
  SELECT p.id, 'expired'::text AS to_state, 'expire'::text AS cause, 'sweep'::text AS actor,
         '{"rule":"T6"}'::text AS detail
    FROM payment p WHERE p.state IN ('scheduled', 'held') AND ${GUARDS.DEADLINE_PAST}
   ORDER BY p.not_after LIMIT 200 FOR NO KEY UPDATE SKIP LOCKED),
${moveCtes({ candidates: 'c', from: ['scheduled', 'held'], guard: GUARDS.DEADLINE_PAST, announce: 'wake' })}
SELECT id, from_state FROM moved`,
};

/** T6 for up to 200 payments past not_after (index payment_deadline). @returns from-states. */
export async function expirePayments(sql: Sql): Promise<readonly ('scheduled' | 'held')[]> {
  const { rows } = await sql.query<{ from_state: 'scheduled' | 'held' }>(EXPIRE);
  return rows.map((r) => r.from_state);
}

/**
 * Unclaimed attempts that must not be called any more: past the deadline or the key's life,
 * their lane was closed meanwhile, or an earlier generation was heard of as paid. Nothing was sent under them; a sticky ambiguity makes it T13.
 */
const CLOSE_UNCLAIMED: Statement = {
  name: 'sweep-close-unclaimed',
  text: `WITH target AS (
  SELECT p.id, a.generation, a.no,
         EXISTS (SELECT 1 FROM submission_attempt b WHERE b.payment_id = a.payment_id AND b.generation = a.generation
                   AND b.no < a.no AND b.evidence = 'ambiguous') AS sticky
    FROM submission_attempt a
    JOIN payment p ON p.id = a.payment_id AND p.state = 'submitting'
    JOIN lane l ON l.lane = p.lane
    JOIN submission s ON s.payment_id = a.payment_id AND s.generation = a.generation
   WHERE a.closed_at IS NULL AND a.owner IS NULL
     AND (clock_timestamp() > p.not_after OR s.key_valid_until <= clock_timestamp() OR NOT ${mayBeCalled('l', 'a')}
       OR ${earlierMayHavePaid('a.payment_id', 'a.generation')})
   ORDER BY p.id LIMIT 200 FOR NO KEY UPDATE OF p SKIP LOCKED),
closed AS (
  UPDATE submission_attempt a
     SET closed_at = clock_timestamp(), result_class = 'not_sent', code = 'unclaimed',
         evidence = CASE WHEN t.sticky THEN 'ambiguous' ELSE 'not_sent' END
    FROM target t
   WHERE a.payment_id = t.id AND a.generation = t.generation AND a.no = t.no
     AND a.closed_at IS NULL AND a.owner IS NULL
  RETURNING a.payment_id, a.evidence),
c AS (
  SELECT payment_id AS id, 'unknown'::text AS to_state, 'record-outcome'::text AS cause, 'sweep'::text AS actor,
         '{"rule":"T13","code":"unclaimed"}'::text AS detail
    FROM closed WHERE evidence = 'ambiguous'),
${moveCtes({ candidates: 'c', from: ['submitting'], guard: 'TRUE', set: ', next_action_at = clock_timestamp()' })},
waiting AS (
  UPDATE payment p SET next_action_at = clock_timestamp() FROM closed k
   WHERE p.id = k.payment_id AND k.evidence = 'not_sent')
SELECT payment_id AS id FROM closed WHERE evidence = 'not_sent'`,
};

/** @returns the ids that now wait in `submitting` without an open attempt. */
export async function closeUnclaimed(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>(CLOSE_UNCLAIMED);
  return rows.map((r) => r.id);
}

/** Woken and still where they were: not woken again for this long. */
const OUTSTANDING = `interval '15 seconds'`;
const RESTED = `(p.last_woken_at IS NULL OR p.last_woken_at < clock_timestamp() - ${OUTSTANDING})`;
const NO_OPEN = `NOT EXISTS (SELECT 1 FROM submission_attempt a WHERE a.payment_id = p.id AND a.closed_at IS NULL)`;

/** While a lane needs a probe, so many of its payments may try to be it at a time. */
const PROBES_WOKEN = 2;
/** Payments of lane `l` that may be woken now: all, or a few that may become its probe. */
const ROOM = `CASE WHEN ${needsProbe('l')} THEN ${PROBES_WOKEN} ELSE $1::integer END`;
/** What waits for a closed lane is left out: woken for nothing, it would take the places of those that can go. */
const LETS_PASS = `${isPassable('l')} AND NOT (${needsProbe('l')} AND ${isProbing('l')})`;
const UNTENDED = `(EXISTS (SELECT 1 FROM submission_attempt a WHERE a.payment_id = p.id AND a.closed_at IS NULL
                    AND a.owner IS NULL AND a.opened_at < clock_timestamp() - interval '2 seconds')
       OR (p.next_action_at < clock_timestamp() - interval '30 seconds' AND ${NO_OPEN}))`;

/**
 * Scheduled payments that nobody holds although they are due (index payment_due), and started ones that
 * nobody works on: each by its lane, soonest due first, and past their deadline whatever their lane does.
 */
const OVERDUE: Statement = {
  name: 'sweep-overdue',
  text: `WITH outstanding AS (
  SELECT count(*)::integer AS n FROM payment p
   WHERE p.last_woken_at > clock_timestamp() - ${OUTSTANDING} AND p.state IN ('scheduled', 'submitting')),
due AS (
  SELECT w.id, w.execute_at FROM lane l CROSS JOIN LATERAL (
    SELECT p.id, p.execute_at FROM payment p
     WHERE p.state = 'scheduled' AND p.lane = l.lane AND p.execute_at < now() - interval '2 seconds'
       AND (p.wake_after IS NULL OR p.wake_after < clock_timestamp())
       AND (p.armed_by IS NULL OR NOT ${leaseAlive('p.armed_by')}) AND ${RESTED}
     ORDER BY p.execute_at, p.id LIMIT ${ROOM}) w
   WHERE ${LETS_PASS}
  UNION ALL
  SELECT w.id, w.execute_at FROM lane l CROSS JOIN LATERAL (
    SELECT p.id, p.execute_at FROM payment p
     WHERE p.state = 'submitting' AND p.lane = l.lane AND ${RESTED} AND ${UNTENDED}
     ORDER BY p.execute_at, p.id LIMIT ${ROOM}) w
   WHERE ${LETS_PASS}
  UNION ALL
  SELECT p.id, p.execute_at FROM payment p JOIN lane l ON l.lane = p.lane
   WHERE p.state = 'submitting' AND p.not_after < clock_timestamp() AND (${LETS_PASS}) IS NOT TRUE
     AND ${RESTED} AND ${UNTENDED}
   ORDER BY execute_at, id
   LIMIT greatest(0, least($1::integer, $2::integer - (SELECT n FROM outstanding)))),
locked AS (
  SELECT p.id FROM payment p JOIN due ON due.id = p.id ORDER BY p.execute_at, p.id FOR NO KEY UPDATE OF p SKIP LOCKED),
p AS (
  UPDATE payment p SET last_woken_at = clock_timestamp() FROM locked WHERE p.id = locked.id RETURNING p.*)
SELECT ${TARGET_COLUMNS} FROM p JOIN lane l ON l.lane = p.lane JOIN tenant t ON t.id = p.tenant_id`,
};

/** At most `limit` now, and at most `outstanding` woken in the last 15 s and still so. */
export async function takeOverdue(
  sql: Sql,
  limit: number,
  outstanding: number,
): Promise<readonly SweepTarget[]> {
  const { rows } = await sql.query<SweepTarget>(OVERDUE, [limit, outstanding]);
  return rows;
}

const ORPHANED: Statement = {
  name: 'sweep-orphaned-results',
  text: `WITH gone AS (
  SELECT DISTINCT p.id FROM worker w
    JOIN submission_attempt a ON a.owner = w.id
    JOIN payment p ON p.id = a.payment_id
   WHERE w.lease_expires_at < clock_timestamp() AND w.lease_expires_at > clock_timestamp() - interval '60 seconds'
     AND a.closed_at > w.lease_expires_at - interval '180 seconds' AND p.state IN ('succeeded', 'failed')
     AND (p.last_woken_at IS NULL OR p.last_woken_at < w.lease_expires_at)
   LIMIT 50),
free AS (
  SELECT p.id FROM payment p JOIN gone ON gone.id = p.id ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED)
UPDATE payment p SET last_woken_at = clock_timestamp() FROM free WHERE p.id = free.id RETURNING p.id`,
};

/**
 * Final payments whose workflow may wait for a result that died with its worker; at most 50. One that
 * somebody holds is taken the next time: this transaction holds others.
 */
export async function takeOrphanedResults(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>(ORPHANED);
  return rows.map((r) => r.id);
}

const DELETE_SLOTS: Statement = {
  name: 'sweep-slots',
  text: `DELETE FROM due_slot WHERE due_second < extract(epoch FROM clock_timestamp())::bigint - 60`,
};
const DELETE_WORKERS: Statement = {
  name: 'sweep-workers',
  text: `DELETE FROM worker w WHERE w.lease_expires_at < clock_timestamp() - interval '1 hour'
    AND NOT EXISTS (SELECT 1 FROM submission_attempt a WHERE a.owner = w.id AND a.closed_at IS NULL)`,
};

/** Removes slots of past seconds and rows of workers that are long gone. */
export async function tidy(sql: Sql): Promise<void> {
  await sql.query(DELETE_SLOTS);
  await sql.query(DELETE_WORKERS);
}

const READ_SETTING: Statement = { name: 'setting-read', text: `SELECT value FROM setting WHERE name = $1` };
const WRITE_SETTING: Statement = {
  name: 'setting-write',
  text: `INSERT INTO setting (name, value) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value, updated_at = clock_timestamp()`,
};
export async function readSetting(sql: Sql, name: string): Promise<string | null> {
  const { rows } = await sql.query<{ value: string }>(READ_SETTING, [name]);
  return rows[0]?.value ?? null;
}
export async function writeSetting(sql: Sql, name: string, value: string): Promise<void> {
  await sql.query(WRITE_SETTING, [name, value]);
}

const REPUBLISH_STARTED: Statement = {
  name: 'sweep-republish-started',
  text: `INSERT INTO outbox (kind, payment_id, due_at)
    SELECT 'start', p.id, p.execute_at FROM payment p
     WHERE p.state IN ('held', 'submitting', 'submitted', 'unknown', 'needs_review')`,
};
const LANES: Statement = { name: 'sweep-lanes', text: `SELECT lane FROM lane ORDER BY lane` };
const REPUBLISH_SCHEDULED: Statement = {
  name: 'sweep-republish-scheduled',
  text: `WITH chunk AS (
  SELECT p.id, p.execute_at FROM payment p
   WHERE p.state = 'scheduled' AND p.lane = $1 AND (p.execute_at, p.id) > ($2::timestamptz, $3)
   ORDER BY p.execute_at, p.id LIMIT $4),
o AS (INSERT INTO outbox (kind, payment_id, due_at) SELECT 'start', id, execute_at FROM chunk)
SELECT id, execute_at FROM chunk ORDER BY execute_at, id`,
};
const CHUNK = 5_000;

/**
 * Asks for a new workflow of every open payment, soonest due first (index payment_due), in commits
 * of a few thousand. Twice: the second request finds a run that exists. @returns how many.
 */
export async function republishOpen(sql: Sql): Promise<number> {
  let count = (await sql.query(REPUBLISH_STARTED)).rowCount;
  const lanes = await sql.query<{ lane: string }>(LANES);
  for (const { lane } of lanes.rows) {
    let last = { id: '', execute_at: '-infinity' };
    for (;;) {
      const { rows } = await sql.query<typeof last>(REPUBLISH_SCHEDULED, [
        lane,
        last.execute_at,
        last.id,
        CHUNK,
      ]);
      count += rows.length;
      last = rows.at(-1) ?? last;
      if (rows.length < CHUNK) break;
    }
  }
  return count;
}
