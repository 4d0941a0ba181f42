import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lease } from '../../../src/rate-limits/lease.store.js';
import { ALONE_MS, blockOf, LEASE_LIFE_MS, LeasedBucket } from '../../../src/rate-limits/leased-bucket.js';
import type { RateLimit } from '../../../src/rate-limits/rate-limit.js';

/** What Postgres holds, on the same clock as the processes. */
class SharedBucket {
  leases = 0;
  fails = false;
  private tokens: number;
  private atMs = 0;

  constructor(
    readonly limit: RateLimit,
    private readonly clock: { ms: number },
  ) {
    this.tokens = limit.burst;
  }

  lease(wanted: number): Promise<Lease> {
    this.leases++;
    if (this.fails) return Promise.reject(new Error('nobody answers'));
    const { ratePerSecond, burst } = this.limit;
    this.tokens = Math.min(burst, this.tokens + (ratePerSecond * (this.clock.ms - this.atMs)) / 1_000);
    this.atMs = this.clock.ms;
    const granted = Math.min(Math.floor(this.tokens), wanted);
    this.tokens -= granted;
    return Promise.resolve({ granted, left: this.tokens, limit: this.limit });
  }
}

function world(limit: RateLimit, processes = 1) {
  const clock = { ms: 0 };
  const shared = new SharedBucket(limit, clock);
  const faults: unknown[] = [];
  const buckets = Array.from(
    { length: processes },
    () =>
      new LeasedBucket({
        lease: (wanted) => shared.lease(wanted),
        limit,
        nowMs: () => clock.ms,
        onFault: (error) => void faults.push(error),
      }),
  );
  return { clock, shared, faults, buckets, bucket: buckets[0]! };
}

async function takeMany(bucket: LeasedBucket, count: number): Promise<number> {
  const taken = await Promise.all(Array.from({ length: count }, () => bucket.take()));
  return taken.filter(({ kind }) => kind === 'admitted').length;
}

describe('a leased bucket', () => {
  it('admits the burst at once and not one more', async () => {
    const { bucket } = world({ ratePerSecond: 1, burst: 30 });
    expect(await takeMany(bucket, 100)).toBe(30);
    expect(await bucket.take()).toMatchObject({ kind: 'refused', remaining: 0 });
  });

  it('gives no second burst at the edge of any window: only what has come back (SE-01)', async () => {
    const { bucket, clock } = world({ ratePerSecond: 10, burst: 10 });
    clock.ms = 999;
    expect(await takeMany(bucket, 50)).toBe(10);
    clock.ms = 1_000;
    expect(await takeMany(bucket, 50)).toBe(0);
    clock.ms = 1_999;
    expect(await takeMany(bucket, 50)).toBe(10);
  });

  it('asks Postgres once for a block and not for each request', async () => {
    const { bucket, shared } = world({ ratePerSecond: 100, burst: 1_000 });
    for (let i = 0; i < 100; i++) await bucket.take();
    expect(shared.leases).toBeLessThanOrEqual(10);
  });

  it('asks once for all who wait at the same time', async () => {
    const { bucket, shared } = world({ ratePerSecond: 100, burst: 1_000 });
    expect(await takeMany(bucket, 500)).toBe(500);
    expect(shared.leases).toBe(1);
  });

  it('does not ask for requests that it refuses', async () => {
    const { bucket, shared } = world({ ratePerSecond: 1, burst: 5 });
    await takeMany(bucket, 20);
    const { leases } = shared;
    await takeMany(bucket, 1_000);
    expect(shared.leases).toBe(leases);
  });

  it('says when the next token comes, and has it then', async () => {
    const { bucket, clock } = world({ ratePerSecond: 2, burst: 1 });
    await bucket.take();
    const refused = await bucket.take();
    expect(refused).toMatchObject({ kind: 'refused', nextInMs: 500 });
    clock.ms += refused.nextInMs;
    expect((await bucket.take()).kind).toBe('admitted');
  });

  it('drops what it did not use within the life of the lease', async () => {
    const { bucket, clock, shared } = world({ ratePerSecond: 100, burst: 1_000 });
    await bucket.take();
    clock.ms += LEASE_LIFE_MS;
    await bucket.take();
    expect(shared.leases).toBe(2);
  });

  it('has a token that was given back once more', async () => {
    const { bucket } = world({ ratePerSecond: 0.001, burst: 1 });
    expect((await bucket.take()).kind).toBe('admitted');
    bucket.giveBack();
    expect((await bucket.take()).kind).toBe('admitted');
    expect((await bucket.take()).kind).toBe('refused');
  });

  it('follows a limit that was changed, from its next lease on', async () => {
    const { clock, shared } = world({ ratePerSecond: 1, burst: 2 });
    const bucket = new LeasedBucket({
      lease: (wanted) => shared.lease(wanted),
      limit: { ratePerSecond: 1_000, burst: 1_000 },
      nowMs: () => clock.ms,
      onFault: () => undefined,
    });
    expect(await takeMany(bucket, 10)).toBe(2);
    expect(bucket.limit).toEqual({ ratePerSecond: 1, burst: 2 });
  });

  it('goes by its own count under the same limit while Postgres gives no answer, and asks again later', async () => {
    const { bucket, shared, clock, faults } = world({ ratePerSecond: 10, burst: 20 });
    shared.fails = true;
    expect(await takeMany(bucket, 100)).toBe(20);
    expect((await bucket.take()).kind).toBe('refused');
    expect([shared.leases, faults.length]).toEqual([1, 1]);
    shared.fails = false;
    clock.ms += ALONE_MS;
    expect((await bucket.take()).kind).toBe('admitted');
    expect(shared.leases).toBe(2);
  });
});

describe('processes that share a bucket', () => {
  it('never admit more than burst + rate × time and a left-over block each, whatever they do', async () => {
    const step = fc.record({ process: fc.nat(2), calls: fc.nat(60), waitMs: fc.nat(1_500) });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 200 }),
        fc.array(step, { minLength: 1, maxLength: 40 }),
        async (ratePerSecond, burst, steps) => {
          const limit = { ratePerSecond, burst };
          const { buckets, clock } = world(limit, 3);
          const admitted: { atMs: number; count: number }[] = [];
          for (const { process, calls, waitMs } of steps) {
            admitted.push({ atMs: clock.ms, count: await takeMany(buckets[process]!, calls) });
            clock.ms += waitMs;
          }
          for (const [i, from] of admitted.entries()) {
            let sum = 0;
            for (const { atMs, count } of admitted.slice(i)) {
              sum += count;
              const most = burst + (ratePerSecond * (atMs - from.atMs)) / 1_000 + 3 * blockOf(limit);
              expect(sum).toBeLessThanOrEqual(most + 1e-6);
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
