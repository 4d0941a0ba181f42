import type { LookupPath, ProviderDescriptor } from '../payment-provider.js';
import { MAX_AMOUNT_MINOR } from './simulated.request.js';

/**
 * How much the provider behind one API key promises. A: keys and lookups. B: keys only. C: lookups
 * only. D: neither. T: an inert payout first, then its commit.
 */
export type SimulatedProfile = 'A' | 'B' | 'C' | 'D' | 'T';

export const SIMULATED_PROFILES: readonly SimulatedProfile[] = ['A', 'B', 'C', 'D', 'T'];

export interface DescriptorOptions {
  readonly profile: SimulatedProfile;
  /** Rigs that shorten the simulator's key life say so here; the simulator alone may have any margin. */
  readonly keyLifeMs?: number;
  readonly keyMarginMs?: number;
  /** Other differences, for rigs that test a provider that promises less. */
  readonly changes?: Partial<ProviderDescriptor>;
}

const HOUR_MS = 3_600_000;
const LOOKUPS: readonly LookupPath[] = ['provider_id', 'reference', 'list_scan'];

const IDEMPOTENCY: Readonly<Record<SimulatedProfile, ProviderDescriptor['idempotency']>> = {
  A: keyed('key'),
  B: keyed('key'),
  C: unkeyed(),
  D: unkeyed(),
  // The payout's own state admits one commit, and an inert payout never ends.
  T: { ...keyed('object_state'), life: 'forever', marginMs: 0 },
};

/** What the simulator promises to the accounts of a profile. */
export function describeSimulated({
  profile,
  keyLifeMs,
  keyMarginMs,
  changes,
}: DescriptorOptions): ProviderDescriptor {
  const idempotency = IDEMPOTENCY[profile];
  const hasLookup = profile !== 'B' && profile !== 'D';
  const descriptor: ProviderDescriptor = {
    idempotency: {
      ...idempotency,
      life: keyLifeMs ?? idempotency.life,
      marginMs: keyMarginMs ?? idempotency.marginMs,
    },
    lookup: hasLookup ? { by: LOOKUPS, consistency: 'strong' } : { by: [], consistency: 'none' },
    maxInFlightMs: 35_000,
    settlesWithinMs: 10 * 24 * HOUR_MS,
    phases: profile === 'T' ? 2 : 1,
    cancel: profile === 'T' ? 'before_commit' : 'never',
    // A return may follow at any time that a test plans.
    lateFailureMs: 30 * 24 * HOUR_MS,
    ratePerSecond: 20_000,
    accountRatePerSecond: 20_000,
    webhooks: 'simulated_v1',
    settlement: 'csv',
    amount: { minMinor: 1n, maxMinor: MAX_AMOUNT_MINOR, exponents: {} },
    ...changes,
  };
  return Object.freeze(descriptor);
}

function keyed(mode: 'key' | 'object_state'): ProviderDescriptor['idempotency'] {
  return { mode, life: 24 * HOUR_MS, marginMs: 4 * HOUR_MS, scope: 'account', errors: 'stored' };
}

/** No key, so none that could end: a call that provably never left may be repeated until its deadline. */
function unkeyed(): ProviderDescriptor['idempotency'] {
  return { mode: 'none', life: 'forever', marginMs: 0, scope: 'account', errors: 'forgotten' };
}
