import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResultClass } from '../../src/domain/provider-outcome.js';
import type { CanonicalPayment, PaymentProvider } from '../../src/providers/payment-provider.js';
import { StripePaymentIntents, StripeTransfers } from '../../src/providers/stripe/stripe.adapter.js';
import {
  SHORT_DEADLINE_MS,
  attemptOf,
  newPayment,
  pay,
  refsOf,
} from '../support/provider-conformance-rig.js';
import { startSimulator } from '../support/simulator.js';
import type { FaultInput, Simulator } from '../support/simulator.js';

/**
 * The Stripe adapter against the simulator's Stripe paths. The simulator is ours, so a mistake about
 * Stripe can agree with itself here; what these tests add are faults and a ledger that counts. Strangers'
 * stand-ins are in test/fakes, Stripe's own test mode in test/contract.
 */
const TROUBLES: readonly [FaultInput, ResultClass, number][] = [
  ['reset_before', 'ambiguous', 0],
  ['reset_after', 'ambiguous', 1],
  ['http_500_before', 'ambiguous', 0],
  ['http_500_after', 'ambiguous', 1],
  ['http_502_html_after', 'ambiguous', 1],
  ['empty_200_after', 'ambiguous', 1],
  ['broken_json_after', 'ambiguous', 1],
  ['truncate_after', 'ambiguous', 1],
  ['other_amount_after', 'key_mismatch', 1],
  ['redirect_307', 'ambiguous', 0],
  [{ kind: 'http_429', retryAfter: 60 }, 'throttled', 0],
  ['http_401', 'config', 0],
  ['http_403', 'config', 0],
  ['decline', 'rejected', 0],
  ['decline_funds', 'rejected_funds', 0],
];

interface World {
  readonly provider: PaymentProvider;
  readonly destination: string;
  /** The call that moves the money. */
  readonly moving: 'submit' | 'commit';
}

let simulator: Simulator;
const worlds: Record<string, World> = {};

beforeAll(async () => {
  simulator = await startSimulator();
  const options = { account: 'acct_1Platform', baseUrl: simulator.url };
  worlds['transfers'] = {
    provider: new StripeTransfers({ ...options, apiKey: simulator.apiKeys.A }),
    destination: 'acct_1Payee',
    moving: 'submit',
  };
  worlds['PaymentIntents'] = {
    provider: new StripePaymentIntents({ ...options, apiKey: simulator.apiKeys.T }),
    destination: 'cus_1Payer:pm_1Card',
    moving: 'commit',
  };
});
afterAll(async () => {
  await Promise.all(Object.values(worlds).map(({ provider }) => provider.close()));
  await simulator.stop();
});

