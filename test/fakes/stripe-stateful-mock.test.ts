import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProviderResult } from '../../src/providers/payment-provider.js';
import { StripeClient } from '../../src/providers/stripe/stripe.client.js';
import type { StripeExchange } from '../../src/providers/stripe/stripe.client.js';
import { mapWrite } from '../../src/providers/stripe/stripe.mapping.js';
import { INTENT_EXPECTED } from '../support/stripe-exchange.js';
import { relayTo } from './relay.js';
import type { Relay } from './relay.js';
import { FAKE_KEY, callStandIn, standIn } from './stand-in.js';

const url = standIn('stripe-stateful-mock');

/** The stand-in has charges only, so the client and the mapping meet it, not the adapter. */
describe.skipIf(url === null)('stripe-stateful-mock 0.0.16', () => {
  let relay: Relay;
  let client: StripeClient;

  beforeAll(async () => {
    if (url === null) return;
    relay = await relayTo(url);
    client = new StripeClient({
      baseUrl: relay.url,
      apiKey: FAKE_KEY,
      connectTimeoutMs: 3_000,
      sdkTimeoutMs: 20_000,
      maxSockets: 8,
    });
  });
  afterAll(async () => {
    await client.close();
    await relay.close();
  });

  const charge = (idempotencyKey: string, source = 'tok_visa', amount = 1_250): Promise<StripeExchange> =>
    client.exchange(
      (stripe) => stripe.charges.create({ amount, currency: 'eur', source }, { idempotencyKey }),
      {
        deadlineMs: 5_000,
        mayWrite: () => true,
      },
    );
  const result = (exchange: StripeExchange): ProviderResult => mapWrite(exchange, INTENT_EXPECTED, 'commit');
  const idOf = ({ outcome }: StripeExchange): unknown =>
    outcome.kind === 'resolved' ? (outcome.value as { id: unknown }).id : null;
  const charges = async (): Promise<number> =>
    ((await callStandIn(relay.url, '/v1/charges?limit=100'))['data'] as unknown[]).length;

  it('DC-01: one key twice is one charge, and the second answer says that it is a stored one', async () => {
    const before = await charges();
    const key = randomUUID();
    const first = await charge(key);
    const second = await charge(key);
    expect(idOf(first)).toMatch(/^ch_/);
    expect(idOf(second)).toBe(idOf(first));
    expect([result(first).replayed, result(second).replayed]).toEqual([false, true]);
    expect(await charges()).toBe(before + 1);
  });

  it('DC-01, CR-01: an answer that was lost is had again under the same key, and money moved once', async () => {
    const before = await charges();
    const key = randomUUID();
    relay.meet('lose_answer');
    expect(result(await charge(key))).toMatchObject({ class: 'ambiguous', bytesSent: true });
    expect(result(await charge(key)).replayed).toBe(true);
    expect(await charges()).toBe(before + 1);
  });

  it('one key with other parameters is a mismatch, never a refusal', async () => {
    const key = randomUUID();
    await charge(key);
    expect(result(await charge(key, 'tok_visa', 1_251))).toMatchObject({
      class: 'key_mismatch',
      httpStatus: 400,
    });
  });

  it('a stored decline is told again as the first answer', async () => {
    const key = randomUUID();
    expect(result(await charge(key, 'tok_chargeDeclined'))).toMatchObject({
      class: 'rejected',
      httpStatus: 402,
      replayed: false,
    });
    expect(result(await charge(key, 'tok_chargeDeclined'))).toMatchObject({
      class: 'rejected',
      replayed: true,
    });
  });

  it('a decline for funds is told apart', async () => {
    const declined = await charge(randomUUID(), 'tok_chargeDeclinedInsufficientFunds');
    expect(result(declined)).toMatchObject({ class: 'rejected_funds', code: 'insufficient_funds' });
  });

  it('UO-01: a stored 500 stays ambiguous, and says that it blocks the key', async () => {
    const key = randomUUID();
    expect(result(await charge(key, 'tok_500'))).toMatchObject({
      class: 'ambiguous',
      code: 'http_5xx',
      httpStatus: 500,
    });
    expect(result(await charge(key, 'tok_500'))).toMatchObject({
      class: 'ambiguous',
      code: 'stored_error',
      replayed: true,
    });
  });

  it('BK-02: a 429 was not processed and is not stored', async () => {
    const key = randomUUID();
    expect(result(await charge(key, 'tok_429'))).toMatchObject({ class: 'throttled', replayed: false });
    expect(result(await charge(key, 'tok_429'))).toMatchObject({ class: 'throttled', replayed: false });
  });
});
