import type { Config } from '../config/config.js';
import type { PaymentProvider } from './payment-provider.js';
import { validateDescriptor } from './provider-descriptor.js';
import { SimulatedProvider } from './simulated/simulated.adapter.js';
import { SIMULATED_PROFILES } from './simulated/simulated.descriptor.js';
import { StripePaymentIntents, StripeTransfers } from './stripe/stripe.adapter.js';

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
 * The providers that the configuration names: where a simulator is configured, `simulated` and one
 * more for each further profile that has a key (`simulated_b`, `_c`, `_d`, `_t`); where Stripe is,
 * `stripe` (transfers) and `stripe_intents` (PaymentIntents).
 * @throws Error when a descriptor has a missing or absurd field, or claims that contradict each other:
 * start-up ends here.
 */
export function createProviderRegistry({
  simulator,
  stripe,
}: Pick<Config, 'simulator' | 'stripe'>): ProviderRegistry {
  return registryOf([...simulatedProviders(simulator), ...stripeProviders(stripe)]);
}

function simulatedProviders(simulator: Config['simulator']): readonly PaymentProvider[] {
  if (simulator === null) return [];
  const { url, apiKeys } = simulator;
  return SIMULATED_PROFILES.flatMap((profile) => {
    const apiKey = apiKeys[profile];
    return apiKey === undefined ? [] : [new SimulatedProvider({ baseUrl: url, apiKey, profile })];
  });
}

function stripeProviders(stripe: Config['stripe']): readonly PaymentProvider[] {
  if (stripe === null) return [];
  const { apiKey, account, url } = stripe;
  const options = { apiKey, account, ...(url !== null && { baseUrl: url }) };
  return [new StripeTransfers(options), new StripePaymentIntents(options)];
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
