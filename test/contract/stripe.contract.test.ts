import { randomUUID } from 'node:crypto';
import Stripe from 'stripe';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptContext, CanonicalPayment, LookupRefs } from '../../src/providers/payment-provider.js';
import { StripePaymentIntents, StripeTransfers } from '../../src/providers/stripe/stripe.adapter.js';
import { STRIPE_API_VERSION } from '../../src/providers/stripe/stripe.client.js';

/**
 * Stripe's own test mode. STRIPE_TEST_KEY: a secret test key. STRIPE_TEST_ACCOUNT: its account.
 * STRIPE_TEST_DESTINATION: a connected account that may receive transfers, with funds to send (test
 * mode: charge `tok_bypassPending`). Nothing runs without the first; transfers not without the last.
 */
const key = process.env['STRIPE_TEST_KEY'] ?? '';
const account = process.env['STRIPE_TEST_ACCOUNT'] ?? 'acct_unnamed';
const destination = process.env['STRIPE_TEST_DESTINATION'] ?? '';
const currency = process.env['STRIPE_TEST_CURRENCY'] ?? 'EUR';

const hasKey = /^[sr]k_test_/.test(key);
const skipAloud = (what: string, missing: string): boolean => {
  process.stdout.write(`SKIPPED: ${what} did not run: ${missing} is not set.\n`);
  return true;
};
if (key !== '' && !hasKey) throw new Error('STRIPE_TEST_KEY is not a test key: nothing is sent with it.');
const withoutKey = !hasKey && skipAloud('the contract with Stripe', 'STRIPE_TEST_KEY');
const withoutDestination =
  !withoutKey && destination === '' && skipAloud('the contract about transfers', 'STRIPE_TEST_DESTINATION');

const newPayment = (to: string): CanonicalPayment => ({
  paymentId: `pay_${randomUUID().replaceAll('-', '')}`,
  generation: 1,
  providerKey: randomUUID(),
  amountMinor: 1_250n,
  currency,
  destination: to,
  reference: null,
  description: null,
});
const attempt = (payment: CanonicalPayment): AttemptContext => ({
  ...payment,
  attempt: 1,
  commitTry: 1,
  deadlineMs: 25_000,
  mayWrite: () => true,
});
const startedAt = new Date();
const refs = (payment: CanonicalPayment, changes: Partial<LookupRefs> = {}): LookupRefs => ({
  ...payment,
  providerRef: null,
  by: 'any',
  sentSince: startedAt,
  deadlineMs: 25_000,
  expected: payment,
  ...changes,
});

