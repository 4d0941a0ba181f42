import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptContext, CanonicalPayment } from '../../src/providers/payment-provider.js';
import { StripePaymentIntents, StripeTransfers } from '../../src/providers/stripe/stripe.adapter.js';
import { FAKE_KEY, callStandIn, newPayment, standIn } from './stand-in.js';

const url = standIn('stripe-mock');

/** Checks what we send by Stripe's published schema, and answers with fixtures that are nobody's. */
describe.skipIf(url === null)('stripe-mock 0.203.0', () => {
  let transfers: StripeTransfers;
  let intents: StripePaymentIntents;

  beforeAll(() => {
    const options = { apiKey: FAKE_KEY, account: 'acct_1Platform', baseUrl: url ?? '' };
    transfers = new StripeTransfers(options);
    intents = new StripePaymentIntents(options);
  });
  afterAll(async () => {
    await transfers.close();
    await intents.close();
  });

  const detailed = (destination: string): CanonicalPayment => ({
    ...newPayment(destination),
    description: 'Rent for May',
    reference: 'invoice-2041',
  });
  const attempt = (payment: CanonicalPayment): AttemptContext => ({
    ...payment,
    attempt: 1,
    commitTry: 1,
    deadlineMs: 10_000,
    mayWrite: () => true,
  });
  const refs = (
    payment: CanonicalPayment,
    by: 'any' | 'reference' | 'list_scan',
    providerRef: string | null,
  ) => ({
    ...payment,
    providerRef,
    by,
    sentSince: new Date(),
    deadlineMs: 10_000,
    expected: payment,
  });

  it('the judge: a parameter that is not in the schema is refused', async () => {
    const form = { amount: '1250', currency: 'eur', destination: 'acct_1Payee', transfer_groups: 'x' };
    expect(await callStandIn(url ?? '', '/v1/transfers', form)).toHaveProperty('error');
  });

  it('the schema accepts a transfer with all its members; the fixture is not taken for ours', async () => {
    const payment = detailed('acct_1Payee');
    const result = await transfers.submit(transfers.prepare(payment), attempt(payment));
    expect(result).toMatchObject({ httpStatus: 200, class: 'key_mismatch' });
  });

  it.each(['pm_1Card', 'cus_1Payer:pm_1Card'])(
    'the schema accepts a PaymentIntent for %s, its release and its end',
    async (destination) => {
      const payment = detailed(destination);
      const prepared = intents.prepare(payment);
      const made = await intents.submit(prepared, attempt(payment));
      const committed = await intents.commit(prepared, 'pi_1Intent', attempt(payment));
      const stopped = await intents.cancel('pi_1Intent', attempt(payment));
      for (const result of [made, committed, stopped]) {
        expect(result.httpStatus).toBe(200);
        expect(['key_mismatch', 'ambiguous']).toContain(result.class);
      }
    },
  );

  it('the schema accepts every way to look up', async () => {
    const payment = detailed('acct_1Payee');
    // A fixture that was understood and is not ours: the request itself passed.
    expect((await transfers.lookup(refs(payment, 'reference', null))).kind).toBe('found_other');
    expect((await transfers.lookup(refs(payment, 'list_scan', null))).kind).toBe('absent');
    expect((await transfers.lookup(refs(payment, 'any', 'tr_1Transfer'))).kind).toBe('found_other');
    const fromCard = detailed('cus_1Payer:pm_1Card');
    expect((await intents.lookup(refs(fromCard, 'list_scan', null))).kind).toBe('absent');
  });
});
