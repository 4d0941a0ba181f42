import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CURRENCY_CODES } from '../../../../src/domain/currency.js';
import { PrepareRefused } from '../../../../src/providers/payment-provider.js';
import type { CanonicalPayment } from '../../../../src/providers/payment-provider.js';
import { fromStripeAmount, toStripeAmount } from '../../../../src/providers/stripe/stripe.money.js';
import type { StripeResource } from '../../../../src/providers/stripe/stripe.object.js';
import { instructionOf, parametersOf } from '../../../../src/providers/stripe/stripe.request.js';
import { PAYMENT } from '../../../support/stripe-exchange.js';

const payment = (changes: Partial<CanonicalPayment> = {}): CanonicalPayment => ({
  ...PAYMENT,
  amountMinor: 1_250n,
  currency: 'EUR',
  destination: 'acct_1Payee',
  reference: null,
  description: null,
  ...changes,
});

function refusalOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof PrepareRefused) return error.code;
    throw error;
  }
  return 'accepted';
}

describe('amounts', () => {
  it.each([
    ['EUR', 1_250n, 1_250n],
    ['JPY', 500n, 500n],
    ['KRW', 1n, 1n],
    ['KWD', 1_230n, 1_230n],
    // 5 krónur are 500 there.
    ['ISK', 5n, 500n],
    // 5.00 ariary are 5 there.
    ['MGA', 500n, 5n],
  ])('AM-01: %s %d minor units are %d there, and back', (currency, minor, there) => {
    expect(toStripeAmount(minor, currency)).toBe(there);
    expect(fromStripeAmount(there, currency)).toBe(minor);
  });

  it.each([
    ['UGX', 500n, 'currency_ambiguous'],
    ['IQD', 1_000n, 'currency_unusable'],
    ['LYD', 1_000n, 'currency_unusable'],
    ['IRR', 1_000n, 'currency_unusable'],
    ['KWD', 1_234n, 'amount_not_expressible'],
    ['MGA', 550n, 'amount_not_expressible'],
  ])('AM-01: %s %d is refused as %s', (currency, minor, code) => {
    expect(refusalOf(() => toStripeAmount(minor, currency))).toBe(code);
  });

  it('an amount of theirs that has no meaning here equals nothing', () => {
    expect(fromStripeAmount(501n, 'ISK')).toBeNull();
    expect(fromStripeAmount(500n, 'UGX')).toBeNull();
    expect(fromStripeAmount(500n, 'XXX')).toBeNull();
  });

  it('every amount of every currency comes back as it was, or is refused', () => {
    const amounts = fc.bigInt({ min: 1n, max: 999_999_999_999n });
    fc.assert(
      fc.property(fc.constantFrom(...CURRENCY_CODES), amounts, (currency, minor) => {
        let there: bigint;
        try {
          there = toStripeAmount(minor, currency);
        } catch (error) {
          expect(error).toBeInstanceOf(PrepareRefused);
          return;
        }
        expect(fromStripeAmount(there, currency)).toBe(minor);
      }),
    );
  });
});

describe('parameters', () => {
  it('a transfer names its payment in the group and in the metadata', () => {
    expect(
      JSON.parse(parametersOf(payment({ description: 'Rent', reference: 'inv-1' }), 'transfer')),
    ).toEqual({
      amount: 1250,
      currency: 'eur',
      destination: 'acct_1Payee',
      description: 'Rent',
      transfer_group: PAYMENT.paymentId,
      metadata: {
        payment_id: PAYMENT.paymentId,
        generation: '1',
        provider_key: PAYMENT.providerKey,
        client_reference: 'inv-1',
      },
    });
  });

  it('a PaymentIntent is made without confirm, and only our secret key can release it', () => {
    const body = JSON.parse(
      parametersOf(payment({ destination: 'cus_1Payer:pm_1Card' }), 'payment_intent'),
    ) as object;
    expect(body).toMatchObject({
      customer: 'cus_1Payer',
      payment_method: 'pm_1Card',
      payment_method_types: ['card'],
      confirmation_method: 'manual',
    });
    expect(body).not.toHaveProperty('confirm');
    expect(body).not.toHaveProperty('transfer_group');
  });

  it.each<[StripeResource, string]>([
    ['transfer', 'acct_1Payee'],
    ['payment_intent', 'pm_1Card'],
    ['payment_intent', 'cus_1Payer:pm_1Card'],
  ])('%s %s: what was written is read back', (resource, destination) => {
    const text = parametersOf(payment({ destination }), resource);
    expect(parametersOf(payment({ destination }), resource)).toBe(text);
    expect(instructionOf(text)).toMatchObject({
      ...PAYMENT,
      resource,
      amountMinor: 1_250n,
      currency: 'EUR',
      destination,
    });
  });

  it.each<[StripeResource, Partial<CanonicalPayment>, string]>([
    ['transfer', { destination: 'pm_1Card' }, 'destination_of_other_provider'],
    ['transfer', { destination: 'cus_1Payer:pm_1Card' }, 'destination_of_other_provider'],
    ['payment_intent', { destination: 'acct_1Payee' }, 'destination_of_other_provider'],
    ['transfer', { destination: 'ba_1Bank' }, 'bank_destination_unsupported'],
    ['payment_intent', { destination: 'card_1Card' }, 'bank_destination_unsupported'],
    ['payment_intent', { destination: 'cus_1Payer' }, 'payment_method_required'],
    ['transfer', { destination: 'acct_' }, 'destination_unusable'],
    ['transfer', { destination: 'acct_1Payee/../x' }, 'destination_unusable'],
    ['payment_intent', { destination: 'cus_1Payer:' }, 'destination_unusable'],
    ['payment_intent', { destination: 'pm_1Card:cus_1Payer' }, 'destination_unusable'],
    ['transfer', { destination: '' }, 'destination_unusable'],
    ['payment_intent', { destination: 'pm_1Card', amountMinor: 100_000_000n }, 'amount_out_of_range'],
    ['transfer', { amountMinor: 0n }, 'amount_out_of_range'],
    ['transfer', { amountMinor: 999_999_999_999n, currency: 'ISK' }, 'amount_out_of_range'],
    ['transfer', { currency: 'UGX' }, 'currency_ambiguous'],
    ['transfer', { description: 'x'.repeat(501) }, 'description_unusable'],
    ['transfer', { description: '\ud800' }, 'description_unusable'],
    ['transfer', { reference: '' }, 'client_reference_unusable'],
  ])('%s %o is refused as %s', (resource, changes, code) => {
    expect(refusalOf(() => parametersOf(payment(changes), resource))).toBe(code);
  });

  it.each(['', 'x', '[]', '{}', '{"amount":1,"currency":"eur","metadata":{}}', '{"amount":1.5}'])(
    'other text is no instruction: %s',
    (text) => {
      expect(instructionOf(text)).toBeNull();
    },
  );
});
