import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvariantJob } from '../../src/invariants/invariant-job.js';
import { INVARIANTS } from '../../src/invariants/invariants.js';
import { metricsText } from '../../src/metrics/metrics.js';
import { createLogger } from '../../src/platform/logger.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { openAttempt, openGeneration, paymentIn } from '../support/payment-states.js';

let db: TestDatabase;
let job: InvariantJob;
let lines: Record<string, unknown>[];
beforeEach(async () => {
  db = await createTestDatabase();
  lines = [];
  const destination = {
    write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  };
  const log = createLogger({ level: 'info', name: 'test', destination });
  job = new InvariantJob({ url: db.urlOf('payments_read'), log });
});
afterEach(async () => {
  await job.stop();
  await db.drop();
});

async function valueOf(series: string): Promise<number | undefined> {
  const line = (await metricsText()).split('\n').find((l) => l.startsWith(`payments_${series} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

async function cancelledWithAttempt(): Promise<string> {
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  const id = await paymentIn('cancelled', db.database, { tenant, lane });
  await openGeneration(db.database, id);
  await openAttempt(db.database, id);
  return id;
}

describe('the invariant job', () => {
  it('sets every gauge to 0 on lawful rows and tells when it ran', async () => {
    const before = Date.now() / 1_000;
    await job.run();
    for (const { id } of INVARIANTS) expect(await valueOf(`invariant_violations{id="${id}"}`)).toBe(0);
    expect(await valueOf('invariant_last_run_seconds')).toBeGreaterThanOrEqual(before);
    expect(lines).toEqual([]);
  });

  it('counts a breach and logs the payment', async () => {
    const id = await cancelledWithAttempt();
    await job.run();
    expect(await valueOf('invariant_violations{id="2"}')).toBe(1);
    expect(lines).toContainEqual(
      expect.objectContaining({
        event: 'invariant_violated',
        operation: 'invariant-2',
        payment_id: id,
        level: 'error',
      }),
    );
  });

  it('marks what it could not check with -1 and does not say that it ran', async () => {
    await job.run();
    const last = await valueOf('invariant_last_run_seconds');
    await db.query('DROP TABLE outbox');
    await job.run();
    expect(await valueOf('invariant_violations{id="14"}')).toBe(-1);
    expect(await valueOf('invariant_violations{id="1"}')).toBe(0);
    expect(await valueOf('invariant_last_run_seconds')).toBe(last);
    expect(lines).toContainEqual(expect.objectContaining({ event: 'invariant_unchecked', code: '42P01' }));
  });

  it('looks at what changed once a full look is too slow, and forgets no breach that it saw', async () => {
    const id = await cancelledWithAttempt();
    await job.run();
    // A view that sleeps under the limit of a full look, and only under that one.
    await db.query('ALTER TABLE payment RENAME TO payment_stored');
    await db.query(`CREATE VIEW payment AS SELECT p.* FROM payment_stored p
      WHERE (SELECT pg_sleep(CASE current_setting('statement_timeout') WHEN '500ms' THEN 5 ELSE 0 END)) IS NOT NULL`);
    await db.query('GRANT SELECT ON payment TO payments_read');
    const second = (await job.run()).find((result) => result.id === 2);
    expect(second).toMatchObject({ kind: 'checked', scope: 'recent', count: 1, ids: [id] });
    await db.query('ALTER TABLE payment_transition DISABLE TRIGGER ALL');
    await db.query(`UPDATE payment_transition SET at = at - interval '1 day'`);
    const third = (await job.run()).find((result) => result.id === 2);
    expect(third).toMatchObject({ kind: 'checked', scope: 'recent', count: 1, ids: [] });
    expect(await valueOf('invariant_violations{id="2"}')).toBe(1);
  });

  it('never runs twice at once', async () => {
    const [a, b] = await Promise.all([job.run(), job.run()]);
    expect(a).toBe(b);
  });
});
