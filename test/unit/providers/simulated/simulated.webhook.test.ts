import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ProviderDescriptor, ProviderEvent } from '../../../../src/providers/payment-provider.js';
import { SimulatedProvider } from '../../../../src/providers/simulated/simulated.adapter.js';

const NOW_S = 1_800_000_000;
const SECRET = 'whsec_c2VjcmV0IG9mIHRoZSB0ZXN0';
const PAYOUT = {
  id: 'po_0123456789abcdef',
  object: 'payout',
  livemode: false,
  amount: 1250,
  currency: 'EUR',
  destination: 'acct_dest',
  reference: 'pay_a/2',
  status: 'succeeded',
  failure_code: null,
  created: NOW_S,
};
const EVENT = {
  object: 'event',
  id: 'evt_0123456789abcdef',
  type: 'payout.succeeded',
  created: NOW_S - 3,
  livemode: false,
  request: { idempotency_key: '0d3f3c6e-0000-5000-8000-000000000001' },
  data: { object: PAYOUT },
};

function providerWith(webhooks: ProviderDescriptor['webhooks']): SimulatedProvider {
  return new SimulatedProvider({ baseUrl: 'http://127.0.0.1:9', apiKey: 'sk_a', descriptor: { webhooks } });
}
const provider = providerWith('simulated_v1');

function signed(raw: Buffer): Record<string, string> {
  const mac = createHmac('sha256', SECRET).update(`${NOW_S}.`).update(raw).digest('hex');
  return { 'simulated-signature': `t=${NOW_S},v1=${mac}` };
}
function read(content: unknown, on = provider) {
  const raw = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
  return on.parseWebhook(raw, signed(raw), [SECRET], NOW_S * 1000);
}
function eventOf(changes: object): ProviderEvent {
  const reading = read({ ...EVENT, ...changes });
  if (reading.kind !== 'event') throw new Error(`refused as ${reading.reason}`);
  return reading.event;
}

describe('an event of the simulated provider', () => {
  it('names payment, generation, key and object, and says what became of it', () => {
    expect(eventOf({})).toEqual({
      eventId: EVENT.id,
      type: 'payout.succeeded',
      occurredAtMs: (NOW_S - 3) * 1000,
      providerRef: PAYOUT.id,
      paymentId: 'pay_a',
      generation: 2,
      providerKey: EVENT.request.idempotency_key,
      result: {
        class: 'accepted',
        status: 'succeeded',
        code: 'succeeded',
        providerRef: PAYOUT.id,
        requestId: null,
        httpStatus: null,
        replayed: false,
        bytesSent: true,
        observed: { amountMinor: 1250n, currency: 'EUR', destination: 'acct_dest' },
        retryAfterMs: null,
        foreignBody: null,
      },
      returned: null,
    });
  });

  it.each([':commit', ':commit:2'])('names the key of the generation when it was sent with %s', (suffix) => {
    const { idempotency_key: key } = EVENT.request;
    expect(eventOf({ request: { idempotency_key: `${key}${suffix}` } }).providerKey).toBe(key);
  });

  it('tells of money that came back, in the currency of the payout', () => {
    const returned = { id: 'ret_0123456789', code: 'account_closed', amount: 1_000, created: NOW_S };
    const event = eventOf({ type: 'payout.returned', data: { object: { ...PAYOUT, returned } } });
    expect(event.returned).toEqual({
      returnId: 'ret_0123456789',
      amountMinor: 1_000n,
      currency: 'EUR',
      code: 'account_closed',
    });
  });

  it.each([
    ['pending', null, 'accepted', 'pending'],
    ['requires_commit', null, 'accepted', 'inert'],
    ['failed', 'destination_closed', 'rejected', 'failed'],
    ['cancelled', null, 'rejected', 'failed'],
  ])('of a payout that is %s says so', (status, failureCode, resultClass, said) => {
    const { result } = eventOf({ data: { object: { ...PAYOUT, status, failure_code: failureCode } } });
    expect(result).toMatchObject({ class: resultClass, status: said });
  });

  it('is only a hint where it holds no word that is understood, or no payout of ours', () => {
    expect(eventOf({ data: { object: { ...PAYOUT, status: 'done' } } })).toMatchObject({
      paymentId: 'pay_a',
      result: null,
    });
    expect(eventOf({ data: { object: { ...PAYOUT, reference: 'rent' } } })).toMatchObject({
      paymentId: null,
      generation: null,
      providerRef: PAYOUT.id,
    });
    expect(
      eventOf({ data: { object: { object: 'balance' } }, request: null, created: 'once' }),
    ).toMatchObject({
      occurredAtMs: null,
      providerRef: null,
      providerKey: null,
      result: null,
    });
  });

  it.each<[string, unknown]>([
    ['something that is no event', { ...EVENT, object: 'payout' }],
    ['an event of the live world', { ...EVENT, livemode: true }],
    ['an event without an id', { ...EVENT, id: undefined }],
    ['an id of another form', { ...EVENT, id: 'evt_../x' }],
    ['a type that is no word', { ...EVENT, type: 'a b' }],
    ['an event about nothing', { ...EVENT, data: null }],
    ['text', Buffer.from('hello')],
    ['bytes that are no text', Buffer.from([0x7b, 0xff, 0x7d])],
    ['nothing', Buffer.alloc(0)],
  ])('is unreadable: %s', (_title, content) => {
    expect(read(content)).toEqual({ kind: 'refused', reason: 'unreadable' });
  });

  it('is refused unread without a right signature of the scheme that the provider declares', () => {
    const raw = Buffer.from(JSON.stringify(EVENT));
    const refused = (reason: string): unknown => ({ kind: 'refused', reason });
    const at = NOW_S * 1000;
    expect(provider.parseWebhook(raw, {}, [SECRET], at)).toEqual(refused('unsigned'));
    expect(provider.parseWebhook(raw, signed(raw), ['whsec_other'], at)).toEqual(refused('forged'));
    expect(provider.parseWebhook(raw, signed(raw), [SECRET], at + 300_001)).toEqual(refused('too_old'));
    expect(provider.parseWebhook(raw, signed(raw), [SECRET], at - 60_001)).toEqual(refused('from_future'));
    expect(read(EVENT, providerWith('none'))).toEqual(refused('unsigned'));
    expect(read(EVENT, providerWith('standard_webhooks'))).toEqual(refused('unsigned'));
  });

  it('is read in the Standard Webhooks form where that is declared', () => {
    const raw = Buffer.from(JSON.stringify(EVENT));
    const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64');
    const mac = createHmac('sha256', key).update(`msg_1.${NOW_S}.`).update(raw).digest('base64');
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(NOW_S),
      'webhook-signature': `v1,${mac}`,
    };
    const standard = providerWith('standard_webhooks');
    expect(standard.parseWebhook(raw, headers, [SECRET], NOW_S * 1000).kind).toBe('event');
    expect(provider.parseWebhook(raw, headers, [SECRET], NOW_S * 1000)).toEqual({
      kind: 'refused',
      reason: 'unsigned',
    });
  });

  it('is read without a throw whatever is signed', () => {
    const content = fc.oneof(
      fc.json(),
      fc.string(),
      fc.jsonValue().map((data) => JSON.stringify({ ...EVENT, data })),
    );
    fc.assert(
      fc.property(content, (text) => {
        const reading = read(Buffer.from(text));
        expect(reading.kind === 'event' || reading.reason === 'unreadable').toBe(true);
      }),
    );
  });
});
