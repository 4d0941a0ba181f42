import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import {
  closeUnclaimed,
  expirePayments,
  takeOrphanedResults,
  takeOverdue,
  tidy,
} from '../../src/submission/sweep.store.js';
import { insertScheduled, seedLane, seedTenant, type PaymentSeed } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { findBreaches } from '../support/invariants.js';
import {
  bringTo,
  claimAttempt,
  closeAttempt,
  openAttempt,
  openGeneration,
  paymentIn,
  seedWorker,
  step,
} from '../support/payment-states.js';
import { plantPast } from '../support/past.js';

/** What the sweep's statements take and leave, each on a database of its own. */

let db: TestDatabase;
let tenant: string;
let lane: string;
beforeEach(async () => {
  db = await createTestDatabase();
  tenant = await seedTenant(db.database);
  lane = await seedLane(db.database);
});
afterEach(() => db.drop());

const seed = (more: Partial<PaymentSeed> = {}): PaymentSeed => ({ tenant, lane, ...more });
const scheduled = async (more: Partial<PaymentSeed> = {}) =>
  (await insertScheduled(db.database, seed(more))).id;
const make = (state: Parameters<typeof paymentIn>[0], more: Partial<PaymentSeed> = {}) =>
  paymentIn(state, db.database, seed(more));
const past = (id: string, seconds: { due?: number; deadline?: number }) => plantPast(db, id, seconds);
const setHold = (): Promise<unknown> =>
  db.query(`INSERT INTO setting (name, value) VALUES ('recovery_hold', 'on')`);
const pauseLane = (name = lane): Promise<unknown> =>
  db.query(`UPDATE lane SET paused = true WHERE lane = $1`, [name]);

async function stateOf(id: string): Promise<string | undefined> {
  const [row] = await db.query<{ state: string }>(`SELECT state FROM payment WHERE id = $1`, [id]);
  return row?.state;
}

/** A payment in `submitting` whose attempt nobody claimed, opened so many seconds ago. */
async function unclaimed(secondsAgo = 0, more: Partial<PaymentSeed> = {}): Promise<string> {
  const id = await scheduled(more);
  await step(db.database, id, { rule: 'T7', set: ', submission_started_at = clock_timestamp()' });
  await openGeneration(db.database, id);
  await openAttempt(db.database, id);
  await db.query(
    `UPDATE submission_attempt SET opened_at = clock_timestamp() - $2 * interval '1 second' WHERE payment_id = $1`,
    [id, secondsAgo],
  );
  return id;
}

/** A payment in `submitting` without an open attempt, whose next step was due so many seconds ago. */
async function waiting(secondsAgo: number, more: Partial<PaymentSeed> = {}): Promise<string> {
  const id = await unclaimed(0, more);
  await closeAttempt(db.database, id, 'not_sent');
  await nextAction(id, secondsAgo);
  return id;
}

const nextAction = (id: string, secondsAgo: number | null) =>
  db.query(
    `UPDATE payment SET next_action_at = clock_timestamp() - $2::double precision * interval '1 second' WHERE id = $1`,
    [id, secondsAgo],
  );

