import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OutboxRelay } from '../../src/outbox/outbox-relay.js';
import { takeOutbox } from '../../src/outbox/outbox.store.js';
import { OrchestratorUnavailable } from '../../src/outbox/workflow-starter.js';
import { move } from '../../src/payments/gate.js';
import { StorageUnavailable } from '../../src/persistence/database-errors.js';
import {
  databaseTime,
  insertScheduled,
  seedLane,
  seedTenant,
  type LaneSeed,
  type PaymentSeed,
} from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { FakeStarter, type StarterCall } from '../support/fake-starter.js';
import { RecordedEvents } from '../support/recorded-events.js';
import { Latch, TappedDatabase } from '../support/tapped-database.js';
import { until } from '../support/until.js';

interface RelayRig {
  readonly relay: OutboxRelay;
  readonly database: TappedDatabase;
  readonly starter: FakeStarter;
  readonly events: RecordedEvents;
}

let db: TestDatabase;
let tenant: string;
let lane: string;
let relays: RelayRig[];
beforeEach(async () => {
  db = await createTestDatabase();
  tenant = await seedTenant(db.database);
  lane = await seedLane(db.database);
  relays = [];
});
afterEach(async () => {
  await Promise.all(relays.map(({ relay }) => relay.stop()));
  for (const { database } of relays) await database.close();
  await db.drop();
});

function addRelay(prepare: (rig: RelayRig) => void = () => undefined): RelayRig {
  const database = new TappedDatabase({
    url: db.urlOf('payments_relay'),
    poolSize: 4,
    applicationName: `relay-${relays.length}`,
  });
  const starter = new FakeStarter();
  const events = new RecordedEvents();
  const rig = { relay: new OutboxRelay(database, starter, events.sink), database, starter, events };
  relays.push(rig);
  prepare(rig);
  rig.relay.start();
  return rig;
}

const pay = async (inSeconds = 3_600, more: Partial<PaymentSeed> = {}) =>
  insertScheduled(db.database, {
    tenant,
    lane,
    executeAt: await databaseTime(db.database, inSeconds),
    ...more,
  });
const payMany = async (count: number, inSeconds = 3_600, more: Partial<PaymentSeed> = {}) => {
  const executeAt = await databaseTime(db.database, inSeconds);
  return Promise.all(Array.from({ length: count }, () => pay(inSeconds, { executeAt, ...more })));
};
const command = (id: string, rule: 'T3' | 'T5', announce: 'wake' | 'cancel') =>
  move(db.database, {
    rule,
    ...(rule === 'T3' ? { cause: 'hold' } : {}),
    tenant,
    paymentId: id,
    actor: 'api_key:test',
    announce,
  });
const rowsLeft = async (): Promise<number> =>
  (await db.query<{ count: number }>(`SELECT count(*)::integer AS count FROM outbox`))[0]?.count ?? NaN;
const untilEmpty = (): Promise<number> => until('the empty outbox', rowsLeft, (count) => count === 0);
const away = (): Promise<never> => Promise.reject(new OrchestratorUnavailable('away'));
const ids = (payments: readonly { id: string }[]): Set<string> => new Set(payments.map((p) => p.id));

describe('the relay', () => {
  it('starts the workflow of a created payment with its times, and forgets the row', async () => {
    const payment = await pay(600);
    const { starter, events } = addRelay();
    await untilEmpty();
    expect(starter.calls).toHaveLength(1);
    const { kind, target } = starter.calls[0] as StarterCall;
    expect(kind).toBe('start');
    expect(target).toMatchObject({
      paymentId: payment.id,
      lane,
      provider: 'simulated',
      tenantPseudonym: `p-${tenant}`,
      version: 1,
    });
    expect(target?.dueInMs).toBeGreaterThan(500_000);
    expect(target?.dueInMs).toBeLessThanOrEqual(600_000);
    expect((target?.dueInMs ?? 0) - (target?.armInMs ?? 0)).toBe(3_000);
    expect(events.of('published').map((e) => e.args)).toContainEqual(['start', 1]);
  });

  it('starts nothing for a payment that was cancelled before its start, and sends the cancel', async () => {
    const payment = await pay();
    await command(payment.id, 'T5', 'cancel');
    const { starter } = addRelay();
    await untilEmpty();
    expect(starter.of('start')).toEqual([]);
    expect(starter.of('cancel')).toEqual([payment.id]);
  });

  it('gives a wake the new times only while the payment is scheduled', async () => {
    const [open, held] = [await pay(), await pay()];
    await db.query(`DELETE FROM outbox`);
    await db.query(`INSERT INTO outbox (kind, payment_id, due_at) SELECT 'wake', $1, clock_timestamp()`, [
      open.id,
    ]);
    await command(held.id, 'T3', 'wake');
    const { starter } = addRelay();
    await untilEmpty();
    const news = new Map(starter.calls.map((call) => [call.paymentId, call.news]));
    expect(news).toEqual(new Map([[open.id, 'times'], [held.id, 'look']])); // prettier-ignore
    expect(starter.calls.find((call) => call.paymentId === held.id)?.target?.version).toBe(2);
  });

  it('publishes what is due soonest first', async () => {
    const payments = [];
    for (const inSeconds of [3_000, 1_000, 4_000, 2_000]) payments.push(await pay(inSeconds));
    const rows = await takeOutbox(db.database, 'start', 10);
    const [p3, p1, p4, p2] = payments.map((p) => p.id);
    expect(rows.map((row) => row.payment_id)).toEqual([p1, p2, p3, p4]);
  });

  it('finds rows that nobody told it of', async () => {
    const { starter } = addRelay();
    await until('its first look', () => relays[0]?.database.asked.get('outbox-pending') ?? 0, (n) => n > 0); // prettier-ignore
    const payment = await pay();
    await untilEmpty();
    expect(starter.of('start')).toEqual([payment.id]);
  });
});

