import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PAYMENT_STATES } from '../../src/domain/payment-state.js';
import { checkInvariant } from '../../src/invariants/check-invariants.js';
import { INVARIANTS } from '../../src/invariants/invariants.js';
import type { Database } from '../../src/persistence/database.js';
import { seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createWorld, PLANTS, type World } from '../support/invariant-plants.js';
import { findBreaches } from '../support/invariants.js';
import {
  addEvidence,
  openAttempt,
  openGeneration,
  paymentIn,
  seedWorker,
} from '../support/payment-states.js';

let db: TestDatabase;
let reader: Database;
let world: World;
beforeEach(async () => {
  db = await createTestDatabase();
  reader = db.as('payments_read');
  world = await createWorld(db);
});
afterEach(() => db.drop());

/** What the product's checks report, as `number:payment`. */
async function reported(since: string | null = null): Promise<readonly string[]> {
  const found: string[] = [];
  for (const invariant of INVARIANTS) {
    const result = await checkInvariant(reader, invariant, { since, limitMs: 5_000 });
    if (result.kind === 'unchecked') throw new Error(`invariant ${invariant.id}`, { cause: result.cause });
    expect(result.ids).toHaveLength(result.count);
    for (const id of result.ids) found.push(`${result.id}:${id}`);
  }
  return found.sort();
}

/** What the judge of the tests reports, in the same form. */
async function judged(): Promise<readonly string[]> {
  const breaches = await findBreaches((text) => db.query(text));
  return [...new Set(breaches.map((b) => `${b.invariant}:${b.paymentId}`))].sort();
}

describe('the invariants', () => {
  it('hold for one lawful payment in each state, in the product and for the judge', async () => {
    for (const state of PAYMENT_STATES) await world.make(state);
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });

  it.each(PLANTS)('$breaks reports $what', async ({ breaks, by }) => {
    await world.make('succeeded');
    const ids = await by(world);
    const found = await reported();
    for (const id of ids) expect(found).toContain(`${breaks}:${id}`);
    expect(found).toEqual(await judged());
    expect(new Set(found.map((f) => f.split(':')[1]))).toEqual(new Set(ids));
  });

  it('are each broken by some plant above', () => {
    expect([...new Set(PLANTS.map((p) => p.breaks))]).toEqual(INVARIANTS.map((i) => i.id));
    expect(INVARIANTS.map((i) => i.id)).toEqual(Array.from({ length: 19 }, (_, i) => i + 1));
  });

  it('find the same when they look only at what changed, and nothing when it did not', async () => {
    const id = await world.make('cancelled');
    await openGeneration(db.database, id);
    await openAttempt(db.database, id);
    const [hour] = await db.query<{ at: string }>(`SELECT clock_timestamp() - interval '1 hour' AS at`);
    const [now] = await db.query<{ at: string }>(`SELECT clock_timestamp() AS at`);
    expect(await reported(hour?.at)).toEqual([`2:${id}`]);
    expect(await reported(now?.at)).toEqual([]);
  });

  it('let a payment wait in a paused lane, for its turn, held, and in a recovery hold', async () => {
    const late = `execute_at = clock_timestamp() - interval '10 minutes'`;
    const [held, turn, due] = [
      await world.make('held'),
      await world.make('scheduled'),
      await world.make('scheduled'),
    ];
    await world.plant(`UPDATE payment SET ${late} WHERE id = $1`, [held]);
    await world.plant(
      `UPDATE payment SET ${late}, wake_after = clock_timestamp() - interval '1 minute' WHERE id = $1`,
      [turn],
    );
    expect(await reported()).toEqual([]);
    await world.plant(`UPDATE payment SET ${late} WHERE id = $1`, [due]);
    expect(await reported()).toEqual([`11:${due}`]);
    await db.query(`INSERT INTO setting (name, value) VALUES ('recovery_hold', 'on')`);
    expect(await reported()).toEqual([]);
    await db.query(`UPDATE setting SET value = 'off'`);
    await db.query('UPDATE lane SET paused = true');
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });

  it('let the start of a payment wait that is due tomorrow', async () => {
    const id = await world.make('scheduled');
    await world.plant(
      `UPDATE outbox SET created_at = clock_timestamp() - interval '1 day',
          due_at = clock_timestamp() + interval '1 day' WHERE payment_id = $1`,
      [id],
    );
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });

  it('let a failure stand that has a proof, and references repeat where tenants allow it', async () => {
    const id = await world.make('failed');
    const other = await seedTenant(db.database);
    for (let i = 0; i < 2; i++) {
      await paymentIn('succeeded', db.database, { tenant: other, lane: world.lane, reference: 'rent' });
    }
    await world.plant(`UPDATE submission_attempt SET evidence = 'ambiguous' WHERE payment_id = $1`, [id]);
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });

  it('do not take lookups that find nothing for a proof, however many (UO-02)', async () => {
    const id = await world.make('unknown');
    for (let i = 0; i < 5; i++) await addEvidence(db.database, id, { source: 'lookup', kind: 'absent' });
    await world.plant(`UPDATE payment SET state = 'failed' WHERE id = $1`, [id]);
    expect(await reported()).toContain(`7:${id}`);
    expect(await judged()).toContain(`7:${id}`);
  });

  it('let a living worker work on its attempt', async () => {
    const id = await world.make('submitting');
    const worker = await seedWorker(db.database);
    await world.plant(
      `UPDATE submission_attempt SET owner = $2, call_started_at = clock_timestamp() - interval '50 s'
        WHERE payment_id = $1`,
      [id, worker],
    );
    await world.plant(`UPDATE payment SET execute_at = clock_timestamp() - interval '60 s' WHERE id = $1`, [
      id,
    ]);
    await world.plant(`UPDATE payment SET submission_started_at = execute_at WHERE id = $1`, [id]);
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });
});

describe('a check of an invariant', () => {
  it('names at most 100 payments and counts all', async () => {
    const many = {
      id: 99,
      title: 'x',
      scoped: false,
      text: () => `SELECT 'pay_' || n AS id FROM generate_series(1, 250) n`,
    };
    const result = await checkInvariant(reader, many, { since: null, limitMs: 1_000 });
    expect(result).toMatchObject({ kind: 'checked', count: 250 });
    expect(result.kind === 'checked' && result.ids).toHaveLength(100);
  });

  it('is unchecked, never clean, when its query takes too long or fails', async () => {
    const slow = { id: 98, title: 'x', scoped: false, text: () => `SELECT pg_sleep(30)::text AS id` };
    expect(await checkInvariant(reader, slow, { since: null, limitMs: 20 })).toMatchObject({
      kind: 'unchecked',
      code: 'timeout',
    });
    const wrong = { id: 97, title: 'x', scoped: false, text: () => `SELECT id FROM nowhere` };
    expect(await checkInvariant(reader, wrong, { since: null, limitMs: 1_000 })).toMatchObject({
      kind: 'unchecked',
      code: 'failed',
    });
  });

  it('cannot write', async () => {
    const writing = {
      id: 96,
      title: 'x',
      scoped: false,
      text: () => `SELECT nextval('outbox_id_seq')::text AS id`,
    };
    expect(await checkInvariant(reader, writing, { since: null, limitMs: 1_000 })).toMatchObject({
      kind: 'unchecked',
    });
  });
});
