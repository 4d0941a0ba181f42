import { isIPv4, isIPv6 } from 'node:net';
import { z } from 'zod';

/** How fast a caller may call, and whom the API believes about an address. */
export const EdgeEnvironment = {
  PAYMENTS_RATE_LIMITS: z.enum(['on', 'off']).default('on'),
  PAYMENTS_RATE_LIMIT_CLIENT: z.string().default('100/200'),
  PAYMENTS_RATE_LIMIT_TENANT: z.string().default('300/600'),
  PAYMENTS_TRUSTED_PROXIES: z.string().default(''),
};
export type EdgeEnvironment = {
  readonly [K in keyof typeof EdgeEnvironment]: z.infer<(typeof EdgeEnvironment)[K]>;
};

export interface RateSetting {
  readonly ratePerSecond: number;
  readonly burst: number;
}

export interface EdgeSettings {
  /** For tenants that have no limits of their own; null: nobody is limited, to measure what limits cost. */
  readonly rateLimits: { readonly client: RateSetting; readonly tenant: RateSetting } | null;
  /** Addresses and networks of proxies whose X-Forwarded-For counts; empty: none. */
  readonly trustedProxies: readonly string[];
}

/** Tokens per second and burst, as `100/200`; a rate may have a fraction. */
const RATE = /^(\d{1,6}(?:\.\d{1,3})?)\/(\d{1,7})$/;

/** @throws Error with a sentence that names the variable; never its value. */
export function edgeSettingsOf(e: EdgeEnvironment, mode: 'development' | 'production'): EdgeSettings {
  const isOff = e.PAYMENTS_RATE_LIMITS === 'off';
  if (isOff && mode === 'production') {
    throw new Error(
      'PAYMENTS_RATE_LIMITS is off, which production refuses: one client could starve all others.',
    );
  }
  const rateLimits = {
    client: rateOf('PAYMENTS_RATE_LIMIT_CLIENT', e.PAYMENTS_RATE_LIMIT_CLIENT),
    tenant: rateOf('PAYMENTS_RATE_LIMIT_TENANT', e.PAYMENTS_RATE_LIMIT_TENANT),
  };
  return Object.freeze({
    rateLimits: isOff ? null : rateLimits,
    trustedProxies: e.PAYMENTS_TRUSTED_PROXIES.split(',').flatMap(networkOf),
  });
}

function rateOf(name: string, text: string): RateSetting {
  const parts = RATE.exec(text);
  const ratePerSecond = Number(parts?.[1] ?? 0);
  const burst = Number(parts?.[2] ?? 0);
  if (ratePerSecond > 0 && ratePerSecond <= 100_000 && burst >= 1 && burst <= 1_000_000) {
    return Object.freeze({ ratePerSecond, burst });
  }
  throw new Error(`${name} must be requests per second and burst, such as 100/200.`);
}

/** An address or a network in CIDR form; a whole family of addresses (/0) would believe everybody. */
function networkOf(text: string): readonly string[] {
  const entry = text.trim();
  if (entry === '') return [];
  const [address = '', prefix, ...more] = entry.split('/');
  const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : 0;
  const isPrefix =
    prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) >= 1 && Number(prefix) <= bits);
  if (bits > 0 && isPrefix && more.length === 0) return [entry];
  throw new Error(
    'PAYMENTS_TRUSTED_PROXIES must be addresses and networks such as 10.1.0.0/16, separated by commas.',
  );
}