describe('at least once', () => {
  it('a start that failed although it may have happened is published again', async () => {
    const payment = await pay();
    const { starter, events } = addRelay(({ starter: fake }) => {
      let calls = 0;
      fake.before = (): Promise<void> => (calls++ === 0 ? away() : Promise.resolve());
    });
    await untilEmpty();
    expect(starter.of('start')).toEqual([payment.id]);
    expect(events.of('fault').map((e) => e.args[0])).toEqual(['outbox-start']);
  });

  it('rows that a relay took before it died come back when their time is over', async () => {
    const payments = await payMany(5);
    expect(await takeOutbox(db.database, 'start', 10)).toHaveLength(5);
    const rig = addRelay();
    await until('three looks', () => rig.database.asked.get('outbox-pending') ?? 0, (n) => n >= 3); // prettier-ignore
    expect(rig.starter.calls).toEqual([]);
    const [taken] = await db.query<{ ms: number }>(
      `SELECT (extract(epoch FROM max(taken_until) - clock_timestamp()) * 1000)::double precision AS ms FROM outbox`,
    );
    expect(taken?.ms).toBeLessThanOrEqual(15_000);
    await db.query(`UPDATE outbox SET taken_until = clock_timestamp() - interval '1 ms'`);
    await untilEmpty();
    expect(new Set(rig.starter.of('start'))).toEqual(ids(payments));
  });

  it('a row whose deletion failed is published again, and not lost', async () => {
    const payment = await pay();
    const rig = addRelay(({ database }) => {
      const undo = database.tap('outbox-delete', () => {
        undo();
        return Promise.reject(new StorageUnavailable('away'));
      });
    });
    await until('the first publication', () => rig.starter.calls.length, (n) => n === 1); // prettier-ignore
    await until('the fault', () => rig.events.count('fault'), (n) => n === 1); // prettier-ignore
    await db.query(`UPDATE outbox SET taken_until = clock_timestamp()`);
    await untilEmpty();
    expect(rig.starter.of('start')).toEqual([payment.id, payment.id]);
  });

  it('the first fault ends a batch: an orchestrator that is away is not asked a hundred times', async () => {
    const payments = await payMany(100);
    let asked = 0;
    const rig = addRelay(({ starter }) => {
      starter.before = () => {
        asked++;
        return away();
      };
    });
    await until('the fault', () => rig.events.count('fault'), (n) => n > 0); // prettier-ignore
    expect(asked).toBeLessThanOrEqual(25 * rig.events.count('fault'));
    const [free] = await db.query(`SELECT count(*)::integer AS count FROM outbox WHERE taken_until IS NULL`);
    expect(free).toEqual({ count: 100 });
    rig.starter.before = () => Promise.resolve();
    await untilEmpty();
    expect(rig.starter.of('start')).toHaveLength(100);
    expect(new Set(rig.starter.of('start'))).toEqual(ids(payments));
  });

  it('what was published before the fault of a batch is not published again', async () => {
    await payMany(60);
    let calls = 0;
    const rig = addRelay(({ starter }) => {
      starter.before = () => (calls++ === 30 ? away() : Promise.resolve());
    });
    await untilEmpty();
    expect(rig.starter.of('start')).toHaveLength(60);
    expect(new Set(rig.starter.of('start')).size).toBe(60);
  });

  it('goes on after Postgres was away', async () => {
    const payment = await pay();
    const rig = addRelay(({ database }) => {
      const undo = database.tap('outbox-pending', () => {
        undo();
        return Promise.reject(new StorageUnavailable('away'));
      });
    });
    await untilEmpty();
    expect(rig.starter.of('start')).toEqual([payment.id]);
    expect(rig.events.of('fault').map((e) => e.args[0])).toEqual(['outbox-poll']);
  });
});

