import { beforeEach, describe, expect, it } from 'vitest';
import { newApiKey } from '../../../src/auth/api-key.js';
import { readCredential } from '../../../src/auth/credential.js';
import {
  FailureLimiter,
  FAILURES_PER_ADDRESS,
  FAILURES_PER_KEY,
  KNOWN_GOOD_MS,
  LIMITER_ENTRIES,
  networkOf,
  type Caller,
} from '../../../src/auth/failure-limiter.js';

let nowMs = 0;
let limiter: FailureLimiter;
beforeEach(() => {
  nowMs = 1_000_000;
  limiter = new FailureLimiter(() => nowMs);
});

const from = (address: string, text = newApiKey('test').text): Caller => ({
  address,
  credential: readCredential(`Bearer ${text}`),
});
const A = '192.0.2.1';
const B = '198.51.100.7';

/** How many tries fail, each on its own credential unless given, before one is held back. */
function failuresUntilHeld(caller: () => Caller): number {
  for (let failures = 0; failures < 1_000; failures++) {
    const next = caller();
    if (limiter.waitMs(next) > 0) return failures;
    limiter.failed(next);
  }
  throw new Error('nobody was held back');
}

describe('failures of one address', () => {
  it('are held back after 60, and then one a second is let through', () => {
    expect(failuresUntilHeld(() => from(A))).toBe(FAILURES_PER_ADDRESS.burst);
    expect(limiter.waitMs(from(A))).toBe(1_000);
    nowMs += 3_000;
    expect(failuresUntilHeld(() => from(A))).toBe(3);
  });

  it('hold nobody back at another address, whoever they guess at (SE-01)', () => {
    const owner = from(B);
    failuresUntilHeld(() => ({ ...owner, address: A }));
    failuresUntilHeld(() => from(A));
    expect(limiter.waitMs(owner)).toBe(0);
    expect(limiter.waitMs(from(B))).toBe(0);
  });

  it('cannot be doubled at an edge in time: any minute has 60 and one a second', () => {
    failuresUntilHeld(() => from(A));
    let failures = 0;
    for (let second = 0; second < 60; second++) {
      nowMs += 1_000;
      failures += failuresUntilHeld(() => from(A));
    }
    expect(failures).toBe(60);
  });

  it('are forgotten when the budget is full again', () => {
    limiter.failed(from(A));
    nowMs += FAILURES_PER_KEY.refillMs;
    expect(failuresUntilHeld(() => from(A))).toBe(FAILURES_PER_ADDRESS.burst);
  });

  it('are of its whole network in IPv6, where one host has many addresses', () => {
    let host = 0;
    expect(failuresUntilHeld(() => from(`2001:db8::${(host++).toString(16)}`))).toBe(60);
    expect(limiter.waitMs(from('2001:db8:0:1::1'))).toBe(0);
  });

  it('are no guesses when there was no credential', () => {
    const nobody: Caller = { address: A, credential: readCredential(undefined) };
    for (let i = 0; i < 200; i++) limiter.failed(nobody);
    expect([limiter.waitMs(nobody), limiter.waitMs(from(A))]).toEqual([0, 0]);
  });

  it('make nobody wait longer than a minute, however many came at once', () => {
    for (let i = 0; i < 5_000; i++) limiter.failed(from(A));
    expect(limiter.waitMs(from(A))).toBe(60_000);
  });
});

describe('failures of one key id', () => {
  it('are held back after 10 at one address, and leave its neighbours their budget', () => {
    const stale = from(A);
    expect(failuresUntilHeld(() => stale)).toBe(FAILURES_PER_KEY.burst);
    expect(limiter.waitMs(stale)).toBe(FAILURES_PER_KEY.refillMs);
    expect(failuresUntilHeld(() => from(A))).toBe(FAILURES_PER_ADDRESS.burst - FAILURES_PER_KEY.burst);
  });
});

describe('a credential that was good', () => {
  it('is not held back for 15 minutes by what others do at its address', () => {
    const good = from(A);
    limiter.succeeded(good);
    failuresUntilHeld(() => from(A));
    expect(limiter.waitMs(good)).toBe(0);
    nowMs += KNOWN_GOOD_MS - 1;
    failuresUntilHeld(() => from(A));
    expect(limiter.waitMs(good)).toBe(0);
    nowMs += 1;
    failuresUntilHeld(() => from(A));
    expect(limiter.waitMs(good)).toBeGreaterThan(0);
  });

  it('is held back like any other once it was refused', () => {
    const revoked = from(A);
    limiter.succeeded(revoked);
    expect(failuresUntilHeld(() => revoked)).toBe(FAILURES_PER_KEY.burst);
  });

  it('is known by all of its text: another secret of its id is a guess', () => {
    const good = newApiKey('test');
    limiter.succeeded(from(A, good.text));
    failuresUntilHeld(() => from(A));
    const forged = newApiKey('test').text;
    expect(limiter.waitMs(from(A, forged))).toBeGreaterThan(0);
  });
});

it('remembers a bounded number of addresses, keys and good credentials', () => {
  for (let i = 0; i < LIMITER_ENTRIES + 50; i++) {
    const caller = from(`10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`);
    limiter.failed(caller);
    limiter.succeeded(caller);
  }
  expect(limiter.size()).toEqual({ buckets: LIMITER_ENTRIES, good: LIMITER_ENTRIES });
});

describe('the network of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8::1%eth0', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['nonsense', 'unknown'],
    ['', 'unknown'],
    ['x'.repeat(10_000), 'unknown'],
  ])('of %s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
