import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PaymentRows, readPostgresFacts } from '../../bench/judge/payment-rows.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createWorld, type World } from '../support/invariant-plants.js';

/** The bench must not call a run right whose rows are wrong. */

let db: TestDatabase;
let world: World;
let rows: PaymentRows;
beforeEach(async () => {
  db = await createTestDatabase();
  world = await createWorld(db);
  rows = new PaymentRows(db.url);
});
afterEach(async () => {
  await rows.close();
  await db.drop();
});

describe("the bench's look at payments", () => {
  it('finds whole histories right, and counts what is final', async () => {
    const ids = [await world.make('succeeded'), await world.make('succeeded')];
    await world.make('scheduled');
    expect(await rows.brokenHistories(ids, 'succeeded')).toEqual([]);
    expect(await rows.brokenInvariants()).toEqual([]);
    expect(await rows.finalCount()).toBe(2);
    expect(await rows.everIn('succeeded', ids)).toBe(2);
    const [last] = await db.query<{ at: number }>(
      'SELECT extract(epoch FROM max(at))::float8 * 1000 AS at FROM payment_transition',
    );
    expect((await rows.lastFinalAt(ids)) ?? NaN).toBeLessThan((last?.at ?? NaN) + 1);
  });

  it('finds no last final transition while nothing is final', async () => {
    expect(await rows.lastFinalAt([await world.make('scheduled')])).toBeNull();
  });

  it('names a payment that ended elsewhere, one without a row, and one that was only expected to wait', async () => {
    const failed = await world.make('failed');
    expect(await rows.brokenHistories([failed, 'pay_unheard'], 'succeeded')).toEqual([
      '1 payments ended as failed',
      '1 payments have no row',
    ]);
    expect(await rows.brokenHistories([await world.make('scheduled')], 'scheduled')).toEqual([]);
  });

  it.each([
    ['a missing transition', 'DELETE FROM payment_transition WHERE payment_id = $1 AND seq = 2'],
    [
      'a missing last transition',
      `DELETE FROM payment_transition WHERE payment_id = $1 AND to_state = 'succeeded'`,
    ],
    ['a version that is ahead', 'UPDATE payment SET version = version + 1 WHERE id = $1'],
  ])('names %s', async (_what, text) => {
    const id = await world.make('succeeded');
    await world.plant(text, [id]);
    expect((await rows.brokenHistories([id], 'succeeded')).join()).toContain('1 payments miss a transition');
    expect(await rows.brokenInvariants()).not.toEqual([]);
  });

  it('names a payment whose submission started twice', async () => {
    const id = await world.make('succeeded');
    await world.plant(
      `UPDATE payment_transition SET from_state = 'scheduled', to_state = 'submitting' WHERE payment_id = $1`,
      [id],
    );
    expect((await rows.brokenHistories([id], 'succeeded')).join()).toMatch(/started submission \d times/);
  });

  it('refuses to measure on a database whose commits are not durable', async () => {
    // The databases of this tier run with fsync off.
    await expect(readPostgresFacts(db.url)).rejects.toThrow('fsync of Postgres is off');
  });
});
