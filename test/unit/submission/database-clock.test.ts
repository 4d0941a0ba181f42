import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Rows, Sql } from '../../../src/persistence/database.js';
import { DatabaseClock, SKEW_STOP_MS } from '../../../src/submission/database-clock.js';
import { DueTimer } from '../../../src/submission/due-timer.js';
import { usableKeyLifeMs } from '../../../src/submission/submission-engine.js';

const START_MS = 1_700_000_000_000;

let databaseAheadMs: number;
/** How long each way to the database takes, round trip by round trip; the last one repeats. */
let wayMs: number[];
let skews: number[];
beforeEach(() => {
  vi.useFakeTimers({
    now: START_MS,
    toFake: ['setTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  });
  databaseAheadMs = 0;
  wayMs = [0];
  skews = [];
});
afterEach(() => vi.useRealTimers());

const sql: Sql = {
  query: async <R>(): Promise<Rows<R>> => {
    const way = (wayMs.length > 1 ? wayMs.shift() : wayMs[0]) ?? 0;
    await new Promise((next) => setTimeout(next, way));
    const ms = Date.now() + databaseAheadMs;
    await new Promise((next) => setTimeout(next, way));
    return { rows: [{ ms } as R], rowCount: 1 };
  },
};

async function startClock(): Promise<DatabaseClock> {
  const clock = new DatabaseClock(sql, (skew) => skews.push(skew));
  const started = clock.start(3_000);
  await vi.advanceTimersByTimeAsync(1_000);
  await started;
  return clock;
}

describe('the database’s clock as a worker reads it', () => {
  it('is taken from the reading with the shortest way', async () => {
    databaseAheadMs = 200;
    wayMs = [40, 3, 60, 20, 9];
    const clock = await startClock();
    expect(clock.nowMs() - Date.now()).toBeCloseTo(200, -1);
    expect(clock.skewMs()).toBeCloseTo(-200, -1);
    clock.stop();
  });

  it('agrees within a second either way and not beyond, also when a clock is set later', async () => {
    const clock = await startClock();
    expect(clock.agrees()).toBe(true);
    vi.setSystemTime(Date.now() + SKEW_STOP_MS + 1);
    expect(clock.agrees()).toBe(false);
    vi.setSystemTime(Date.now() - 2 * SKEW_STOP_MS - 2);
    expect(clock.agrees()).toBe(false);
    clock.stop();
  });

  it('says due only when both clocks do', async () => {
    databaseAheadMs = 500;
    const clock = await startClock();
    const now = Date.now();
    expect(clock.isDue(now)).toBe(true);
    expect(clock.isDue(now + 400)).toBe(false);
    expect(clock.untilDueMs(now + 400)).toBeCloseTo(400, -1);
    clock.stop();
    databaseAheadMs = -500;
    const behind = await startClock();
    expect(behind.isDue(Date.now())).toBe(false);
    expect(behind.untilDueMs(Date.now())).toBeCloseTo(500, -1);
    behind.stop();
  });

  it('is measured again, so that a database whose clock was set is followed', async () => {
    const clock = await startClock();
    databaseAheadMs = 3_000;
    expect(clock.agrees()).toBe(true);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(clock.agrees()).toBe(false);
    expect(skews.at(-1)).toBeCloseTo(-3_000, -1);
    clock.stop();
  });

  it('is not told before it was measured', () => {
    const clock = new DatabaseClock(sql, () => undefined);
    expect(() => clock.nowMs()).toThrow(/not measured/);
    expect(clock.agrees()).toBe(false);
  });
});

describe('the due timer', () => {
  it('resolves when both clocks say due, once for all who wait for one instant', async () => {
    databaseAheadMs = -300;
    const clock = await startClock();
    const timer = new DueTimer(clock);
    const dueAtMs = Date.now() + 1_000;
    const order: string[] = [];
    const waits = ['a', 'b'].map((name) => timer.due(dueAtMs).then(() => order.push(name)));
    expect(timer.due(dueAtMs)).toBe(timer.due(dueAtMs));
    await vi.advanceTimersByTimeAsync(1_295);
    expect(order).toEqual([]);
    await vi.advanceTimersByTimeAsync(10);
    await Promise.all(waits);
    expect(order).toEqual(['a', 'b']);
    clock.stop();
  });

  it('resolves at once for what is due', async () => {
    const clock = await startClock();
    await new DueTimer(clock).due(Date.now() - 5);
    clock.stop();
  });

  it('notices within half a minute that a clock was set ahead', async () => {
    const clock = await startClock();
    let isDue = false;
    void new DueTimer(clock).due(Date.now() + 600_000).then(() => (isDue = true));
    await vi.advanceTimersByTimeAsync(1_000);
    vi.setSystemTime(Date.now() + 600_000);
    databaseAheadMs = 0;
    await vi.advanceTimersByTimeAsync(35_000);
    expect(isDue).toBe(true);
    clock.stop();
  });
});

describe('the usable life of a provider’s key', () => {
  it('is its published life less the margin, 15 min less the margin without a word, or no end', () => {
    expect(usableKeyLifeMs(24 * 3_600_000, 4 * 3_600_000)).toBe(20 * 3_600_000);
    expect(usableKeyLifeMs('unpublished', 150_000)).toBe(750_000);
    expect(usableKeyLifeMs('forever', 0)).toBeGreaterThan(90 * 365 * 86_400_000);
  });
});
