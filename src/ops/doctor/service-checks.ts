import type { Config } from '../../config/config.js';
import { probeTemporal } from '../../orchestration/temporal-probe.js';
import { newUuid } from '../../platform/ids.js';
import { createProviderRegistry } from '../../providers/provider-registry.js';
import type { PaymentProvider } from '../../providers/payment-provider.js';
import { failed, ok, warning, type Check } from './check.js';

/** Longest wait for a provider (ms). */
const ANSWER_MS = 5_000;
/** As long as every other call to Temporal; a refused connection is tried again until then (ms). */
const TEMPORAL_MS = 2_000;

/** Temporal answers and has the namespace. */
export async function temporalCheck(config: Config['temporal']): Promise<Check> {
  const probe = await probeTemporal(config, TEMPORAL_MS);
  const where = `${config.address}, namespace ${config.namespace}`;
  switch (probe.kind) {
    case 'ok':
      return ok('temporal', where);
    case 'no_namespace':
      return failed('temporal', `${config.address} has no namespace ${config.namespace}. Create it.`);
    case 'unreachable':
      return failed('temporal', `${config.address} did not answer (${probe.reason}). Payments start late.`);
  }
}

/** An id that no payment has: asking for it reads only, and proves address and credential. */
function nothing(): Parameters<PaymentProvider['lookup']>[0] {
  return {
    providerRef: null,
    // Where a provider can only be scanned, the scan begins here.
    sentSince: new Date(),
    by: 'any',
    providerKey: newUuid(),
    paymentId: `pay_${'a'.repeat(32)}`,
    generation: 1,
    deadlineMs: ANSWER_MS,
    expected: { amountMinor: 1n, currency: 'EUR', destination: 'doctor' },
  };
}

async function providerCheck(provider: PaymentProvider): Promise<Check> {
  const name = `provider ${provider.name}`;
  if (provider.capabilities().lookup.by.length === 0) {
    return warning(name, 'It cannot be asked about payments, so nothing tells whether it answers.');
  }
  const answer = await provider.lookup(nothing());
  if (answer.kind !== 'cannot_tell') return ok(name, 'it answers a lookup');
  return failed(name, `A lookup ended in ${answer.code}. Check its address and credential.`);
}

/** Each provider of the configuration answers a lookup; the default one must be among them. */
export async function providerChecks(config: Config): Promise<readonly Check[]> {
  const registry = createProviderRegistry(config);
  try {
    const providers = registry.names().flatMap((name) => registry.get(name) ?? []);
    const checks = await Promise.all(providers.map(providerCheck));
    if (registry.names().includes(config.defaultProvider)) return checks;
    const missing = `The default provider ${config.defaultProvider} is not configured.`;
    return [...checks, failed(`provider ${config.defaultProvider}`, missing)];
  } finally {
    await registry.closeAll();
  }
}