describe('expiry (T6)', () => {
  it('takes scheduled and held payments past not_after, of paused lanes too, and tells their workflows', async () => {
    const [open, held, onPaused] = [await scheduled(), await scheduled(), await scheduled()];
    for (const id of [open, held, onPaused]) await past(id, { due: 60, deadline: 1 });
    await step(db.database, held, { rule: 'T3', cause: 'hold' });
    await pauseLane();
    await db.query(`DELETE FROM outbox`);
    expect([...(await expirePayments(db.database))].sort()).toEqual(['held', 'scheduled', 'scheduled']);
    for (const id of [open, held, onPaused]) expect(await stateOf(id)).toBe('expired');
    const told = await db.query<{ kind: string; payment_id: string }>(`SELECT kind, payment_id FROM outbox`);
    expect(told.map((row) => `${row.kind} ${row.payment_id}`).sort()).toEqual(
      [open, held, onPaused].map((id) => `wake ${id}`).sort(),
    );
    expect(await expirePayments(db.database)).toEqual([]);
  });

  it('leaves alone what is not past it, and every other state', async () => {
    const ids = [await scheduled(), await scheduled()];
    await past(ids[0] as string, { due: 60 });
    for (const state of ['submitting', 'unknown', 'needs_review', 'cancelled'] as const) {
      const id = await make(state);
      await past(id, { due: 60, deadline: 1 });
      ids.push(id);
    }
    const before = await Promise.all(ids.map(stateOf));
    expect(await expirePayments(db.database)).toEqual([]);
    expect(await Promise.all(ids.map(stateOf))).toEqual(before);
  });

  it('does nothing in a recovery hold: what was sent before the restore must not look unsent', async () => {
    const id = await scheduled();
    await past(id, { due: 60, deadline: 1 });
    await setHold();
    expect(await expirePayments(db.database)).toEqual([]);
    expect(await stateOf(id)).toBe('scheduled');
  });

  it('waits for nobody: a payment that somebody holds is taken the next time', async () => {
    const [locked, free] = [await scheduled(), await scheduled()];
    for (const id of [locked, free]) await past(id, { due: 60, deadline: 1 });
    await db.database.transaction(async (tx) => {
      await tx.query({ name: 'lock', text: 'SELECT 1 FROM payment WHERE id = $1 FOR UPDATE' }, [locked]);
      expect(await expirePayments(db.connect('sweep'))).toEqual(['scheduled']);
    });
    expect(await stateOf(locked)).toBe('scheduled');
    expect(await expirePayments(db.database)).toEqual(['scheduled']);
  });

  it('takes 200 at a time, the longest overdue first', async () => {
    const ids = await Promise.all(Array.from({ length: 230 }, () => scheduled()));
    await db.query(
      `UPDATE payment p SET execute_at = clock_timestamp() - interval '2 hours',
              not_after = clock_timestamp() - x.n * interval '1 second'
         FROM unnest($1::text[]) WITH ORDINALITY AS x (id, n) WHERE p.id = x.id`,
      [ids],
    );
    expect(await expirePayments(db.database)).toHaveLength(200);
    const left = await db.query<{ id: string }>(`SELECT id FROM payment WHERE state = 'scheduled'`);
    expect(new Set(left.map((row) => row.id))).toEqual(new Set(ids.slice(0, 30)));
    expect(await expirePayments(db.database)).toHaveLength(30);
  });
});

describe('closing abandoned attempts (T13)', () => {
  it('takes those of a worker whose lease is over or whose row is gone, due for inquiry at once', async () => {
    const [dead, gone, alive] = [await unclaimed(), await unclaimed(), await unclaimed()];
    await claimAttempt(db.database, dead, await seedWorker(db.database, 0));
    await claimAttempt(db.database, gone, 'removed-at-its-stop');
    await claimAttempt(db.database, alive, await seedWorker(db.database));
    expect(new Set(await closeAbandoned(db.database, null, 'sweep'))).toEqual(new Set([dead, gone]));
    for (const id of [dead, gone]) expect(await stateOf(id)).toBe('unknown');
    expect(await stateOf(alive)).toBe('submitting');
    const rows = await db.query(
      `SELECT a.evidence, a.code, p.next_action_at <= clock_timestamp() AS due FROM submission_attempt a
         JOIN payment p ON p.id = a.payment_id WHERE p.state = 'unknown'`,
    );
    expect(rows).toEqual(Array(2).fill({ evidence: 'ambiguous', code: 'abandoned', due: true }));
    expect(await closeAbandoned(db.database, null, 'sweep')).toEqual([]);
    expect(await findBreaches((text) => db.query(text))).toEqual([]);
  });

  it('leaves an attempt alone that nobody claimed: nothing was sent under it', async () => {
    await unclaimed(600);
    expect(await closeAbandoned(db.database, null, 'sweep')).toEqual([]);
  });

  it('is not stopped by attempts that were left open on payments that have moved on', async () => {
    const dead = await seedWorker(db.database, 0);
    const ids = await Promise.all(Array.from({ length: 201 }, () => unclaimed()));
    await db.query(`UPDATE submission_attempt SET owner = $1, call_started_at = clock_timestamp()`, [dead]);
    const last = ids.toSorted().at(-1) ?? '';
    await db.query(`ALTER TABLE payment DISABLE TRIGGER ALL`);
    await db.query(`UPDATE payment SET state = 'succeeded' WHERE id <> $1`, [last]);
    await db.query(`ALTER TABLE payment ENABLE TRIGGER ALL`);
    expect(await closeAbandoned(db.database, null, 'sweep')).toEqual([last]);
    expect(await stateOf(last)).toBe('unknown');
  });

  it('takes a call older than 60 s although its owner lives', async () => {
    const id = await unclaimed();
    await claimAttempt(db.database, id, await seedWorker(db.database));
    const age = (seconds: number) =>
      db.query(
        `UPDATE submission_attempt SET call_started_at = clock_timestamp() - $2 * interval '1 s' WHERE payment_id = $1`,
        [id, seconds],
      );
    await age(58);
    expect(await closeAbandoned(db.database, null, 'sweep')).toEqual([]);
    await age(61);
    expect(await closeAbandoned(db.database, null, 'sweep')).toEqual([id]);
  });
});

