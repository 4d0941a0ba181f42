import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { validateDescriptor, capabilityClass } from '../../../../src/providers/provider-descriptor.js';
import type {
  AttemptContext,
  CanonicalPayment,
  LookupRefs,
} from '../../../../src/providers/payment-provider.js';
import { StripePaymentIntents, StripeTransfers } from '../../../../src/providers/stripe/stripe.adapter.js';
import { answer, reset, scriptedServer, silence } from '../../../support/scripted-server.js';
import type { Behaviour, ScriptedServer } from '../../../support/scripted-server.js';
import { PAYMENT, intent, transfer } from '../../../support/stripe-exchange.js';

let server: ScriptedServer;
let transfers: StripeTransfers;
let intents: StripePaymentIntents;

beforeEach(async () => {
  server = await scriptedServer();
  const options = { apiKey: 'sk_test_adapter', account: 'acct_1Platform', baseUrl: server.url };
  transfers = new StripeTransfers(options);
  intents = new StripePaymentIntents(options);
});
afterEach(async () => {
  await transfers.close();
  await intents.close();
  await server.close();
});

const payment = (destination: string): CanonicalPayment => ({
  ...PAYMENT,
  amountMinor: 1_250n,
  currency: 'EUR',
  destination,
  reference: null,
  description: null,
});
const TO_ACCOUNT = payment('acct_1Payee');
const FROM_CARD = payment('cus_1Payer:pm_1Card');
const ATTEMPT: AttemptContext = {
  ...PAYMENT,
  attempt: 1,
  commitTry: 1,
  deadlineMs: 5_000,
  mayWrite: () => true,
};
const refs = (expected: CanonicalPayment, changes: Partial<LookupRefs> = {}): LookupRefs => ({
  ...PAYMENT,
  providerRef: null,
  sentSince: new Date('2026-10-01T09:00:00Z'),
  by: 'any',
  deadlineMs: 5_000,
  expected,
  ...changes,
});
const list = (data: readonly unknown[], has_more = false): object => ({ object: 'list', data, has_more });
const paths = (): string[] => server.seen.map(({ method, path }) => `${method} ${path}`);
const keys = (): unknown[] => server.seen.map(({ headers }) => headers['idempotency-key']);

describe('what they promise', () => {
  it('transfers are class A, PaymentIntents class T, both with sound descriptors', () => {
    for (const provider of [transfers, intents]) {
      validateDescriptor(provider.name, provider.capabilities(), { smallMarginAllowed: false });
    }
    expect(capabilityClass(transfers.capabilities())).toBe('A');
    expect(capabilityClass(intents.capabilities())).toBe('T');
  });

  it('DC-02: the key of a transfer is used for 20 of its 24 hours', () => {
    const { life, marginMs } = transfers.capabilities().idempotency;
    expect([life, marginMs]).toEqual([86_400_000, 14_400_000]);
  });

  it('a key that does not say its mode is refused', () => {
    const open = (apiKey: string): unknown => new StripeTransfers({ apiKey, account: 'acct_1Platform' });
    expect(() => open('pk_test_x')).toThrow('does not begin with');
    expect(() => open('')).toThrow('does not begin with');
  });
});

