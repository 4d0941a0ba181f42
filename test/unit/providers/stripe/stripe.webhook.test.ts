import Stripe from 'stripe';
import { describe, expect, it } from 'vitest';
import type { WebhookReading } from '../../../../src/providers/payment-provider.js';
import type { StripeResource } from '../../../../src/providers/stripe/stripe.object.js';
import { readWebhook } from '../../../../src/providers/stripe/stripe.webhook.js';
import { PAYMENT, intent, transfer } from '../../../support/stripe-exchange.js';

const NOW_MS = 1_790_000_000_000;
const SECRET = 'whsec_test_secret';
const OLD_SECRET = 'whsec_test_secret_before';

function event(type: string, object: unknown, changes: Record<string, unknown> = {}): string {
  return JSON.stringify({
    id: 'evt_1Event',
    object: 'event',
    api_version: '2026-10-28.endive',
    created: 1_789_999_990,
    livemode: false,
    type,
    data: { object },
    ...changes,
  });
}

/** Signed by Stripe's own SDK, not by the code under test. */
function signature(payload: string, { secret = SECRET, atMs = NOW_MS } = {}): string {
  return Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: Math.floor(atMs / 1000) });
}

function read(
  payload: string,
  header: string | string[] | undefined,
  secrets: readonly string[] = [SECRET],
  resource: StripeResource = 'transfer',
): WebhookReading {
  return readWebhook(
    { raw: Buffer.from(payload), headers: { 'stripe-signature': header }, secrets, nowMs: NOW_MS },
    false,
    resource,
  );
}
const readSigned = (payload: string): WebhookReading => read(payload, signature(payload));

const PAYLOAD = event('transfer.created', transfer());

describe('who may speak', () => {
  it('a delivery signed by Stripe’s own code is read', () => {
    expect(readSigned(PAYLOAD)).toMatchObject({
      kind: 'event',
      event: {
        eventId: 'evt_1Event',
        type: 'transfer.created',
        occurredAtMs: 1_789_999_990_000,
        providerRef: 'tr_1Transfer',
        paymentId: PAYMENT.paymentId,
        generation: 1,
        providerKey: PAYMENT.providerKey,
        result: {
          class: 'accepted',
          status: 'succeeded',
          observed: { amountMinor: 1_250n, currency: 'EUR' },
        },
        returned: null,
      },
    });
  });

  it('either of two secrets will do while they are exchanged', () => {
    const secrets = [SECRET, OLD_SECRET];
    expect(read(PAYLOAD, signature(PAYLOAD, { secret: OLD_SECRET }), secrets).kind).toBe('event');
    expect(read(PAYLOAD, signature(PAYLOAD, { secret: SECRET }), secrets).kind).toBe('event');
  });

  it.each<[string, () => WebhookReading, string]>([
    ['no header', () => read(PAYLOAD, undefined), 'unsigned'],
    ['two headers', () => read(PAYLOAD, [signature(PAYLOAD), signature(PAYLOAD)]), 'unsigned'],
    ['another scheme', () => read(PAYLOAD, signature(PAYLOAD).replace('v1=', 'v0=')), 'unsigned'],
    ['no secret of ours', () => read(PAYLOAD, signature(PAYLOAD), []), 'forged'],
    ['an empty secret', () => read(PAYLOAD, signature(PAYLOAD, { secret: 'x' }), ['']), 'forged'],
    ['another secret', () => read(PAYLOAD, signature(PAYLOAD, { secret: OLD_SECRET })), 'forged'],
    ['another body', () => read(`${PAYLOAD} `, signature(PAYLOAD)), 'forged'],
    [
      'another time',
      () => read(PAYLOAD, signature(PAYLOAD).replace(/t=\d+/, `t=${NOW_MS / 1000 - 1}`)),
      'forged',
    ],
    ['301 s old', () => read(PAYLOAD, signature(PAYLOAD, { atMs: NOW_MS - 301_000 })), 'too_old'],
    ['61 s ahead', () => read(PAYLOAD, signature(PAYLOAD, { atMs: NOW_MS + 61_000 })), 'from_future'],
    [
      'a year ahead',
      () => read(PAYLOAD, signature(PAYLOAD, { atMs: NOW_MS + 365 * 86_400_000 })),
      'from_future',
    ],
  ])('%s is refused', (_name, reading, reason) => {
    expect(reading()).toEqual({ kind: 'refused', reason });
  });

  it('the SDK’s own verifier accepts a time ahead, which is why it is not asked', () => {
    const header = signature(PAYLOAD, { atMs: Date.now() + 365 * 86_400_000 });
    expect(() => Stripe.webhooks.constructEvent(PAYLOAD, header, SECRET)).not.toThrow();
  });

  it.each([300_000, -60_000])('%d ms old is in time', (ageMs) => {
    expect(read(PAYLOAD, signature(PAYLOAD, { atMs: NOW_MS - ageMs })).kind).toBe('event');
  });

  it.each([
    ['text', 'hello'],
    ['a list', '[]'],
    ['another object', JSON.stringify(transfer())],
    ['a thin event', event('x', {}, { object: 'v2.core.event' })],
    ['the other mode', event('transfer.created', transfer({ livemode: true }), { livemode: true })],
    ['no id', event('transfer.created', transfer(), { id: null })],
    ['an id with a path in it', event('transfer.created', transfer(), { id: 'evt_1/../2' })],
    ['no data', event('transfer.created', transfer(), { data: null })],
    ['a byte order mark', `\ufeff${PAYLOAD}`],
  ])('rightly signed %s is unreadable', (_name, payload) => {
    const raw = Buffer.from(payload);
    const header = signature(payload);
    const request = { raw, headers: { 'stripe-signature': header }, secrets: [SECRET], nowMs: NOW_MS };
    expect(readWebhook(request, false, 'transfer')).toEqual({ kind: 'refused', reason: 'unreadable' });
  });
});