describe.each(['transfers', 'PaymentIntents'])('%s at the facade, which is ours', (name) => {
  const world = (): World => worlds[name] as World;
  const payment = (): CanonicalPayment => newPayment({ destination: world().destination });
  const charges = async ({ paymentId }: CanonicalPayment): Promise<number> =>
    (await simulator.effects(paymentId)).count;
  const script = ({ paymentId }: CanonicalPayment, fault: FaultInput): Promise<unknown> =>
    simulator.script(paymentId, world().moving, fault);

  it('are accepted once, and found by every way there is', async () => {
    const { provider } = world();
    const one = payment();
    const { providerRef, ...result } = await pay(provider, one);
    expect(result).toMatchObject({ class: 'accepted', status: 'succeeded', replayed: false });
    expect(await charges(one)).toBe(1);
    const ways = provider
      .capabilities()
      .lookup.by.filter((way) => way === 'reference' || way === 'list_scan');
    for (const refs of [refsOf(one, { providerRef }), ...ways.map((by) => refsOf(one, { by }))]) {
      expect(await provider.lookup(refs)).toMatchObject({ kind: 'found', result: { status: 'succeeded' } });
    }
    for (const by of ways)
      expect(await provider.lookup(refsOf(payment(), { by }))).toEqual({ kind: 'absent', by: [by] });
  });

  it.each(TROUBLES)('UO-01, UO-03: %o is %s, with %d movements', async (fault, resultClass, count) => {
    const one = payment();
    await script(one, fault);
    expect(await pay(world().provider, one)).toMatchObject({ class: resultClass, bytesSent: true });
    expect(await charges(one)).toBe(count);
  });

  it('DC-01: a lost answer is had again under the same key, and a stored error stays one', async () => {
    const one = payment();
    await script(one, 'reset_after');
    expect((await pay(world().provider, one)).class).toBe('ambiguous');
    expect(await pay(world().provider, one)).toMatchObject({ class: 'accepted', replayed: true });
    const other = payment();
    await script(other, { kind: 'http_500_after', stored: true });
    await pay(world().provider, other);
    expect(await pay(world().provider, other)).toMatchObject({ class: 'ambiguous', code: 'stored_error' });
    expect([await charges(one), await charges(other)]).toEqual([1, 1]);
  });

  it('DC-03: ten calls at once under one key move the money once', async () => {
    const one = payment();
    const results = await Promise.all(Array.from({ length: 10 }, () => pay(world().provider, one)));
    for (const { class: resultClass } of results) expect(['accepted', 'in_flight']).toContain(resultClass);
    expect(await charges(one)).toBe(1);
  });

  it('one key with another amount is a mismatch', async () => {
    const one = payment();
    await pay(world().provider, one);
    expect((await pay(world().provider, { ...one, amountMinor: 9n })).class).toBe('key_mismatch');
    expect(await charges(one)).toBe(1);
  });

  it('DC-01: silence ends ambiguous, and a lost lease leaves no request', async () => {
    const one = payment();
    await script(one, 'hang');
    expect((await pay(world().provider, one, { deadlineMs: SHORT_DEADLINE_MS })).class).toBe('ambiguous');
    const other = payment();
    expect((await pay(world().provider, other, { mayWrite: () => false })).class).toBe('not_sent');
    expect(await simulator.requests(other.paymentId)).toEqual([]);
  });
});

describe('PaymentIntents in two phases at the facade, which is ours', () => {
  it('a stored error of the commit is passed by the second try, and the object admits one', async () => {
    const { provider, destination } = worlds['PaymentIntents'] as World;
    const one = newPayment({ destination });
    const prepared = provider.prepare(one);
    const id = (await provider.submit(prepared, attemptOf(one))).providerRef ?? '';
    await simulator.script(one.paymentId, 'commit', { kind: 'http_500_before', stored: true });
    expect((await provider.commit(prepared, id, attemptOf(one))).class).toBe('ambiguous');
    expect(await provider.commit(prepared, id, attemptOf(one))).toMatchObject({ code: 'stored_error' });
    expect(await provider.lookup(refsOf(one, { providerRef: id }))).toMatchObject({
      result: { status: 'inert' },
    });
    for (const _ of [1, 2]) {
      expect(await provider.commit(prepared, id, attemptOf(one, { commitTry: 2 }))).toMatchObject({
        class: 'accepted',
      });
    }
    expect((await simulator.effects(one.paymentId)).count).toBe(1);
  });

  it('what was stopped cannot be released, and what was released cannot be stopped', async () => {
    const { provider, destination } = worlds['PaymentIntents'] as World;
    const one = newPayment({ destination });
    const prepared = provider.prepare(one);
    const id = (await provider.submit(prepared, attemptOf(one))).providerRef ?? '';
    for (const attempt of [1, 2]) {
      expect(await provider.cancel(id, attemptOf(one, { attempt }))).toMatchObject({
        class: 'accepted',
        code: 'cancelled',
      });
    }
    expect(await provider.commit(prepared, id, attemptOf(one))).toMatchObject({
      class: 'rejected',
      code: 'cancelled',
    });
    const other = newPayment({ destination });
    const { providerRef } = await pay(provider, other);
    expect((await provider.cancel(providerRef ?? '', attemptOf(other))).class).toBe('rejected');
    expect((await simulator.effects(one.paymentId)).count).toBe(0);
    expect((await simulator.effects(other.paymentId)).count).toBe(1);
  });
});
