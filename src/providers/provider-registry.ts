import type { Config } from '../config/config.js';
import type { PaymentProvider } from './payment-provider.js';
import { validateDescriptor } from './provider-descriptor.js';
import { SimulatedProvider } from './simulated/simulated.adapter.js';

/** The providers of this process, by the name that a payment carries. */
export interface ProviderRegistry {
  /** undefined: this process has no such provider. Nothing stands in for it. */
  get(name: string): PaymentProvider | undefined;
  /** In the order in which they were registered; may be empty. */
  names(): readonly string[];
  /** Closes the connections of all; calls under way end without an answer. Twice: nothing. */
  closeAll(): Promise<void>;
}

/**
 * The providers that the configuration names: `simulated` where a simulator is configured.
 * @throws Error when a descriptor has a missing or absurd field: start-up ends here.
 */
export function createProviderRegistry(config: Pick<Config, 'simulator'>): ProviderRegistry {
  const { simulator } = config;
  return registryOf(
    simulator === null ? [] : [new SimulatedProvider({ baseUrl: simulator.url, apiKey: simulator.apiKey })],
  );
}

/**
 * A registry of adapters made elsewhere, for rigs that give a provider another descriptor.
 * @throws Error when a name appears twice or a descriptor has a missing or absurd field.
 */
export function registryOf(providers: readonly PaymentProvider[]): ProviderRegistry {
  const byName = new Map<string, PaymentProvider>();
  for (const provider of providers) {
    if (byName.has(provider.name)) throw new Error(`Provider "${provider.name}" is registered twice.`);
    const smallMarginAllowed = provider instanceof SimulatedProvider;
    validateDescriptor(provider.name, provider.capabilities(), { smallMarginAllowed });
    byName.set(provider.name, provider);
  }
  return {
    get: (name) => byName.get(name),
    names: () => [...byName.keys()],
    closeAll: async () => {
      await Promise.all([...byName.values()].map((provider) => provider.close()));
    },
  };
}