describe('closing attempts that nobody claimed', () => {
  it('takes those past not_after, past the life of their key, or of a paused lane, as proven not sent', async () => {
    const other = await seedLane(db.database);
    const [late, keyOver, paused] = [
      await unclaimed(),
      await unclaimed(),
      await unclaimed(0, { lane: other }),
    ];
    const fine = await unclaimed(60);
    await past(late, { due: 60, deadline: 1 });
    await db.query(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`, [
      keyOver,
    ]);
    await pauseLane(other);
    expect(new Set(await closeUnclaimed(db.database))).toEqual(new Set([late, keyOver, paused]));
    for (const id of [late, keyOver, paused, fine]) expect(await stateOf(id)).toBe('submitting');
    const closed = await db.query<{ payment_id: string; evidence: string; code: string }>(
      `SELECT payment_id, evidence, code FROM submission_attempt WHERE closed_at IS NOT NULL`,
    );
    expect(closed).toHaveLength(3);
    for (const row of closed) expect(row).toMatchObject({ evidence: 'not_sent', code: 'unclaimed' });
    expect(closed.map((row) => row.payment_id)).not.toContain(fine);
  });

  it('leaves a claimed one alone, however late: its answer may still come', async () => {
    const id = await unclaimed();
    await past(id, { due: 60, deadline: 1 });
    await claimAttempt(db.database, id, await seedWorker(db.database));
    await pauseLane();
    expect(await closeUnclaimed(db.database)).toEqual([]);
  });

  it('makes a payment unknown, not failed, that had an ambiguous attempt before (rule 6)', async () => {
    const id = await make('unknown');
    await step(db.database, id, { rule: 'T15' });
    await openAttempt(db.database, id, 2);
    await pauseLane();
    expect(await closeUnclaimed(db.database)).toEqual([]);
    expect(await stateOf(id)).toBe('unknown');
    const [row] = await db.query(
      `SELECT result_class, evidence FROM submission_attempt WHERE payment_id = $1 AND no = 2`,
      [id],
    );
    expect(row).toEqual({ result_class: 'not_sent', evidence: 'ambiguous' });
  });
});

const overdueIds = async (limit = 100, outstanding = 200): Promise<readonly string[]> =>
  (await takeOverdue(db.database, limit, outstanding)).map((row) => row.payment_id);
/** Nobody woke anything lately. */
const rest = (): Promise<unknown> => db.query(`UPDATE payment SET last_woken_at = NULL`);

describe('waking what is overdue', () => {
  it('takes a scheduled payment due for more than 2 s that nobody holds, once in 15 s', async () => {
    const [due, fresh] = [await scheduled(), await scheduled()];
    await past(due, { due: 3 });
    await past(fresh, { due: 1 });
    expect(await overdueIds()).toEqual([due]);
    expect(await overdueIds()).toEqual([]);
    await db.query(`UPDATE payment SET last_woken_at = clock_timestamp() - interval '16 s' WHERE id = $1`, [
      due,
    ]);
    expect(await overdueIds()).toEqual([due]);
  });

  it('leaves alone what waits for its lane: wake_after ahead, or held in a living worker’s memory', async () => {
    const ids = await Promise.all(Array.from({ length: 4 }, () => scheduled()));
    for (const id of ids) await past(id, { due: 30 });
    const [planned, armed, wasPlanned, wasArmed] = ids as [string, string, string, string];
    await db.query(`UPDATE payment SET wake_after = clock_timestamp() + interval '5 s' WHERE id = $1`, [
      planned,
    ]);
    await db.query(`UPDATE payment SET armed_by = $2 WHERE id = $1`, [armed, await seedWorker(db.database)]);
    await db.query(`UPDATE payment SET wake_after = clock_timestamp() WHERE id = $1`, [wasPlanned]);
    await db.query(`UPDATE payment SET armed_by = $2 WHERE id = $1`, [
      wasArmed,
      await seedWorker(db.database, 0),
    ]);
    expect(new Set(await overdueIds())).toEqual(new Set([wasPlanned, wasArmed]));
  });

  it('never takes what is held, in review, final, or on a paused lane', async () => {
    const other = await seedLane(db.database, { paused: true });
    for (const state of ['held', 'needs_review', 'succeeded', 'failed', 'cancelled', 'expired'] as const) {
      await past(await make(state), { due: 600 });
    }
    await past(await scheduled({ lane: other }), { due: 600 });
    expect(await overdueIds()).toEqual([]);
  });

  it('takes a started payment whose attempt nobody claimed for 2 s, or that waits 30 s past its time', async () => {
    const taken = [await unclaimed(3), await waiting(31)];
    await unclaimed(1);
    await waiting(29);
    const claimed = await unclaimed(10);
    await claimAttempt(db.database, claimed, await seedWorker(db.database));
    expect(new Set(await overdueIds())).toEqual(new Set(taken));
  });

  it('takes 100 at a time, soonest due first, and has at most 200 outstanding', async () => {
    const ids = await Promise.all(Array.from({ length: 230 }, () => scheduled()));
    await db.query(
      `UPDATE payment p SET execute_at = clock_timestamp() - (1000 - x.n) * interval '1 second'
         FROM unnest($1::text[]) WITH ORDINALITY AS x (id, n) WHERE p.id = x.id`,
      [ids],
    );
    expect(new Set(await overdueIds())).toEqual(new Set(ids.slice(0, 100)));
    expect(new Set(await overdueIds())).toEqual(new Set(ids.slice(100, 200)));
    expect(await overdueIds()).toEqual([]);
    // One that moved on makes room for one.
    await bringTo('succeeded', db.database, ids[5] as string);
    expect(await overdueIds()).toEqual([ids[200]]);
  });

  it('is not blocked by payments that wait for a paused lane', async () => {
    const closed = await seedLane(db.database);
    const stuck = await Promise.all(Array.from({ length: 5 }, () => waiting(60, { lane: closed })));
    for (const id of stuck) await past(id, { due: 600 });
    await pauseLane(closed);
    const due = await scheduled();
    await past(due, { due: 10 });
    expect(await overdueIds(5, 5)).toEqual([due]);
    await rest();
    // Past their deadline there is something to do for them: they fail.
    await past(stuck[0] as string, { due: 600, deadline: 1 });
    expect(new Set(await overdueIds(5, 5))).toEqual(new Set([stuck[0], due]));
  });
});

describe('waking what waits for a lane that was closed', () => {
  const setLane = (of: string, text: string) => db.query(`UPDATE lane SET ${text} WHERE lane = $1`, [of]);

  it('wakes a few as long as the lane wants a probe, and the others once it is open', async () => {
    const closed = await seedLane(db.database);
    const ids = await Promise.all(Array.from({ length: 4 }, () => scheduled({ lane: closed })));
    const retried = await waiting(60, { lane: closed });
    for (const [i, id] of [...ids, retried].entries()) await past(id, { due: 600 - i });
    await setLane(
      closed,
      `breaker = 'open', breaker_reason = 'failures_in_a_row', opened_at = clock_timestamp(), probe_at = clock_timestamp() + interval '1 minute'`,
    );
    expect(await overdueIds()).toEqual([]);
    await setLane(closed, `probe_at = clock_timestamp()`);
    expect(new Set(await overdueIds())).toEqual(new Set([ids[0], ids[1], retried]));
    await setLane(closed, `breaker = 'closed', breaker_reason = NULL, opened_at = NULL, probe_at = NULL`);
    expect(new Set(await overdueIds())).toEqual(new Set([ids[2], ids[3]]));
  });

  it('wakes nobody while its probe is under way', async () => {
    const closed = await seedLane(db.database);
    const probe = await unclaimed(1, { lane: closed });
    const other = await scheduled({ lane: closed });
    await past(other, { due: 600 });
    await setLane(
      closed,
      `breaker = 'half_open', breaker_reason = 'failures_in_a_row', opened_at = clock_timestamp(), probe_at = clock_timestamp(), probe_payment_id = '${probe}', probe_generation = 1,
       probe_no = 1, probe_until = clock_timestamp() + interval '90 seconds'`,
    );
    expect(await overdueIds()).toEqual([]);
    await setLane(closed, `probe_until = clock_timestamp()`);
    expect(await overdueIds()).toEqual([other]);
  });
});

describe('results that died with their worker', () => {
  it('are looked for once, of final payments of a lease that just ended', async () => {
    const dead = await seedWorker(db.database);
    const alive = await seedWorker(db.database);
    const [orphaned, open, other] = [await unclaimed(), await unclaimed(), await unclaimed()];
    for (const [id, owner] of [[orphaned, dead], [open, dead], [other, alive]] as const) {
      await claimAttempt(db.database, id, owner);
    } // prettier-ignore
    for (const id of [orphaned, other]) {
      await closeAttempt(db.database, id, 'accepted');
      await step(db.database, id, { rule: 'T9' });
    }
    expect(await takeOrphanedResults(db.database)).toEqual([]);
    await db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() - interval '1 s' WHERE id = $1`, [
      dead,
    ]);
    expect(await takeOrphanedResults(db.database)).toEqual([orphaned]);
    expect(await takeOrphanedResults(db.database)).toEqual([]);
  });

  it('leaves a payment that somebody holds for the next sweep, and waits for nobody', async () => {
    const dead = await seedWorker(db.database);
    const ids = [await unclaimed(), await unclaimed()].toSorted();
    for (const id of ids) {
      await claimAttempt(db.database, id, dead);
      await closeAttempt(db.database, id, 'accepted');
      await step(db.database, id, { rule: 'T9' });
    }
    await db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() - interval '1 s'`);
    const [held, free] = ids;
    await db.database.transaction(async (tx) => {
      await tx.query({ name: 'lock', text: 'SELECT 1 FROM payment WHERE id = $1 FOR UPDATE' }, [held]);
      expect(await takeOrphanedResults(db.database)).toEqual([free]);
    });
    expect(await takeOrphanedResults(db.database)).toEqual([held]);
  });
});

describe('tidying', () => {
  it('removes slots of past seconds and workers long gone, and keeps the others', async () => {
    await db.query(
      `INSERT INTO due_slot (due_second, lane, taken)
       SELECT extract(epoch FROM clock_timestamp())::bigint + s, 'lane', 1 FROM unnest(ARRAY[-3600, -70, -50, 0, 60]) s`,
    );
    const [gone, owning] = [await seedWorker(db.database, -3_700), await seedWorker(db.database, -3_700)];
    const ended = await seedWorker(db.database, -60);
    const id = await unclaimed();
    await claimAttempt(db.database, id, owning);
    await tidy(db.database);
    const [slots] = await db.query<{ count: number }>(`SELECT count(*)::integer AS count FROM due_slot`);
    expect(slots?.count).toBe(3);
    const workers = (await db.query<{ id: string }>(`SELECT id FROM worker`)).map((row) => row.id);
    expect(workers).toContain(owning);
    expect(workers).toContain(ended);
    expect(workers).not.toContain(gone);
  });
});
