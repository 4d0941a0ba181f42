import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OrchestratorUnavailable } from '../../src/outbox/workflow-starter.js';
import { Sweep } from '../../src/submission/sweep.js';
import { ADVISORY_LOCKS } from '../../src/persistence/advisory-locks.js';
import { insertScheduled, seedLane, seedTenant, type PaymentSeed } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { FakeStarter } from '../support/fake-starter.js';
import { findBreaches } from '../support/invariants.js';
import { plantPast } from '../support/past.js';
import {
  claimAttempt,
  openAttempt,
  openGeneration,
  paymentIn,
  seedWorker,
  step,
} from '../support/payment-states.js';
import { RecordedEvents } from '../support/recorded-events.js';
import { Latch, TappedDatabase } from '../support/tapped-database.js';
import { until } from '../support/until.js';

/** Ten times a second instead of once. */
const TICK_MS = 100;

interface SweepRig {
  readonly sweep: Sweep;
  readonly database: TappedDatabase;
  readonly starter: FakeStarter;
  readonly events: RecordedEvents;
}

let db: TestDatabase;
let tenant: string;
let lane: string;
let sweeps: SweepRig[];
beforeEach(async () => {
  db = await createTestDatabase();
  tenant = await seedTenant(db.database);
  lane = await seedLane(db.database);
  sweeps = [];
});
afterEach(async () => {
  await Promise.all(sweeps.map(({ sweep }) => sweep.stop()));
  for (const { database } of sweeps) await database.close();
  await db.drop();
});

/** A sweep with a starter of its own; started unless the test wants to prepare it first. */
function addSweep(prepare: (rig: SweepRig) => void = () => undefined): SweepRig {
  const database = new TappedDatabase({
    url: db.urlOf('payments_worker'),
    poolSize: 3,
    applicationName: `sweep-${sweeps.length}`,
  });
  const starter = new FakeStarter();
  const events = new RecordedEvents();
  const rig = { sweep: new Sweep(database, starter, events.sink, TICK_MS), database, starter, events };
  sweeps.push(rig);
  prepare(rig);
  rig.sweep.start();
  return rig;
}

const scheduled = async (more: Partial<PaymentSeed> = {}) =>
  (await insertScheduled(db.database, { tenant, lane, ...more })).id;

async function overdue(): Promise<string> {
  const id = await scheduled();
  await plantPast(db, id, { due: 10 });
  return id;
}

async function expired(): Promise<string> {
  const id = await scheduled();
  await plantPast(db, id, { due: 60, deadline: 1 });
  return id;
}

async function started(): Promise<string> {
  const id = await scheduled();
  await step(db.database, id, { rule: 'T7', set: ', submission_started_at = clock_timestamp()' });
  await openGeneration(db.database, id);
  await openAttempt(db.database, id);
  return id;
}

async function stateOf(id: string): Promise<string | undefined> {
  return (await db.query<{ state: string }>(`SELECT state FROM payment WHERE id = $1`, [id]))[0]?.state;
}

/** Each tick asks for the lock twice: to expire, and for everything else. */
const ticks = ({ database }: SweepRig): number => Math.ceil((database.asked.get('sweep-lock') ?? 0) / 2);
const untilTicks = (rig: SweepRig, count: number): Promise<number> =>
  until(`tick ${count}`, () => ticks(rig), (n) => n >= count); // prettier-ignore

