import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { takeSlots } from '../../src/outbox/outbox.store.js';
import type { Database } from '../../src/persistence/database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let relay: Database;
beforeAll(async () => {
  db = await createTestDatabase();
  relay = db.as('payments_relay');
});
afterAll(() => db.drop());
beforeEach(() => db.query(`DELETE FROM due_slot`));

const rows = (count: number, due_second = 1_000n, lane = 'lane') =>
  Array.from({ length: count }, () => ({ due_second, lane }));
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

describe('slots of a due second and lane', () => {
  it('are numbered from 0 in the order asked, and go on where the last batch ended', async () => {
    expect(await takeSlots(relay, rows(3))).toEqual([0, 1, 2]);
    expect(await takeSlots(relay, rows(2))).toEqual([3, 4]);
  });

  it('are counted apart for each second and each lane, also within one batch', async () => {
    const mixed = [...rows(2), ...rows(1, 1_001n), ...rows(1, 1_000n, 'other'), ...rows(1)];
    expect(await takeSlots(relay, mixed)).toEqual([0, 1, 0, 0, 2]);
  });

  it('are given out once each to eight relays that take batches at the same moment', async () => {
    const pool = db.as('payments_relay', 'relays', 8);
    const batches = await Promise.all(
      upTo(24).map((i) => takeSlots(pool, [...rows(10, BigInt(1_000 + (i % 2))), ...rows(5, 1_002n)])),
    );
    const [even, odd] = [0, 1].map((rest) =>
      batches.filter((_, i) => i % 2 === rest).flatMap((b) => b.slice(0, 10)),
    );
    expect([...(even ?? [])].sort((a, b) => a - b)).toEqual(upTo(120));
    expect([...(odd ?? [])].sort((a, b) => a - b)).toEqual(upTo(120));
    expect(batches.flatMap((b) => b.slice(10)).sort((a, b) => a - b)).toEqual(upTo(120));
  });
});