describe('transfers', () => {
  it('one call moves the money, under the provider key', async () => {
    server.behave(answer(200, transfer()));
    const result = await transfers.submit(transfers.prepare(TO_ACCOUNT), ATTEMPT);
    expect(result).toMatchObject({ class: 'accepted', status: 'succeeded', providerRef: 'tr_1Transfer' });
    expect(paths()).toEqual(['POST /v1/transfers']);
    expect(keys()).toEqual([PAYMENT.providerKey]);
  });

  it.each<[string, Partial<AttemptContext>, Record<string, string>, string]>([
    ['another payment', { paymentId: 'pay_other' }, {}, 'prepared_for_other_payment'],
    ['another generation', { generation: 2 }, {}, 'prepared_for_other_payment'],
    ['another key', { providerKey: 'other' }, {}, 'prepared_for_other_payment'],
    ['other bytes', {}, { parameters: '{}' }, 'prepared_altered'],
    ['another account', {}, { account: 'acct_2' }, 'prepared_for_other_account'],
    ['another address', {}, { baseUrl: 'https://api.stripe.com' }, 'prepared_for_other_account'],
    ['another version', {}, { apiVersion: '2020-08-27' }, 'prepared_for_other_api'],
    ['the other provider', {}, { adapter: 'stripe_intents' }, 'prepared_for_other_api'],
  ])('what was prepared for %s is not sent', async (_name, attempt, prepared, code) => {
    const altered = { ...transfers.prepare(TO_ACCOUNT), ...prepared };
    expect(await transfers.submit(altered, { ...ATTEMPT, ...attempt })).toMatchObject({
      class: 'not_sent',
      code,
    });
    expect(server.seen).toHaveLength(0);
  });

  it('has no second phase and no cancel', async () => {
    expect(await transfers.commit()).toMatchObject({ class: 'not_sent', code: 'no_commit_phase' });
    expect(await transfers.cancel()).toMatchObject({ class: 'not_sent', code: 'no_cancel' });
  });

  it.each<[string, Partial<LookupRefs>, string]>([
    ['by id when it is known', { providerRef: 'tr_1Transfer' }, '/v1/transfers/tr_1Transfer'],
    ['by group when it is not', {}, `/v1/transfers?transfer_group=${PAYMENT.paymentId}&limit=100`],
    [
      'by group when asked to',
      { providerRef: 'tr_1Transfer', by: 'reference' },
      `/v1/transfers?transfer_group=${PAYMENT.paymentId}&limit=100`,
    ],
    [
      'by a scan from five minutes before the first send',
      { by: 'list_scan' },
      '/v1/transfers?destination=acct_1Payee&created[gte]=1790844900&limit=100',
    ],
  ])('looks up %s', async (_name, changes, path) => {
    const byId = changes.providerRef && changes.by === undefined;
    server.behave(answer(200, byId ? transfer() : list([transfer()])));
    expect(await transfers.lookup(refs(TO_ACCOUNT, changes))).toMatchObject({ kind: 'found' });
    expect(server.seen.map((request) => decodeURIComponent(request.path))).toEqual([path]);
  });

  it('UO-02: each way names itself when it finds nothing', async () => {
    server.behave(answer(200, list([])));
    expect(await transfers.lookup(refs(TO_ACCOUNT))).toEqual({ kind: 'absent', by: ['reference'] });
    expect(await transfers.lookup(refs(TO_ACCOUNT, { by: 'list_scan' }))).toEqual({
      kind: 'absent',
      by: ['list_scan'],
    });
  });

  it('a scan reads every page and compares the metadata itself', async () => {
    const stranger = transfer({ id: 'tr_0Other', metadata: { payment_id: 'pay_other' } });
    server.behave(answer(200, list([stranger], true)), answer(200, list([transfer()])));
    expect(await transfers.lookup(refs(TO_ACCOUNT, { by: 'list_scan' }))).toMatchObject({ kind: 'found' });
    expect(server.seen[1]?.path).toContain('starting_after=tr_0Other');
  });

  it.each<[string, readonly Behaviour[], Partial<LookupRefs>, object]>([
    [
      'a page that fails',
      [answer(200, list([{ id: 'tr_0Other' }], true)), answer(500, { error: { type: 'api_error' } })],
      { by: 'list_scan' },
      { kind: 'cannot_tell', code: 'http_5xx' },
    ],
    [
      'pages that do not advance',
      [answer(200, list([{ id: 'tr_0Other' }], true))],
      { by: 'list_scan' },
      { kind: 'cannot_tell', code: 'list_does_not_advance' },
    ],
    [
      'no start',
      [answer(200, list([]))],
      { by: 'list_scan', sentSince: null },
      { kind: 'cannot_tell', code: 'first_send_unknown' },
    ],
    [
      'a group that is too long',
      [answer(200, list([transfer()], true))],
      {},
      { kind: 'found_many', count: 1 },
    ],
    [
      'an id with a path in it',
      [answer(200, transfer())],
      { providerRef: '../balance' },
      { kind: 'cannot_tell', code: 'provider_ref_unusable' },
    ],
    ['a reset', [reset], {}, { kind: 'cannot_tell', code: 'reset' }],
    [
      'UO-02: 404 without `error`',
      [answer(404, { message: 'Not Found' })],
      {},
      { kind: 'cannot_tell', code: 'http_4xx' },
    ],
  ])('a lookup that met %s claims nothing', async (_name, behaviours, changes, expected) => {
    server.behave(...behaviours);
    expect(await transfers.lookup(refs(TO_ACCOUNT, changes))).toMatchObject(expected);
  });
});

