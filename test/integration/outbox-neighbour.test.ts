import { afterEach, beforeEach, expect, it } from 'vitest';
import { OutboxRelay } from '../../src/outbox/outbox-relay.js';
import { Database } from '../../src/persistence/database.js';
import { databaseTime, insertScheduled, seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { FakeStarter } from '../support/fake-starter.js';
import { RecordedEvents } from '../support/recorded-events.js';

let db: TestDatabase;
let database: Database;
let starter: FakeStarter;
let relay: OutboxRelay;
let pay: (inSeconds: number) => Promise<string>;
beforeEach(async () => {
  db = await createTestDatabase();
  database = new Database({
    url: db.urlOf('payments_relay'),
    poolSize: 3,
    applicationName: 'neighbour-test',
  });
  starter = new FakeStarter();
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  pay = async (inSeconds) =>
    (
      await insertScheduled(db.database, {
        tenant,
        lane,
        executeAt: await databaseTime(db.database, inSeconds),
      })
    ).id;
  relay = new OutboxRelay(database, starter, new RecordedEvents().sink, { hasNeighbour: true });
});
afterEach(async () => {
  await relay.stop();
  await database.close();
  await db.drop();
});

it('a relay with a neighbour takes what is due soon and leaves it the rest', async () => {
  const later = await pay(3_600);
  const soon = await pay(30);
  relay.start();
  await expect.poll(() => starter.of('start')).toEqual([soon]);
  // Several looks later the other one is still the neighbour's.
  const another = await pay(20);
  await expect.poll(() => starter.of('start')).toEqual([soon, another]);
  expect(starter.of('start')).not.toContain(later);
});

it.each([
  ['31 seconds', 800],
  ['11 minutes', 86_400],
])(
  'a relay with a neighbour takes everything once a start has waited for %s that is due in %i s: the neighbour is gone',
  async (age, inSeconds) => {
    const ids = [await pay(inSeconds), await pay(90_000)];
    await db.query(`UPDATE outbox SET created_at = clock_timestamp() - $1::interval`, [age]);
    relay.start();
    await expect.poll(() => starter.of('start')).toEqual(ids);
  },
);

it('a relay with a neighbour leaves it what is far off and has waited for less', async () => {
  const later = await pay(3_600);
  await db.query(`UPDATE outbox SET created_at = clock_timestamp() - interval '9 minutes'`);
  const soon = await pay(30);
  relay.start();
  await expect.poll(() => starter.of('start')).toEqual([soon]);
  expect(starter.of('start')).not.toContain(later);
});
