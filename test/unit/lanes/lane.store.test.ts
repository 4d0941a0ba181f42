import { describe, expect, it } from 'vitest';
import { laneLimits, laneName } from '../../../src/lanes/lane.store.js';
import type { PaymentProvider, ProviderDescriptor } from '../../../src/providers/payment-provider.js';
import { describeSimulated } from '../../../src/providers/simulated/simulated.descriptor.js';

const A = describeSimulated({ profile: 'A' });

const provider = (
  name: string,
  ratePerSecond: number,
  promises: Partial<ProviderDescriptor> = {},
): Pick<PaymentProvider, 'name' | 'account' | 'capabilities'> => ({
  name,
  account: 'acct_1',
  capabilities: () => ({ ...A, ratePerSecond, ...promises }),
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

  it.each([
    ['one call', A, 40],
    ['a create and a commit', describeSimulated({ profile: 'T' }), 20],
    ['a look and a send', describeSimulated({ profile: 'C' }), 20],
  ])('shares what the account bears among the calls of a payment: %s', (_, promises, expected) => {
    const limits = laneLimits(
      provider('pays', 100, { ...promises, ratePerSecond: 100, accountRatePerSecond: 50 }),
    );
    expect(limits.ratePerSecond).toBe(expected);
  });

  it('of the simulator is never what slows a test', () => {
    for (const name of ['simulated', 'simulated_b', 'simulated_t']) {
      expect(laneLimits(provider(name, 5)).ratePerSecond).toBe(20_000);
    }
    expect(laneLimits(provider('simulatedpay', 5)).ratePerSecond).toBe(4);
  });
});
