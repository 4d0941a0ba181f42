import type { Sql, Statement } from '../persistence/database.js';
import type { PaymentProvider, ProviderDescriptor } from '../providers/payment-provider.js';
import { capabilityClass } from '../providers/provider-descriptor.js';
import { BURST_SECONDS, SHARE_OF_DECLARED_RATE } from './lane-policy.js';

/** The lane of a payment: one per provider and account, since both bound its rate. */
export function laneName(provider: Pick<PaymentProvider, 'name' | 'account'>): string {
  return `${provider.name}/${provider.account}`;
}

/** The simulator runs beside us and has no other user: it must never be what slows a test. */
const SIMULATED_RATE_PER_SECOND = 20_000;
/** Calls in flight per lane and worker. */
const CALLS_IN_FLIGHT = 200;

export interface LaneLimits {
  readonly ratePerSecond: number;
  readonly burst: number;
  readonly callsInFlight: number;
}

/** The limits that a new lane starts with; operators change them in its row afterwards. */
export function laneLimits(provider: Pick<PaymentProvider, 'name' | 'capabilities'>): LaneLimits {
  const ratePerSecond = /^simulated(_|$)/.test(provider.name)
    ? SIMULATED_RATE_PER_SECOND
    : declaredRate(provider.capabilities()) * SHARE_OF_DECLARED_RATE;
  return {
    ratePerSecond,
    burst: Math.max(1, ratePerSecond * BURST_SECONDS),
    callsInFlight: CALLS_IN_FLIGHT,
  };
}

/**
 * Payments a second that the declared limits bear. The calls of one payment go to different endpoints,
 * so each endpoint's limit holds for it whole; the account's limit is shared by its calls: create and
 * commit in two phases, the look before the send where there is no key.
 */
function declaredRate(descriptor: ProviderDescriptor): number {
  const calls = descriptor.phases === 2 || capabilityClass(descriptor) === 'C' ? 2 : 1;
  return Math.min(descriptor.ratePerSecond, descriptor.accountRatePerSecond / calls);
}

const ENSURE: Statement = {
  name: 'lane-ensure',
  text: `INSERT INTO lane (lane, provider, account, rate, burst, tokens, cap)
VALUES ($1, $2, $3, $4, $5, $5, $6) ON CONFLICT DO NOTHING`,
};

/**
 * Makes sure that every provider has its lane. An existing lane keeps what operators set.
 * @returns how many lanes were new. @throws StorageUnavailable, OutcomeUnknown: call again.
 * Twice, or by many processes at once: the first insert stays.
 */
export async function ensureLanes(db: Sql, providers: readonly PaymentProvider[]): Promise<number> {
  let made = 0;
  for (const provider of providers) {
    const { ratePerSecond, burst, callsInFlight } = laneLimits(provider);
    const { rowCount } = await db.query(ENSURE, [
      laneName(provider),
      provider.name,
      provider.account,
      ratePerSecond,
      burst,
      callsInFlight,
    ]);
    made += rowCount;
  }
  return made;
}
