import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OutboxRelay } from '../../src/outbox/outbox-relay.js';
import { isPressed } from '../../src/outbox/outbox.store.js';
import { Database } from '../../src/persistence/database.js';
import { databaseTime, insertScheduled, seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { FakeStarter } from '../support/fake-starter.js';
import { RecordedEvents } from '../support/recorded-events.js';
import { until } from '../support/until.js';

let db: TestDatabase;
let database: Database;
let starter: FakeStarter;
let relay: OutboxRelay;
let tenant: string;
let lane: string;
beforeEach(async () => {
  db = await createTestDatabase();
  database = new Database({ url: db.urlOf('payments_relay'), poolSize: 3, applicationName: 'pace-test' });
  starter = new FakeStarter();
  tenant = await seedTenant(db.database);
  lane = await seedLane(db.database);
  relay = new OutboxRelay(database, starter, new RecordedEvents().sink);
});
afterEach(async () => {
  await relay.stop();
  await database.close();
  await db.drop();
});

async function pay(inSeconds: number): Promise<string> {
  const executeAt = await databaseTime(db.database, inSeconds);
  return (await insertScheduled(db.database, { tenant, lane, executeAt })).id;
}

/** Payments due in so many seconds, with their rows in the outbox. */
const payMany = (count: number, inSeconds: number): Promise<readonly string[]> =>
  Promise.all(Array.from({ length: count }, () => pay(inSeconds)));

const olderBy = (age: string): Promise<unknown> =>
  db.query(`UPDATE outbox SET created_at = created_at - $1::interval`, [age]);

/** Many payments that are due about now and whose workflows run already. */
async function manyDue(count = 751, inSeconds = 20): Promise<void> {
  await payMany(count, inSeconds);
  await db.query('DELETE FROM outbox');
}

const started = (ids: readonly string[]): number => {
  const all = new Set(starter.of('start'));
  return ids.filter((id) => all.has(id)).length;
};

describe('while many payments are due', () => {
  it('starts of what is due soon go out at once, and those far off trickle until it is over', async () => {
    await manyDue();
    const far = await payMany(90, 86_400);
    const soon = await payMany(90, 600);
    await olderBy('10 seconds');
    relay.start();
    await until('the soon ones', () => started(soon), (n) => n === soon.length); // prettier-ignore
    expect(started(far)).toBeLessThan(far.length);
    // They go on, a few at a time.
    const before = started(far);
    await until('a few more', () => started(far), (n) => n > before); // prettier-ignore
    expect(started(far) - before).toBeLessThanOrEqual(10);
    await db.query(`UPDATE lane SET paused = true`);
    await until('the rest', () => started(far), (n) => n === far.length); // prettier-ignore
  });

  it.each([
    ['few', 750, 20],
    ['due in more than half a minute', 751, 40],
    ['overdue for more than a minute', 751, -90],
  ])('is not so when they are %s', async (_, count, inSeconds) => {
    await manyDue(count, 3_600);
    await db.query(`UPDATE payment SET execute_at = clock_timestamp() + $1 * interval '1 s'`, [inSeconds]);
    expect(await isPressed(database)).toBe(false);
    await pay(20);
    await db.query(`UPDATE payment SET execute_at = clock_timestamp() + interval '20 s'`);
    expect(await isPressed(database)).toBe(true);
  });
});

describe('while creates come in by the hundreds', () => {
  it('their starts are put off, unless they are due soon', async () => {
    await payMany(101, 86_400);
    const soon = await payMany(10, 890);
    await db.query(`UPDATE outbox SET created_at = clock_timestamp() + interval '1 hour'`);
    relay.start();
    await until('the soon ones', () => started(soon), (n) => n === soon.length); // prettier-ignore
    expect(starter.of('start').length).toBeLessThan(111);
    await olderBy('2 hours');
    await until('all of them', () => starter.of('start').length, (n) => n === 111); // prettier-ignore
  });

  it('is not so for a hundred, nor when they came a second ago', async () => {
    await payMany(100, 86_400);
    await db.query(`UPDATE outbox SET created_at = clock_timestamp()`);
    expect(await isPressed(database)).toBe(false);
    await pay(86_400);
    await db.query(`UPDATE outbox SET created_at = clock_timestamp()`);
    expect(await isPressed(database)).toBe(true);
    await olderBy('1 second');
    expect(await isPressed(database)).toBe(false);
  });
});