describe.skipIf(withoutKey)('PaymentIntents in Stripe’s test mode', () => {
  let provider: StripePaymentIntents;
  let stripe: Stripe;

  beforeAll(() => {
    provider = new StripePaymentIntents({ apiKey: key, account });
    stripe = new Stripe(key, { apiVersion: STRIPE_API_VERSION, telemetry: false });
  });
  afterAll(() => provider.close());

  /** A customer with a saved card. @returns our word for both. */
  async function payer(card: string): Promise<string> {
    const customer = await stripe.customers.create({ description: 'contract test' });
    const method = await stripe.paymentMethods.attach(card, { customer: customer.id });
    return `${customer.id}:${method.id}`;
  }

  it('make, release, find again: by id, by scan; one key twice is one object', async () => {
    const payment = newPayment(await payer('pm_card_visa'));
    const prepared = provider.prepare(payment);
    const made = await provider.submit(prepared, attempt(payment));
    expect(made).toMatchObject({ class: 'accepted', status: 'inert', replayed: false });
    const again = await provider.submit(prepared, attempt(payment));
    expect(again).toMatchObject({ providerRef: made.providerRef, replayed: true });
    const id = made.providerRef ?? '';
    const committed = await provider.commit(prepared, id, attempt(payment));
    expect(committed).toMatchObject({ class: 'accepted', status: 'succeeded' });
    expect(await provider.lookup(refs(payment, { providerRef: id }))).toMatchObject({ kind: 'found' });
    expect(await provider.lookup(refs(payment, { by: 'list_scan' }))).toMatchObject({ kind: 'found' });
    const second = await provider.commit(prepared, id, { ...attempt(payment), commitTry: 2 });
    expect(second).toMatchObject({ class: 'accepted', status: 'succeeded', providerRef: id });
  });

  it('one key with another amount is a mismatch', async () => {
    const payment = newPayment(await payer('pm_card_visa'));
    await provider.submit(provider.prepare(payment), attempt(payment));
    const other = { ...payment, amountMinor: 1_300n };
    expect(await provider.submit(provider.prepare(other), attempt(other))).toMatchObject({
      class: 'key_mismatch',
    });
  });

  it('a card that declines is a refusal, and is read as one', async () => {
    const payment = newPayment(await payer('pm_card_chargeCustomerFail'));
    const prepared = provider.prepare(payment);
    const { providerRef } = await provider.submit(prepared, attempt(payment));
    const id = providerRef ?? '';
    expect(await provider.commit(prepared, id, attempt(payment))).toMatchObject({
      class: 'rejected',
      status: 'failed',
    });
    expect(await provider.lookup(refs(payment, { providerRef: id }))).toMatchObject({
      kind: 'found',
      result: { class: 'rejected', status: 'failed' },
    });
  });

  it('a card that wants its customer is a refusal, and the object is stopped', async () => {
    const payment = newPayment(await payer('pm_card_authenticationRequired'));
    const prepared = provider.prepare(payment);
    const { providerRef } = await provider.submit(prepared, attempt(payment));
    const id = providerRef ?? '';
    expect(await provider.commit(prepared, id, attempt(payment))).toMatchObject({
      class: 'rejected',
      code: 'authentication_required',
    });
    expect((await stripe.paymentIntents.retrieve(id)).status).toBe('canceled');
  });

  it('an object that was stopped cannot be released', async () => {
    const payment = newPayment(await payer('pm_card_visa'));
    const prepared = provider.prepare(payment);
    const id = (await provider.submit(prepared, attempt(payment))).providerRef ?? '';
    expect(await provider.cancel(id, attempt(payment))).toMatchObject({
      class: 'accepted',
      code: 'cancelled',
    });
    expect(await provider.commit(prepared, id, attempt(payment))).toMatchObject({
      class: 'rejected',
      code: 'cancelled',
    });
    expect(await provider.lookup(refs(payment, { providerRef: id }))).toMatchObject({
      kind: 'found',
      result: { code: 'cancelled' },
    });
  });

  it('a wrong key is a matter of configuration', async () => {
    const stranger = new StripePaymentIntents({ apiKey: 'sk_test_nobody', account });
    const payment = newPayment('pm_card_visa');
    expect(await stranger.submit(stranger.prepare(payment), attempt(payment))).toMatchObject({
      class: 'config',
    });
    await stranger.close();
  });
});

describe.skipIf(withoutKey || withoutDestination)('transfers in Stripe’s test mode', () => {
  let provider: StripeTransfers;
  beforeAll(() => {
    provider = new StripeTransfers({ apiKey: key, account });
  });
  afterAll(() => provider.close());

  it('pay once under one key, and find it by id, by group and by scan', async () => {
    const payment = newPayment(destination);
    expect(await provider.lookup(refs(payment))).toEqual({ kind: 'absent', by: ['reference'] });
    const prepared = provider.prepare(payment);
    const first = await provider.submit(prepared, attempt(payment));
    expect(first).toMatchObject({ class: 'accepted', status: 'succeeded', replayed: false });
    expect(await provider.submit(prepared, attempt(payment))).toMatchObject({
      providerRef: first.providerRef,
      replayed: true,
    });
    for (const changes of [
      { providerRef: first.providerRef },
      { by: 'reference' },
      { by: 'list_scan' },
    ] as const) {
      expect(await provider.lookup(refs(payment, changes))).toMatchObject({ kind: 'found' });
    }
  });

  it('more than there is: a refusal for funds', async () => {
    const payment = { ...newPayment(destination), amountMinor: 99_999_999n };
    expect(await provider.submit(provider.prepare(payment), attempt(payment))).toMatchObject({
      class: 'rejected_funds',
    });
  });

  it('an account that does not exist: a refusal', async () => {
    const payment = newPayment('acct_1NobodyAtAll0000');
    expect((await provider.submit(provider.prepare(payment), attempt(payment))).class).toBe('rejected');
  });
});