describe('PaymentIntents', () => {
  const prepared = (): ReturnType<StripePaymentIntents['prepare']> => intents.prepare(FROM_CARD);

  it('create makes an inert object, commit releases it off-session under a key of its own', async () => {
    server.behave(answer(200, intent('requires_confirmation')), answer(200, intent('succeeded')));
    expect(await intents.submit(prepared(), ATTEMPT)).toMatchObject({
      class: 'accepted',
      status: 'inert',
      providerRef: 'pi_1Intent',
    });
    expect(await intents.commit(prepared(), 'pi_1Intent', ATTEMPT)).toMatchObject({
      class: 'accepted',
      status: 'succeeded',
    });
    expect(paths()).toEqual(['POST /v1/payment_intents', 'POST /v1/payment_intents/pi_1Intent/confirm']);
    expect(keys()).toEqual([PAYMENT.providerKey, `${PAYMENT.providerKey}:commit`]);
    expect(server.seen[0]?.body).not.toContain('confirm=');
    expect(server.seen[1]?.body).toBe('off_session=true');
  });

  it('a second try of the commit has another key, a third does not exist', async () => {
    server.behave(answer(200, intent('succeeded')));
    await intents.commit(prepared(), 'pi_1Intent', { ...ATTEMPT, commitTry: 2 });
    expect(keys()).toEqual([`${PAYMENT.providerKey}:commit:2`]);
    expect(await intents.commit(prepared(), 'pi_1Intent', { ...ATTEMPT, commitTry: 3 })).toMatchObject({
      class: 'not_sent',
      code: 'commit_try_unusable',
    });
  });

  it('AM-01: a commit of another amount than was prepared is no success', async () => {
    server.behave(answer(200, intent('succeeded', { amount: 999, amount_received: 999 })));
    expect(await intents.commit(prepared(), 'pi_1Intent', ATTEMPT)).toMatchObject({
      class: 'key_mismatch',
      code: 'other_amount',
    });
  });

  it('an id that is none of theirs is not sent', async () => {
    expect(await intents.commit(prepared(), 'pi_1/../x', ATTEMPT)).toMatchObject({ class: 'not_sent' });
    expect(await intents.cancel('tr_1Transfer', ATTEMPT)).toMatchObject({ class: 'not_sent' });
    expect(server.seen).toHaveLength(0);
  });

  const needsCustomer = answer(402, {
    error: { type: 'card_error', code: 'authentication_required', payment_intent: { id: 'pi_1Intent' } },
  });

  it('a decline for want of the customer is a refusal once the object is stopped', async () => {
    server.behave(needsCustomer, answer(200, intent('canceled', { payment_method: null })));
    expect(await intents.commit(prepared(), 'pi_1Intent', ATTEMPT)).toMatchObject({
      class: 'rejected',
      status: 'failed',
      code: 'authentication_required',
      providerRef: 'pi_1Intent',
    });
    expect(paths()[1]).toBe('POST /v1/payment_intents/pi_1Intent/cancel');
  });

  it.each([
    [
      'a refusal to stop it',
      answer(400, { error: { type: 'invalid_request_error', code: 'payment_intent_unexpected_state' } }),
    ],
    ['a reset', reset],
    ['an object that lives on', answer(200, intent('requires_payment_method'))],
  ])('while the customer could still pay it stays ambiguous: %s', async (_name, behaviour) => {
    server.behave(needsCustomer, behaviour);
    expect(await intents.commit(prepared(), 'pi_1Intent', ATTEMPT)).toMatchObject({
      class: 'ambiguous',
      code: 'authentication_required',
    });
  });

  it('stopping it stays inside the deadline of the call', async () => {
    server.behave(needsCustomer, silence);
    const result = intents.commit(prepared(), 'pi_1Intent', { ...ATTEMPT, deadlineMs: 300 });
    expect(await result).toMatchObject({ class: 'ambiguous', code: 'authentication_required' });
  });

  const wrongState = answer(400, {
    error: { type: 'invalid_request_error', code: 'payment_intent_unexpected_state' },
  });
  const declined = {
    payment_method: null,
    last_payment_error: { code: 'card_declined', decline_code: 'insufficient_funds' },
  };

  it.each([
    ['was released before', intent('succeeded'), { class: 'accepted', status: 'succeeded' }],
    ['is on its way', intent('processing'), { class: 'accepted', status: 'pending' }],
    ['was stopped before', intent('canceled'), { class: 'rejected', status: 'failed', code: 'cancelled' }],
    [
      'was declined before',
      intent('requires_payment_method', declined),
      { class: 'rejected_funds', status: 'failed' },
    ],
    ['is open', intent('requires_confirmation'), { class: 'ambiguous', status: null }],
    ['waits for its customer', intent('requires_action'), { class: 'ambiguous', status: null }],
    ['is another amount', intent('succeeded', { amount: 1, amount_received: 1 }), { class: 'ambiguous' }],
  ])('DC-06: "not in a state for that" is read: the object %s', async (_name, object, result) => {
    server.behave(wrongState, answer(200, object));
    expect(await intents.commit(prepared(), 'pi_1Intent', ATTEMPT)).toMatchObject(result);
    expect(paths()[1]).toBe('GET /v1/payment_intents/pi_1Intent');
  });

  it.each([
    ['a reset', reset],
    ['404', answer(404, { error: { type: 'invalid_request_error', code: 'resource_missing' } })],
  ])('UO-02: if the read ends in %s too, nobody knows', async (_name, behaviour) => {
    server.behave(wrongState, behaviour);
    expect(await intents.commit(prepared(), 'pi_1Intent', ATTEMPT)).toMatchObject({
      class: 'ambiguous',
      code: 'payment_intent_unexpected_state',
    });
  });

  it.each([
    [
      'stopped before is stopped',
      intent('canceled'),
      { class: 'accepted', status: 'failed', code: 'cancelled' },
    ],
    ['released is not', intent('succeeded'), { class: 'rejected', status: null }],
    ['open is not', intent('requires_confirmation'), { class: 'rejected', status: null }],
  ])('a refused cancel is read: what was %s', async (_name, object, result) => {
    server.behave(wrongState, answer(200, object));
    expect(await intents.cancel('pi_1Intent', ATTEMPT)).toMatchObject(result);
  });

  it('a cancel has a key for each attempt', async () => {
    server.behave(answer(200, intent('canceled')));
    expect(await intents.cancel('pi_1Intent', ATTEMPT)).toMatchObject({
      class: 'accepted',
      status: 'failed',
      code: 'cancelled',
    });
    await intents.cancel('pi_1Intent', { ...ATTEMPT, attempt: 2 });
    expect(keys()).toEqual([`${PAYMENT.providerKey}:cancel:1`, `${PAYMENT.providerKey}:cancel:2`]);
  });

  it('without an id they are scanned by customer, and there is no way by reference', async () => {
    server.behave(answer(200, list([intent('succeeded')])));
    expect(await intents.lookup(refs(FROM_CARD))).toMatchObject({
      kind: 'found',
      result: { status: 'succeeded' },
    });
    expect(decodeURIComponent(server.seen[0]?.path ?? '')).toBe(
      '/v1/payment_intents?customer=cus_1Payer&created[gte]=1790844900&limit=100',
    );
    expect(await intents.lookup(refs(FROM_CARD, { by: 'reference' }))).toEqual({
      kind: 'cannot_tell',
      code: 'no_such_lookup',
    });
  });
});
