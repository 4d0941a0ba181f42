import Stripe from 'stripe';
import type { StripeHead } from '../../src/providers/stripe/stripe.call.js';
import type { StripeExchange } from '../../src/providers/stripe/stripe.client.js';
import type { Expected } from '../../src/providers/stripe/stripe.verdict.js';

/** What tests of the Stripe adapter take for granted: one payment, and answers about it. */
export const PAYMENT = Object.freeze({
  paymentId: 'pay_mzxw6ytboi4dqnbq',
  generation: 1,
  providerKey: '8b5f0d3c-6d2a-5c0e-9b61-2f6d1c7a4e10',
});
const METADATA = {
  payment_id: PAYMENT.paymentId,
  generation: '1',
  provider_key: PAYMENT.providerKey,
};

export const TRANSFER_EXPECTED: Expected = {
  ...PAYMENT,
  resource: 'transfer',
  livemode: false,
  money: { amountMinor: 1_250n, currency: 'EUR', destination: 'acct_1Payee' },
  providerRef: null,
};
export const INTENT_EXPECTED: Expected = {
  ...PAYMENT,
  resource: 'payment_intent',
  livemode: false,
  money: { amountMinor: 1_250n, currency: 'EUR', destination: 'cus_1Payer:pm_1Card' },
  providerRef: null,
};

/** A transfer as Stripe tells it. */
export function transfer(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: 'tr_1Transfer',
    object: 'transfer',
    amount: 1250,
    amount_reversed: 0,
    created: 1_790_000_000,
    currency: 'eur',
    description: null,
    destination: 'acct_1Payee',
    livemode: false,
    metadata: METADATA,
    reversals: { object: 'list', data: [], has_more: false },
    reversed: false,
    transfer_group: PAYMENT.paymentId,
    ...changes,
  };
}

/** A PaymentIntent as Stripe tells it. */
export function intent(status: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: 'pi_1Intent',
    object: 'payment_intent',
    amount: 1250,
    amount_received: status === 'succeeded' ? 1250 : 0,
    created: 1_790_000_000,
    currency: 'eur',
    customer: 'cus_1Payer',
    last_payment_error: null,
    livemode: false,
    metadata: METADATA,
    payment_method: 'pm_1Card',
    status,
    ...changes,
  };
}

export function head(
  status: number,
  headers: Record<string, string> = {},
  body: string | null = null,
): StripeHead {
  return { status, headers: { 'request-id': 'req_1', ...headers }, receivedAtMs: 1_790_000_000_000, body };
}

/** The SDK resolved: an answer without `error`. */
export function resolved(value: unknown, status = 200, headers: Record<string, string> = {}): StripeExchange {
  const body = JSON.stringify(value) ?? null;
  return {
    outcome: { kind: 'resolved', value },
    bytesSent: true,
    fault: null,
    head: head(status, headers, body),
  };
}

/** The SDK threw. `status` null: there was no answer. */
export function thrown(
  error: unknown,
  status: number | null = null,
  headers: Record<string, string> = {},
): StripeExchange {
  const at = status === null ? null : head(status, headers, '{"error":{}}');
  return { outcome: { kind: 'thrown', error }, bytesSent: true, fault: null, head: at };
}

/** An answer in the error form of the first API, as the SDK turns it into an error. */
export function apiError(
  statusCode: number,
  raw: Record<string, unknown>,
  headers: Record<string, string> = {},
): StripeExchange {
  const error = Stripe.errors.generateV1Error({ ...raw, statusCode, headers, requestId: 'req_1' } as never);
  return thrown(error, statusCode, headers);
}

/** The same of the second API. */
export function apiErrorV2(statusCode: number, raw: Record<string, unknown>): StripeExchange {
  const error = Stripe.errors.generateV2Error({
    ...raw,
    statusCode,
    headers: {},
    requestId: 'req_1',
  } as never);
  return thrown(error, statusCode);
}