describe('kinds of work', () => {
  it('do not wait for one another: cancels and wakes go out while no start does', async () => {
    const [starting, cancelled, held] = [await pay(), await pay(), await pay()];
    await command(cancelled.id, 'T5', 'cancel');
    await command(held.id, 'T3', 'wake');
    const latch = new Latch();
    const { starter, relay } = addRelay(({ starter: fake }) => {
      fake.before = (kind) => (kind === 'start' ? latch.wait() : Promise.resolve());
    });
    await until('the others', () => starter.calls.length, (n) => n === 2); // prettier-ignore
    expect(starter.of('cancel')).toEqual([cancelled.id]);
    expect(starter.of('wake')).toEqual([held.id]);
    latch.open();
    await untilEmpty();
    expect(new Set(starter.of('start'))).toEqual(new Set([starting.id, held.id]));
    await relay.stop();
  });
});

describe('two relays', () => {
  it('publish each of 200 rows once when nothing goes wrong', async () => {
    const payments = await payMany(200);
    const rigs = [addRelay(), addRelay()];
    await untilEmpty();
    await Promise.all(rigs.map(({ relay }) => relay.stop()));
    const published = rigs.flatMap(({ starter }) => starter.of('start'));
    expect(published).toHaveLength(200);
    expect(new Set(published)).toEqual(ids(payments));
  });

  it('of which one is stopped in the middle lose nothing: it finishes what it has under way', async () => {
    const payments = await payMany(150);
    const latch = new Latch();
    const first = addRelay(({ starter }) => (starter.before = () => latch.wait()));
    await until('its batch', () => first.database.asked.get('due-slot-take') ?? 0, (n) => n > 0); // prettier-ignore
    const stopped = first.relay.stop();
    latch.open();
    await stopped;
    const second = addRelay();
    await untilEmpty();
    const published = [...first.starter.of('start'), ...second.starter.of('start')];
    expect(published).toHaveLength(150);
    expect(new Set(published)).toEqual(ids(payments));
  });
});

/** When each start is armed, ms after its due time, in ascending order. */
const offsets = (calls: readonly StarterCall[]): readonly number[] =>
  calls.map(({ target }) => (target?.armInMs ?? NaN) - (target?.dueInMs ?? NaN)).sort((a, b) => a - b);

async function wakeAfterMs(paymentIds: readonly string[]): Promise<readonly (number | null)[]> {
  const rows = await db.query<{ ms: number | null }>(
    `SELECT (extract(epoch FROM wake_after - execute_at) * 1000)::double precision AS ms FROM payment
      WHERE id = ANY ($1) ORDER BY wake_after`,
    [paymentIds],
  );
  return rows.map((row) => row.ms);
}

describe('arming', () => {
  it('of a fast lane’s full second is spread over the time before it, one slot each 20 ms', async () => {
    const payments = await payMany(150);
    const { starter } = addRelay();
    await untilEmpty();
    const expected = payments.map((_, slot) => -3_000 - 20 * (payments.length - 1 - slot));
    for (const [i, offset] of offsets(starter.calls).entries())
      expect(offset).toBeCloseTo(expected[i] ?? NaN, 3);
    expect(new Set(await wakeAfterMs([...ids(payments)]))).toEqual(new Set([null]));
  });

  it('of a slow lane follows the order in which it can send, and the sweep is told to wait as long', async () => {
    const slow: LaneSeed = { rate: 20, burst: 5 };
    const slowLane = await seedLane(db.database, slow);
    const payments = await payMany(40, 3_600, { lane: slowLane });
    const { starter } = addRelay();
    await untilEmpty();
    for (const [slot, offset] of offsets(starter.calls).entries())
      expect(offset).toBeCloseTo(-3_000 + 45 * slot, 3);
    const planned = await wakeAfterMs([...ids(payments)]);
    // The first one is armed like a lone payment and needs no mark.
    expect(planned.filter((ms) => ms === null)).toHaveLength(1);
    for (const [i, ms] of planned.filter((value) => value !== null).entries()) {
      expect(ms).toBeGreaterThan(2_000 + 45 * (i + 1) - 1);
      expect(ms).toBeLessThan(2_000 + 45 * (i + 1) + 20_000);
    }
  });

  it('takes no slot for a payment that is held, nor for a cancel', async () => {
    const held = await pay();
    await db.query(`DELETE FROM outbox`);
    await command(held.id, 'T3', 'wake');
    const cancelled = await pay();
    await db.query(`DELETE FROM outbox WHERE kind = 'start'`);
    await command(cancelled.id, 'T5', 'cancel');
    addRelay();
    await untilEmpty();
    expect(await db.query(`SELECT * FROM due_slot`)).toEqual([]);
  });
});