describe('the sweep', () => {
  it('wakes what is overdue with a bare wake, and restarts what completed although it is open', async () => {
    const [lost, completed] = [await overdue(), await overdue()];
    const rig = addSweep(({ starter }) => starter.completed.add(completed));
    await until('the restart', () => rig.starter.of('restart'), (ids) => ids.length > 0); // prettier-ignore
    expect(rig.starter.of('restart')).toEqual([completed]);
    expect(new Set(rig.starter.of('wake'))).toEqual(new Set([lost, completed]));
    for (const call of rig.starter.calls) if (call.kind === 'wake') expect(call.news).toBe('look');
    expect(rig.events.of('restarted').map((e) => e.args[0])).toEqual([1]);
    expect(rig.events.of('woken').map((e) => e.args[0])).toEqual([2]);
  });

  it('does not restart a run that completed because its payment became final meanwhile', async () => {
    const id = await overdue();
    const rig = addSweep(({ starter }) => {
      starter.completed.add(id);
      starter.before = async (kind) => {
        if (kind === 'wake') await step(db.database, id, { rule: 'T5' });
      };
    });
    await untilTicks(rig, 2);
    expect(rig.starter.of('wake')).toEqual([id]);
    expect(rig.starter.of('restart')).toEqual([]);
  });

  it('closes a dead worker’s attempt, whose inquiry is due from then on (CR-01)', async () => {
    const id = await started();
    await claimAttempt(db.database, id, await seedWorker(db.database, 0));
    const rig = addSweep();
    await until('the close', () => stateOf(id), (state) => state === 'unknown'); // prettier-ignore
    expect(
      await db.query(`SELECT next_action_at <= clock_timestamp() AS due FROM payment WHERE id = $1`, [id]),
    ).toEqual([{ due: true }]);
    await untilTicks(rig, 2);
    expect(rig.events.of('moved').map((e) => e.args[0])).toContainEqual({
      from: 'submitting',
      to: 'unknown',
      cause: 'record-outcome',
      count: 1,
    });
  });

  it('fails what was started, never claimed and is past not_after: nothing was sent (T12)', async () => {
    const id = await started();
    await plantPast(db, id, { due: 60, deadline: 1 });
    addSweep();
    await until('the end', () => stateOf(id), (state) => state === 'failed'); // prettier-ignore
    const attempts = await db.query(`SELECT owner, evidence, code FROM submission_attempt`);
    expect(attempts).toEqual([{ owner: null, evidence: 'not_sent', code: 'unclaimed' }]);
    expect(await findBreaches((text) => db.query(text), { except: [1] })).toEqual([]);
  });

  it('expires although the orchestrator is away, and says so', async () => {
    const lost = await overdue();
    const rig = addSweep(({ starter }) => {
      starter.before = () => Promise.reject(new OrchestratorUnavailable('away'));
    });
    await until('the fault', () => rig.events.count('fault'), (n) => n > 0); // prettier-ignore
    const id = await expired();
    await until('the expiry', () => stateOf(id), (state) => state === 'expired'); // prettier-ignore
    expect(await stateOf(lost)).toBe('scheduled');
    const [row] = await db.query(`SELECT kind FROM outbox WHERE payment_id = $1 AND kind = 'wake'`, [id]);
    expect(row).toEqual({ kind: 'wake' });
  });

  it('expires although another of its steps fails every time', async () => {
    const rig = addSweep(({ database }) =>
      database.tap('sweep-overdue', () => Promise.reject(new Error('this step is broken'))),
    );
    const id = await expired();
    await until('the expiry', () => stateOf(id), (state) => state === 'expired'); // prettier-ignore
    await until('the fault', () => rig.events.count('fault'), (n) => n > 0); // prettier-ignore
  });

  it('stands aside while another one works, and goes on when that one is done', async () => {
    const id = await expired();
    let rig: SweepRig | undefined;
    await db.connect('other').transaction(async (tx) => {
      await tx.query({ name: 'lock', text: `SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.sweep})` });
      rig = addSweep();
      await untilTicks(rig, 2);
      expect(await stateOf(id)).toBe('scheduled');
      expect(rig.database.asked.get('sweep-expire')).toBeUndefined();
    });
    await until('the expiry', () => stateOf(id), (state) => state === 'expired'); // prettier-ignore
    expect(rig?.events.count('fault')).toBe(0);
  });

  it('goes on while keys are retired, anchors are made and a migration runs', async () => {
    const id = await expired();
    await db.connect('other').transaction(async (tx) => {
      for (const [name, number] of Object.entries(ADVISORY_LOCKS)) {
        if (name !== 'sweep') await tx.query({ name, text: `SELECT pg_advisory_xact_lock(${number})` });
      }
      addSweep();
      await until('the expiry', () => stateOf(id), (state) => state === 'expired'); // prettier-ignore
    });
  });

  it('moves and wakes each payment once when three of them run', async () => {
    const late = await Promise.all(Array.from({ length: 40 }, () => scheduled()));
    const lost = await Promise.all(Array.from({ length: 40 }, () => scheduled()));
    await plantPast(db, late, { due: 60, deadline: 1 });
    await plantPast(db, lost, { due: 10 });
    const rigs = [addSweep(), addSweep(), addSweep()];
    await Promise.all(rigs.map((rig) => untilTicks(rig, 2)));
    for (const id of late) expect(await stateOf(id)).toBe('expired');
    const woken = rigs.flatMap(({ starter }) => starter.of('wake'));
    expect(woken.sort()).toEqual([...lost].sort());
    const [moves] = await db.query(`SELECT count(*)::integer AS count FROM payment_transition WHERE seq = 2`);
    expect(moves).toEqual({ count: 40 });
  });

  it('that freezes with the lock is freed by its transaction’s limit, and another one goes on', async () => {
    const id = await expired();
    const latch = new Latch();
    const reached = new Latch();
    const frozen = addSweep(({ database }) => {
      const undo = database.tap('sweep-expire', async (run) => {
        undo();
        reached.open();
        await latch.wait();
        return run();
      });
    });
    await reached.wait();
    const other = addSweep();
    await until('the other one', () => stateOf(id), (state) => state === 'expired'); // prettier-ignore
    await until('its word', () => other.events.count('moved'), (n) => n === 1); // prettier-ignore
    latch.open();
    await until('the thawed one', () => frozen.events.count('fault'), (n) => n > 0); // prettier-ignore
    const [moves] = await db.query(`SELECT count(*)::integer AS count FROM payment_transition WHERE seq = 2`);
    expect(moves).toEqual({ count: 1 });
    // It lives on.
    const next = await expired();
    await other.sweep.stop();
    await until('its next tick', () => stateOf(next), (state) => state === 'expired'); // prettier-ignore
  });

  it('holds no lock while it signals: a slow orchestrator stops nobody', async () => {
    await overdue();
    const latch = new Latch();
    const slow = addSweep(({ starter }) => {
      starter.before = (kind) => (kind === 'wake' ? latch.wait() : Promise.resolve());
    });
    await until('its signal', () => slow.events.count('woken'), (n) => n > 0); // prettier-ignore
    const id = await expired();
    addSweep();
    await until('the other one', () => stateOf(id), (state) => state === 'expired'); // prettier-ignore
    latch.open();
  });
});

