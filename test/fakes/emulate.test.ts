import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StripePaymentIntents, StripeTransfers } from '../../src/providers/stripe/stripe.adapter.js';
import { relayTo } from './relay.js';
import { FAKE_KEY, callStandIn, newPayment, standIn } from './stand-in.js';
import { TwoPhaseWorker } from './two-phase-worker.js';
import { twoPhaseCrashes } from './two-phase-crashes.js';
import type { TwoPhaseWorld } from './two-phase-crashes.js';

const url = standIn('emulate');

describe.skipIf(url === null)('emulate 0.12.2', () => {
  let world: TwoPhaseWorld;
  let transfers: StripeTransfers;

  beforeAll(async () => {
    if (url === null) return;
    const relay = await relayTo(url);
    const options = { apiKey: FAKE_KEY, account: 'acct_1Platform', baseUrl: relay.url };
    const { id } = await callStandIn(url, '/v1/customers', { email: 'payer@example.com' });
    world = {
      url,
      relay,
      provider: new StripePaymentIntents(options),
      destination: `${String(id)}:pm_1Card`,
    };
    transfers = new StripeTransfers(options);
  });
  afterAll(async () => {
    await world.provider.close();
    await transfers.close();
    await world.relay.close();
  });

  twoPhaseCrashes(() => world);

  it('UO-02: a 404 without `error` is neither a refusal nor an absence', async () => {
    const payment = newPayment('acct_1Payee');
    const attempt = { ...payment, attempt: 1, commitTry: 1, deadlineMs: 5_000, mayWrite: () => true };
    expect(await transfers.submit(transfers.prepare(payment), attempt)).toMatchObject({
      class: 'ambiguous',
      httpStatus: 404,
    });
    const refs = { ...payment, providerRef: null, sentSince: null, deadlineMs: 5_000, expected: payment };
    expect(await transfers.lookup({ ...refs, by: 'reference' })).toMatchObject({ kind: 'cannot_tell' });
  });

  it('a scan finds what was paid among the orphans of lost answers', async () => {
    const payment = newPayment(world.destination);
    world.relay.meet('lose_answer', 'lose_answer');
    const paid = await new TwoPhaseWorker(world.provider, payment).run();
    const refs = {
      ...payment,
      providerRef: null,
      sentSince: new Date(),
      deadlineMs: 5_000,
      expected: payment,
    };
    expect(await world.provider.lookup({ ...refs, by: 'list_scan' })).toMatchObject({
      kind: 'found',
      result: { status: 'succeeded', providerRef: paid.providerRef },
    });
  });

  it('UO-02: an id that it does not have proves nothing', async () => {
    const payment = newPayment(world.destination);
    const refs = {
      ...payment,
      providerRef: 'pi_nowhere',
      sentSince: null,
      by: 'any' as const,
      deadlineMs: 5_000,
      expected: payment,
    };
    expect(await world.provider.lookup(refs)).toEqual({ kind: 'cannot_tell', code: 'resource_missing' });
  });
});
