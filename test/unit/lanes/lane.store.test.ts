import { describe, expect, it } from 'vitest';
import { laneLimits, laneName } from '../../../src/lanes/lane.store.js';
import type { ProviderDescriptor } from '../../../src/providers/payment-provider.js';

const provider = (name: string, ratePerSecond: number) => ({
  name,
  account: 'acct_1',
  capabilities: () => ({ ratePerSecond }) as ProviderDescriptor,
});

describe('a lane', () => {
  it('is named by its provider and account', () => {
    expect(laneName(provider('stripe', 1))).toBe('stripe/acct_1');
  });

  it('gets four fifths of the declared rate and a quarter of a second of it as burst', () => {
    expect(laneLimits(provider('stripe', 100))).toEqual({ ratePerSecond: 80, burst: 20, callsInFlight: 200 });
  });

  it('has room for one call however slow its provider is', () => {
    expect(laneLimits(provider('slow', 0.5))).toEqual({ ratePerSecond: 0.4, burst: 1, callsInFlight: 200 });
  });

  it('of the simulator is never what slows a test', () => {
    for (const name of ['simulated', 'simulated_b', 'simulated_t']) {
      expect(laneLimits(provider(name, 5)).ratePerSecond).toBe(20_000);
    }
    expect(laneLimits(provider('simulatedpay', 5)).ratePerSecond).toBe(4);
  });
});