describe('an orchestrator that lost its data', () => {
  const outboxOf = async (): Promise<readonly string[]> =>
    (
      await db.query<{ payment_id: string }>(
        `SELECT payment_id FROM outbox WHERE kind = 'start' ORDER BY due_at, payment_id`,
      )
    ).map((row) => row.payment_id);

  it('is known by its namespace’s id: every open payment is published again, soonest due first', async () => {
    const open: string[] = [];
    for (const state of ['held', 'submitting', 'submitted', 'unknown', 'needs_review'] as const) {
      open.push(await paymentIn(state, db.database, { tenant, lane }));
    }
    for (const state of ['succeeded', 'failed', 'cancelled', 'expired', 'returned'] as const) {
      await paymentIn(state, db.database, { tenant, lane });
    }
    const [inAnHour] = await db.query<{ at: string }>(`SELECT clock_timestamp() + interval '1 hour' AS at`);
    open.push(await scheduled({ executeAt: inAnHour?.at ?? '' }));
    await db.query(`DELETE FROM outbox`);

    const rig = addSweep();
    const stored = () => db.query(`SELECT value FROM setting WHERE name = 'temporal_namespace_id'`);
    await until('the first look', stored, ([row]) => row?.['value'] === 'namespace-1'); // prettier-ignore
    await untilTicks(rig, 2);
    expect(await outboxOf()).toEqual([]);
    expect(rig.events.count('restarted')).toBe(0);

    rig.starter.namespace = 'namespace-2';
    await until('the second look', stored, ([row]) => row?.['value'] === 'namespace-2'); // prettier-ignore
    const published = await outboxOf();
    expect(new Set(published)).toEqual(new Set(open));
    expect(published.at(-1)).toBe(open.at(-1));
    expect(rig.events.of('restarted').map((e) => e.args[0])).toEqual([open.length]);
    const before = ticks(rig);
    await untilTicks(rig, before + 2);
    expect(await outboxOf()).toHaveLength(open.length);
  });
});
