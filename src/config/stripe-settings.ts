import { z } from 'zod';

/** The members of the environment that make Stripe a provider of this process. */
export const StripeEnvironment = {
  PAYMENTS_STRIPE_API_KEY: z.string().min(1).optional(),
  PAYMENTS_STRIPE_ACCOUNT: z
    .string()
    .regex(/^acct_[0-9A-Za-z]{4,64}$/)
    .optional(),
  PAYMENTS_STRIPE_URL: z.url({ protocol: /^https?$/ }).optional(),
};

export interface StripeSettings {
  readonly apiKey: string;
  /** The account that the key belongs to. The lanes are `stripe/<account>` and `stripe_intents/<account>`. */
  readonly account: string;
  /** Another address than Stripe's, for stand-ins. null: Stripe. */
  readonly url: string | null;
}

/**
 * @returns null when nothing of Stripe is set: then this process has no such provider.
 * @throws Error when half of it is set, or a test key meets production, or
 * a live key anything else. Never tells the key.
 */
export function stripeSettingsOf(
  env: z.infer<z.ZodObject<typeof StripeEnvironment>>,
  mode: 'development' | 'production',
): StripeSettings | null {
  const { PAYMENTS_STRIPE_API_KEY: apiKey, PAYMENTS_STRIPE_ACCOUNT: account, PAYMENTS_STRIPE_URL: url } = env;
  if (apiKey === undefined && account === undefined && url === undefined) return null;
  if (apiKey === undefined || account === undefined) {
    throw new Error(
      'Stripe needs PAYMENTS_STRIPE_ACCOUNT, and PAYMENTS_STRIPE_API_KEY or PAYMENTS_STRIPE_API_KEY_FILE.',
    );
  }
  refuseWrongMode(apiKey, mode);
  if (url !== undefined && mode === 'production') {
    throw new Error('PAYMENTS_STRIPE_URL is for stand-ins; in production Stripe is where Stripe is.');
  }
  return Object.freeze({ apiKey, account, url: url ?? null });
}

/** Money of a test is no money, and a payment of a test must not be real: both are found out here. */
function refuseWrongMode(apiKey: string, mode: 'development' | 'production'): void {
  const keyMode = /^[sr]k_(live|test)_[0-9A-Za-z_]+$/.exec(apiKey)?.[1];
  if (keyMode === undefined) {
    throw new Error(
      "Stripe's key must be a secret or restricted key: sk_live_, rk_live_, sk_test_ or rk_test_.",
    );
  }
  if (keyMode === 'test' && mode === 'production') {
    throw new Error("Stripe's key is a test key; PAYMENTS_MODE=production would pay nobody with it.");
  }
  if (keyMode === 'live' && mode !== 'production') {
    throw new Error("Stripe's key is a live key; only PAYMENTS_MODE=production may move real money.");
  }
}
