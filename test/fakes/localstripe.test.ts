import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StripePaymentIntents } from '../../src/providers/stripe/stripe.adapter.js';
import { relayTo } from './relay.js';
import { FAKE_KEY, callStandIn, chargesOf, newPayment, standIn } from './stand-in.js';
import { twoPhaseCrashes } from './two-phase-crashes.js';
import type { TwoPhaseWorld } from './two-phase-crashes.js';
import { TwoPhaseWorker } from './two-phase-worker.js';

const url = standIn('localstripe');
const GOOD = '4242424242424242';
const DECLINED = '4000000000000341';
const NEEDS_CUSTOMER = '4000002500003155';

describe.skipIf(url === null)('localstripe 1.15.10', () => {
  let world: TwoPhaseWorld;

  beforeAll(async () => {
    if (url === null) return;
    const relay = await relayTo(url, ['confirmation_method', 'off_session']);
    const provider = new StripePaymentIntents({
      apiKey: FAKE_KEY,
      account: 'acct_1Platform',
      baseUrl: relay.url,
    });
    world = { url, relay, provider, destination: await method(url, GOOD) };
  });
  afterAll(async () => {
    await world.provider.close();
    await world.relay.close();
  });

  twoPhaseCrashes(() => world);

  it.each([
    ['whose answer arrives', []],
    ['whose answer is lost', ['pass', 'pass', 'lose_answer'] as const],
  ])('UO-03: a decline %s is settled by reading the object: refused, no charge', async (_name, fates) => {
    const payment = newPayment(await method(world.url, DECLINED));
    world.relay.meet(...fates);
    const result = await new TwoPhaseWorker(world.provider, payment).run();
    expect(result).toMatchObject({ class: 'rejected', status: 'failed', code: 'card_declined' });
    expect(await chargesOf(world.url, result.providerRef)).toBe(0);
  });

  it('a customer who must authenticate is neither a success nor a failure, and the object can be stopped', async () => {
    const payment = newPayment(await method(world.url, NEEDS_CUSTOMER));
    const { provider } = world;
    const attempt = { ...payment, attempt: 1, commitTry: 1, deadlineMs: 5_000, mayWrite: () => true };
    const { providerRef } = await provider.submit(provider.prepare(payment), attempt);
    const id = providerRef ?? '';
    expect(await provider.commit(provider.prepare(payment), id, attempt)).toMatchObject({
      class: 'ambiguous',
      code: 'requires_action',
    });
    const refs = {
      ...payment,
      providerRef: id,
      sentSince: null,
      by: 'any' as const,
      deadlineMs: 5_000,
      expected: payment,
    };
    expect(await provider.lookup(refs)).toEqual({ kind: 'cannot_tell', code: 'requires_action' });
    expect(await provider.cancel(id, attempt)).toMatchObject({ class: 'accepted', code: 'cancelled' });
    expect(await chargesOf(world.url, id)).toBe(0);
  });
});

/** @returns the id of a new payment method with that card. */
async function method(at: string, number: string): Promise<string> {
  const { id } = await callStandIn(at, '/v1/payment_methods', {
    type: 'card',
    'card[number]': number,
    'card[exp_month]': '12',
    'card[exp_year]': '2099',
    'card[cvc]': '123',
  });
  return String(id);
}