describe('what it says', () => {
  const said = (type: string, object: unknown, data: Record<string, unknown> = {}): unknown => {
    const payload = event(type, object, { data: { object, ...data } });
    const resource = type.startsWith('transfer.') ? 'transfer' : 'payment_intent';
    const reading = read(payload, signature(payload), [SECRET], resource);
    return reading.kind === 'event' ? reading.event : reading;
  };

  it.each([
    ['payment_intent.succeeded', intent('succeeded'), { class: 'accepted', status: 'succeeded' }],
    ['payment_intent.processing', intent('processing'), { class: 'accepted', status: 'pending' }],
    ['payment_intent.canceled', intent('canceled'), { class: 'rejected', code: 'cancelled' }],
    ['payment_intent.created', intent('requires_confirmation'), { class: 'accepted', status: 'inert' }],
    ['payment_intent.requires_action', intent('requires_action'), { class: 'ambiguous' }],
  ])('%s', (type, object, result) => {
    expect(said(type, object)).toMatchObject({ providerRef: 'pi_1Intent', generation: 1, result });
  });

  it.each<[StripeResource, string, object]>([
    ['transfer', 'payment_intent.succeeded', intent('succeeded')],
    ['payment_intent', 'transfer.created', transfer()],
    ['payment_intent', 'transfer.reversed', transfer({ amount_reversed: 5 })],
    [
      'transfer',
      'charge.dispute.funds_withdrawn',
      { id: 'du_1Dispute', amount: 5, currency: 'eur', payment_intent: 'pi_1Intent' },
    ],
  ])('to the provider of a %s, %s is about no payment', (resource, type, object) => {
    const payload = event(type, object);
    expect(read(payload, signature(payload), [SECRET], resource)).toMatchObject({
      kind: 'event',
      event: { type, providerRef: null, paymentId: null, providerKey: null, result: null, returned: null },
    });
  });

  it('an event about something else is an event without a payment', () => {
    expect(said('customer.created', { id: 'cus_1', object: 'customer' })).toMatchObject({
      type: 'customer.created',
      providerRef: null,
      paymentId: null,
      result: null,
      returned: null,
    });
  });

  const reversed = transfer({
    amount_reversed: 500,
    reversals: {
      object: 'list',
      data: [
        { id: 'trr_2', amount: 300 },
        { id: 'trr_1', amount: 200 },
      ],
    },
  });

  it('PR-01: a reversal is money that came back: the newest one, once', () => {
    expect(
      said('transfer.reversed', reversed, { previous_attributes: { amount_reversed: 200 } }),
    ).toMatchObject({
      returned: { returnId: 'trr_2', amountMinor: 300n, currency: 'EUR', code: 'transfer_reversed' },
    });
  });

  it('a reversal whose amount is not what the event added is not guessed', () => {
    expect(
      said('transfer.reversed', reversed, { previous_attributes: { amount_reversed: 0 } }),
    ).toMatchObject({
      returned: null,
      providerRef: 'tr_1Transfer',
    });
  });

  it.each([
    ['charge.dispute.funds_withdrawn', { id: 'du_1Dispute' }, 'disputed'],
    ['refund.updated', { id: 're_1Refund', status: 'succeeded' }, 'refunded'],
  ])('PR-01: %s names the PaymentIntent and the money', (type, fields, code) => {
    const object = { ...fields, amount: 1250, currency: 'eur', payment_intent: 'pi_1Intent' };
    expect(said(type, object)).toMatchObject({
      providerRef: 'pi_1Intent',
      returned: { returnId: fields.id, amountMinor: 1_250n, currency: 'EUR', code },
    });
  });

  it('a refund that was not paid yet returns nothing', () => {
    const object = {
      id: 're_1Refund',
      status: 'pending',
      amount: 1250,
      currency: 'eur',
      payment_intent: 'pi_1Intent',
    };
    expect(said('refund.created', object)).toMatchObject({ returned: null });
  });
});
