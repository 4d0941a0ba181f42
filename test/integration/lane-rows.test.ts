import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureLanes } from '../../src/lanes/lane.store.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
const providers = ['default', 'second'].map(
  (account) => new SimulatedProvider({ baseUrl: 'http://127.0.0.1:9', apiKey: 'sk_test', account }),
);

beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(async () => {
  await Promise.all(providers.map((provider) => provider.close()));
  await db.drop();
});

it('each provider and account gets one full lane, however many processes start at once', async () => {
  const made = await Promise.all(Array.from({ length: 5 }, () => ensureLanes(db.database, providers)));
  expect(made.reduce((sum, n) => sum + n, 0)).toBe(2);
  expect(await db.query('SELECT lane, rate, burst, tokens, cap, paused FROM lane ORDER BY lane')).toEqual([
    { lane: 'simulated/default', rate: 20_000, burst: 5_000, tokens: 5_000, cap: 200, paused: false },
    { lane: 'simulated/second', rate: 20_000, burst: 5_000, tokens: 5_000, cap: 200, paused: false },
  ]);
});

it('a lane keeps what operators set when processes start again', async () => {
  await db.query(
    `UPDATE lane SET rate = 7, paused = true, pause_reason = 'test' WHERE lane = 'simulated/default'`,
  );
  expect(await ensureLanes(db.database, providers)).toBe(0);
  expect(await db.query(`SELECT rate, paused FROM lane WHERE lane = 'simulated/default'`)).toEqual([
    { rate: 7, paused: true },
  ]);
});
