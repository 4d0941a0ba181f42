import { describe, expect, it } from 'vitest';
import type { PaymentProvider, ProviderDescriptor } from '../../../src/providers/payment-provider.js';
import { capabilityClass } from '../../../src/providers/provider-descriptor.js';
import { createProviderRegistry, registryOf } from '../../../src/providers/provider-registry.js';
import { SimulatedProvider } from '../../../src/providers/simulated/simulated.adapter.js';

const OPTIONS = { baseUrl: 'http://127.0.0.1:9', apiKey: 'sk_a' };

/** Another provider with the simulator's descriptor. */
function bank(descriptor: Partial<ProviderDescriptor> = {}, closed: string[] = []): PaymentProvider {
  const simulated = new SimulatedProvider(OPTIONS);
  const unused = (): never => {
    throw new Error('not called here');
  };
  return {
    name: 'bank',
    baseUrl: 'http://127.0.0.1',
    credentialId: 'cred_test',
    account: 'main',
    capabilities: () => ({ ...simulated.capabilities(), ...descriptor }),
    prepare: unused,
    submit: unused,
    commit: unused,
    cancel: unused,
    parseWebhook: unused,
    lookup: unused,
    close: async () => void closed.push('bank'),
  };
}

describe('the registry of providers', () => {
  it('has the simulated provider where a simulator is configured', async () => {
    const registry = createProviderRegistry({
      simulator: { url: OPTIONS.baseUrl, apiKeys: { A: 'sk_a' } },
      stripe: null,
    });
    expect(registry.names()).toEqual(['simulated']);
    expect(registry.get('simulated')?.capabilities().phases).toBe(1);
    await registry.closeAll();
    await registry.closeAll();
  });

  it('has one provider for each profile that has a key, each of the class that its name says', async () => {
    const apiKeys = { A: 'sk_a', B: 'sk_b', C: 'sk_c', D: 'sk_d', T: 'sk_t' };
    const registry = createProviderRegistry({ simulator: { url: OPTIONS.baseUrl, apiKeys }, stripe: null });
    const classes = registry.names().map((name) => {
      const provider = registry.get(name);
      return [name, provider && capabilityClass(provider.capabilities())];
    });
    expect(classes).toEqual([
      ['simulated', 'A'],
      ['simulated_b', 'B'],
      ['simulated_c', 'C'],
      ['simulated_d', 'D'],
      ['simulated_t', 'T'],
    ]);
    await registry.closeAll();
  });

  it('has none without a simulator, and nothing stands in for an unknown name', () => {
    const registry = createProviderRegistry({ simulator: null, stripe: null });
    expect(registry.names()).toEqual([]);
    for (const name of ['simulated', 'stripe', 'constructor', '']) expect(registry.get(name)).toBeUndefined();
  });

  it('refuses one name for two providers', () => {
    expect(() => registryOf([bank(), bank()])).toThrow('Provider "bank" is registered twice.');
  });

  it('refuses a provider with a missing field at start', () => {
    const descriptor = { maxInFlightMs: undefined } as unknown as Partial<ProviderDescriptor>;
    expect(() => registryOf([bank(descriptor)])).toThrow(/^Provider "bank" does not declare maxInFlightMs/);
  });

  it('allows a small margin to the simulator and to nobody else', () => {
    const small = { keyLifeMs: 60_000, keyMarginMs: 1_000 };
    const simulated = new SimulatedProvider({ ...OPTIONS, ...small });
    expect(() => registryOf([simulated])).not.toThrow();
    const { idempotency } = simulated.capabilities();
    expect(() => registryOf([bank({ idempotency })])).toThrow(
      /marginMs wrongly: it must be at least a sixth/,
    );
  });

  it('closes all', async () => {
    const closed: string[] = [];
    await registryOf([bank({}, closed)]).closeAll();
    expect(closed).toEqual(['bank']);
  });
});
