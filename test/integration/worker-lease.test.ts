import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { StorageUnavailable } from '../../src/persistence/database-errors.js';
import { LEASE_MS, leaseAlive, WorkerLease } from '../../src/submission/worker-lease.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Latch, TappedDatabase } from '../support/tapped-database.js';
import { until } from '../support/until.js';

let db: TestDatabase;
let database: TappedDatabase;
let lease: WorkerLease;
let losses: number;
beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(() => db.drop());
beforeEach(async () => {
  database = new TappedDatabase({ url: db.urlOf('payments_worker'), poolSize: 2, applicationName: 'lease' });
  losses = 0;
  lease = new WorkerLease(database, () => losses++);
  await lease.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await lease.end();
  await database.close();
});

interface WorkerRow {
  readonly id: string;
  readonly alive: boolean;
  readonly left_ms: number;
}
const workers = (): Promise<WorkerRow[]> =>
  db.query<WorkerRow>(
    `SELECT id, ${leaseAlive('x.id')} AS alive,
            (extract(epoch FROM lease_expires_at - clock_timestamp()) * 1000)::double precision AS left_ms
       FROM worker x ORDER BY started_at`,
  );
const ownRow = async (): Promise<WorkerRow | undefined> =>
  (await workers()).find((row) => row.id === lease.id);
const renewals = (): number => database.asked.get('worker-renew') ?? 0;
const untilRenewed = (n: number): Promise<number> => until(`renewal ${n}`, renewals, (count) => count >= n);

function setClocksAhead(clocks: { wallMs?: number; monotonicMs?: number }): void {
  const wall = Date.now.bind(Date);
  const monotonic = performance.now.bind(performance);
  vi.spyOn(Date, 'now').mockImplementation(() => wall() + (clocks.wallMs ?? 0));
  vi.spyOn(performance, 'now').mockImplementation(() => monotonic() + (clocks.monotonicMs ?? 0));
}

describe('the lease of a worker', () => {
  it('is a row of its own that it holds for 8 s, under an id that nobody else has', async () => {
    const row = await ownRow();
    expect(row?.alive).toBe(true);
    expect(row?.left_ms).toBeLessThanOrEqual(LEASE_MS);
    expect(lease.isHeldBy(lease.id)).toBe(true);
    expect(lease.isHeldBy('somebody')).toBe(false);
    expect(lease.isHeldBy('')).toBe(false);
  });

  it('is renewed while it lives, and each renewal counts from before it was sent', async () => {
    await db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() + interval '5 s' WHERE id = $1`, [
      lease.id,
    ]);
    const { id } = lease;
    await untilRenewed(1);
    await until('the longer lease', ownRow, (row) => (row?.left_ms ?? 0) > 5_000);
    expect(lease.id).toBe(id);
    expect(losses).toBe(0);
  });

  it('ends here before it ends there: by the monotonic clock, and by the wall clock, each alone', () => {
    setClocksAhead({ monotonicMs: LEASE_MS - 40 });
    expect(lease.isHeldBy(lease.id)).toBe(false);
    vi.restoreAllMocks();
    expect(lease.isHeldBy(lease.id)).toBe(true);
    // The monotonic clock may stand still while the machine is suspended.
    setClocksAhead({ wallMs: LEASE_MS - 40 });
    expect(lease.isHeldBy(lease.id)).toBe(false);
  });

  it('is not prolonged by renewals that fail, and is taken up again when one succeeds in time', async () => {
    const { id } = lease;
    const undo = database.tap('worker-renew', () => Promise.reject(new StorageUnavailable('away')));
    await untilRenewed(1);
    undo();
    await untilRenewed(2);
    expect(lease.id).toBe(id);
    expect(lease.isHeldBy(id)).toBe(true);
    expect(losses).toBe(0);
  });

  it('that was over when the renewal came is lost: a new id, and what had the old one is others’', async () => {
    const { id } = lease;
    await db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() WHERE id = $1`, [id]);
    await until('the loss', () => losses, (n) => n === 1); // prettier-ignore
    expect(lease.id).not.toBe(id);
    expect(lease.isHeldBy(id)).toBe(false);
    expect(lease.isHeldBy(lease.id)).toBe(true);
    const rows = await workers();
    expect(rows.find((row) => row.id === id)?.alive).toBe(false);
    expect((await ownRow())?.alive).toBe(true);
  });

  it('is given back at the end, so that nobody waits for it; twice is nothing', async () => {
    const { id } = lease;
    await lease.end();
    expect((await workers()).map((row) => row.id)).not.toContain(id);
    expect(lease.isHeldBy(id)).toBe(false);
    await lease.end();
  });

  it('that is given back during a renewal stays given back', async () => {
    const [asked, latch, renewed] = [new Latch(), new Latch(), new Latch()];
    database.tap('worker-renew', async (run) => {
      asked.open();
      await latch.wait();
      const rows = await run();
      setImmediate(() => renewed.open());
      return rows;
    });
    await asked.wait();
    await lease.end();
    latch.open();
    await renewed.wait();
    // The renewal found no row: that is what the end wanted, and not a loss.
    expect(database.asked.get('worker-create')).toBe(1);
    expect(losses).toBe(0);
  });

  it('is waited for when Postgres is away at the start', async () => {
    const late = new TappedDatabase({
      url: db.urlOf('payments_worker'),
      poolSize: 1,
      applicationName: 'late',
    });
    let tries = 0;
    late.tap('worker-create', (run) =>
      ++tries < 3 ? Promise.reject(new StorageUnavailable('away')) : run(),
    );
    const second = new WorkerLease(late, () => undefined);
    await second.start();
    expect(tries).toBe(3);
    expect(second.isHeldBy(second.id)).toBe(true);
    await second.end();
    await late.close();
  });
});
