import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDatabaseGauges } from '../../src/metrics/database-gauges.js';
import { metricsText } from '../../src/metrics/metrics.js';
import { move } from '../../src/payments/gate.js';
import type { Sql } from '../../src/persistence/database.js';
import { createLogger } from '../../src/platform/logger.js';
import { databaseTime, insertScheduled, seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
const log = createLogger({ level: 'silent', name: 'test' });
beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(() => db.drop());

async function valueOf(series: string): Promise<number> {
  const line = (await metricsText()).split('\n').find((l) => l.startsWith(`payments_${series} `));
  if (line === undefined) throw new Error(`no series ${series}`);
  return Number(line.split(' ').at(-1));
}

describe('the gauges that Postgres knows', () => {
  it('count open payments by state, the oldest due one and the outbox', async () => {
    const tenant = await seedTenant(db.database);
    const lane = await seedLane(db.database, { provider: 'simulated' });
    const later = await databaseTime(db.database, 3_600);
    await insertScheduled(db.database, { tenant, lane });
    await insertScheduled(db.database, { tenant, lane, executeAt: later });
    const held = await insertScheduled(db.database, { tenant, lane, executeAt: later });
    await move(db.database, {
      rule: 'T3',
      cause: 'hold',
      tenant,
      paymentId: held.id,
      actor: 'test',
      announce: 'wake',
    });
    const gauges = startDatabaseGauges({ sql: db.as('payments_read'), log });
    expect(await gauges.refresh()).toBe(true);
    await gauges.stop();
    expect(await valueOf('current{state="scheduled"}')).toBe(2);
    expect(await valueOf('current{state="held"}')).toBe(1);
    expect(await valueOf('current{state="unknown"}')).toBe(0);
    expect(await valueOf('due_oldest_seconds')).toBeGreaterThan(0);
    expect(await valueOf('outbox_rows{kind="start"}')).toBe(3);
    expect(await valueOf('outbox_rows{kind="wake"}')).toBe(1);
    expect(await valueOf('unknown_oldest_seconds')).toBe(0);
    expect(await valueOf('key_life_left_ratio_min')).toBe(1);
    expect(await valueOf('recovery_hold')).toBe(0);
    expect(await valueOf('lane_state{provider="simulated",state="open"}')).toBe(1);
    expect(await valueOf('lane_state{provider="simulated",state="paused"}')).toBe(0);
    expect(await valueOf('lane_backlog{provider="simulated"}')).toBe(1);
    expect(await valueOf('lane_expected_end_seconds{provider="simulated"}')).toBeCloseTo(1 / 1_000, 6);
  });

  it('leave a paused lane out of what is due and show it closed', async () => {
    await db.query('UPDATE lane SET paused = true');
    const gauges = startDatabaseGauges({ sql: db.as('payments_read'), log });
    expect(await gauges.refresh()).toBe(true);
    await gauges.stop();
    expect(await valueOf('due_oldest_seconds')).toBe(0);
    expect(await valueOf('lane_state{provider="simulated",state="open"}')).toBe(0);
    expect(await valueOf('lane_state{provider="simulated",state="paused"}')).toBe(1);
    expect(await valueOf('lane_backlog{provider="simulated"}')).toBe(1);
    // Only a person can tell when it goes on.
    expect(await valueOf('lane_expected_end_seconds{provider="simulated"}')).toBe(0);
  });

  it.each([
    ['credential_refused', `paused = true, pause_reason = 'provider_refused_credential'`, 0],
    ['throttled', `paused = false, wait_until = clock_timestamp() + interval '100 s'`, 90],
    [
      'broken',
      `wait_until = NULL, breaker = 'open', breaker_reason = 'failures_in_a_row', opened_at = now(),
       probe_at = clock_timestamp() + interval '60 s'`,
      50,
    ],
  ])('show a lane that is %s, and leave it out of what is due', async (state, change, atLeast) => {
    await db.query(`UPDATE lane SET ${change}`);
    const gauges = startDatabaseGauges({ sql: db.as('payments_read'), log });
    expect(await gauges.refresh()).toBe(true);
    await gauges.stop();
    expect(await valueOf(`lane_state{provider="simulated",state="${state}"}`)).toBe(1);
    expect(await valueOf('lane_state{provider="simulated",state="open"}')).toBe(0);
    expect(await valueOf('due_oldest_seconds')).toBe(0);
    expect(await valueOf('lane_expected_end_seconds{provider="simulated"}')).toBeGreaterThanOrEqual(atLeast);
  });

  it('answer false and throw nothing when Postgres does not answer, and keep the time of the last reading', async () => {
    const before = await valueOf('database_gauges_last_run_seconds');
    const down: Sql = { query: () => Promise.reject(new Error('down')) };
    const gauges = startDatabaseGauges({ sql: down, log });
    expect(await gauges.refresh()).toBe(false);
    await gauges.stop();
    expect(await valueOf('database_gauges_last_run_seconds')).toBe(before);
  });

  it('never read twice at once', async () => {
    let open = 0;
    let most = 0;
    const slow: Sql = {
      query: async (statement, values) => {
        most = Math.max(most, ++open);
        try {
          return await db.database.query(statement, values);
        } finally {
          open--;
        }
      },
    };
    const gauges = startDatabaseGauges({ sql: slow, log });
    await Promise.all([gauges.refresh(), gauges.refresh()]);
    await gauges.stop();
    expect(most).toBe(1);
  });
});

describe('the counts of settlement', () => {
  it('reach a process that is scraped, whoever imported the file, and each row once', async () => {
    const sql = db.database;
    const set = (rows: number): Promise<unknown> =>
      db.query(
        `INSERT INTO settlement_count (provider, bucket, rows) VALUES ('p', 'unexpected_at_provider', $1)
          ON CONFLICT (provider, bucket) DO UPDATE SET rows = excluded.rows`,
        [rows],
      );
    const series = 'settlement_rows_total{bucket="unexpected_at_provider"}';
    const contradictions = 'contradictions_total{source="settlement"}';
    await set(2);
    const gauges = startDatabaseGauges({ sql, log, everyMs: 3_600_000 });
    try {
      for (let i = 0; i < 3; i++) expect(await gauges.refresh()).toBe(true);
      expect([await valueOf(series), await valueOf(contradictions)]).toEqual([2, 2]);
      await set(5);
      expect(await gauges.refresh()).toBe(true);
      expect([await valueOf(series), await valueOf(contradictions)]).toEqual([5, 5]);
    } finally {
      await gauges.stop();
    }
  });
});
