import type { ProviderDescriptor } from '../payment-provider.js';
import { STRIPE_EXPONENTS } from './stripe.money.js';
import { LOOKUP_PATHS } from './stripe.lookup.js';
import type { StripeResource } from './stripe.object.js';
import { MAX_INTENT_AMOUNT, MAX_TRANSFER_AMOUNT } from './stripe.request.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What both resources share. */
const COMMON = {
  // Nothing is published; an assumption, five times the longest deadline.
  maxInFlightMs: 120_000,
  settlesWithinMs: 10 * DAY_MS,
  // Published for one endpoint, and for all calls of an account (docs.stripe.com/rate-limits).
  ratePerSecond: 25,
  accountRatePerSecond: 100,
  webhooks: 'stripe_v1',
  settlement: 'csv',
} as const satisfies Partial<ProviderDescriptor>;

/**
 * transfer: one call moves the money; keys are remembered for 24 h, also stored errors
 * (docs.stripe.com/api/idempotent_requests). payment_intent: an inert object, whose own state admits
 * one confirmation for as long as it exists.
 */
export const DESCRIPTORS: Readonly<Record<StripeResource, ProviderDescriptor>> = {
  transfer: {
    ...COMMON,
    idempotency: {
      mode: 'key',
      life: 24 * HOUR_MS,
      marginMs: 4 * HOUR_MS,
      scope: 'account',
      errors: 'stored',
    },
    lookup: { by: LOOKUP_PATHS.transfer, consistency: 'strong' },
    phases: 1,
    cancel: 'never',
    // A transfer can be reversed for as long as the account exists; after a year nobody waits for it.
    lateFailureMs: 365 * DAY_MS,
    amount: { minMinor: 1n, maxMinor: MAX_TRANSFER_AMOUNT, exponents: STRIPE_EXPONENTS },
  },
  payment_intent: {
    ...COMMON,
    idempotency: { mode: 'object_state', life: 'forever', marginMs: 0, scope: 'account', errors: 'stored' },
    lookup: { by: LOOKUP_PATHS.payment_intent, consistency: 'strong' },
    phases: 2,
    cancel: 'before_commit',
    // Cardholders dispute for 120 days, some networks longer.
    lateFailureMs: 180 * DAY_MS,
    amount: { minMinor: 1n, maxMinor: MAX_INTENT_AMOUNT, exponents: STRIPE_EXPONENTS },
  },
};
