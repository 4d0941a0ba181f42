import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HttpSimulator, errorCode, listIn, objectIn } from '../../support/simulator-http.js';
import type { HttpAnswer } from '../../support/simulator-http.js';

let simulator: HttpSimulator;
beforeEach(async () => {
  simulator = await HttpSimulator.start();
});
afterEach(() => simulator.close());

const form = (fields: Readonly<Record<string, string>>): string => new URLSearchParams(fields).toString();
const METADATA = { 'metadata[payment_id]': 'pay_a', 'metadata[generation]': '1' };
const TRANSFER = {
  amount: '1250',
  currency: 'eur',
  destination: 'acct_dest',
  transfer_group: 'pay_a',
  ...METADATA,
};
const INTENT = {
  amount: '1250',
  currency: 'eur',
  customer: 'cus_1',
  payment_method: 'pm_1',
  'payment_method_types[0]': 'card',
  ...METADATA,
};
const post = (
  path: string,
  key?: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<HttpAnswer> =>
  simulator.send({ path: `/v1/${path}`, ...(key !== undefined && { key }), body: form(fields) });
const get = (path: string): Promise<HttpAnswer> => simulator.send({ method: 'GET', path: `/v1/${path}` });
const transfer = (key = 'k1', more: Readonly<Record<string, string>> = {}): Promise<HttpAnswer> =>
  post('transfers', key, { ...TRANSFER, ...more });
const intent = async (key = 'k1'): Promise<string> =>
  String(objectIn(await post('payment_intents', key, INTENT))['id']);
const confirm = (id: string, key?: string): Promise<HttpAnswer> => post(`payment_intents/${id}/confirm`, key);
const errorOf = (answer: HttpAnswer): Record<string, unknown> =>
  objectIn(answer)['error'] as Record<string, unknown>;

describe('transfers', () => {
  it('move the money at once, are found by id and by group, and replay under the key', async () => {
    const first = await transfer();
    const made = objectIn(first);
    expect(made).toMatchObject({
      object: 'transfer',
      amount: 1250,
      amount_reversed: 0,
      currency: 'eur',
      destination: 'acct_dest',
      livemode: false,
      metadata: { payment_id: 'pay_a', generation: '1' },
      transfer_group: 'pay_a',
    });
    expect(String(made['id'])).toMatch(/^tr_/);
    expect((await transfer()).headers['idempotent-replayed']).toBe('true');
    expect(objectIn(await get(`transfers/${String(made['id'])}`))).toEqual(made);
    expect(listIn(await get('transfers?transfer_group=pay_a'))).toEqual([made]);
    expect(listIn(await get('transfers?transfer_group=pay_b'))).toEqual([]);
    const { count, charges } = await simulator.effects('pay_a');
    expect([count, charges[0]!.reference, charges[0]!.key]).toEqual([1, 'pay_a/1', 'k1']);
  });

  it('the key with other parameters is an idempotency error, a busy key a 409', async () => {
    await simulator.script('pay_a', 'submit', { kind: 'slow', afterMs: 500 });
    const slow = transfer();
    await simulator.untilCharged('pay_a');
    expect([(await transfer()).status, errorCode(await transfer())]).toEqual([409, 'idempotency_key_in_use']);
    await slow;
    const other = await transfer('k1', { amount: '1' });
    expect([other.status, errorOf(other)['type']]).toEqual([400, 'idempotency_error']);
    expect(await simulator.charged()).toBe(1);
  });

  it.each([
    ['decline', 400, 'transfers_not_allowed'],
    ['decline_funds', 400, 'balance_insufficient'],
    ['http_429', 429, 'rate_limit'],
    ['http_409_in_use', 409, 'idempotency_key_in_use'],
  ] as const)('%s is said as Stripe says it', async (fault, status, code) => {
    await simulator.script('pay_a', 'submit', fault);
    const answer = await transfer();
    expect([answer.status, errorCode(answer)]).toEqual([status, code]);
    expect(await simulator.charged()).toBe(0);
  });

  it('a stored 500 is replayed with the header, and the lookup finds what moved', async () => {
    await simulator.script('pay_a', 'submit', { kind: 'http_500_after', stored: true });
    expect(errorOf(await transfer())).toMatchObject({ type: 'api_error' });
    expect((await transfer()).headers['idempotent-replayed']).toBe('true');
    expect(listIn(await get('transfers?transfer_group=pay_a'))).toHaveLength(1);
  });

  it('list newest first, page by page, by destination and time', async () => {
    for (const n of [1, 2, 3])
      await transfer(`k${n}`, { 'metadata[payment_id]': `pay_${n}`, transfer_group: `pay_${n}` });
    const since = Math.floor(Date.now() / 1000) - 60;
    const query = `transfers?destination=acct_dest&created%5Bgte%5D=${since}&limit=2`;
    const page = await get(query);
    const groups = (answer: HttpAnswer): unknown[] => listIn(answer).map((entry) => entry['transfer_group']);
    expect([groups(page), objectIn(page)['has_more']]).toEqual([['pay_3', 'pay_2'], true]);
    const last = String(listIn(page)[1]!['id']);
    expect(groups(await get(`${query}&starting_after=${last}`))).toEqual(['pay_1']);
  });

  it('lookups take the faults of the payment in the group', async () => {
    await transfer();
    await simulator.script('pay_a', 'lookup', 'lookup_absent', 'lookup_two_hits', 'none');
    expect(listIn(await get('transfers?transfer_group=pay_a'))).toEqual([]);
    expect(listIn(await get('transfers?transfer_group=pay_a'))).toHaveLength(2);
    expect(listIn(await get('transfers?transfer_group=pay_a'))).toHaveLength(1);
  });

  it('a reversal shows what came back', async () => {
    await simulator.script('pay_a', 'submit', { kind: 'return_after', afterMs: 1_000 });
    const { id } = objectIn(await transfer());
    await simulator.advanceClock(1_000);
    const found = objectIn(await get(`transfers/${String(id)}`));
    expect(found).toMatchObject({
      amount_reversed: 1250,
      reversed: true,
      reversals: { data: [{ amount: 1250 }] },
    });
  });
});

describe('PaymentIntents', () => {
  it('move nothing until they are confirmed, and admit one confirmation', async () => {
    const id = await intent();
    expect(objectIn(await get(`payment_intents/${id}`))).toMatchObject({
      status: 'requires_confirmation',
      amount_received: 0,
      customer: 'cus_1',
      payment_method: 'pm_1',
    });
    expect(await simulator.charged()).toBe(0);
    expect(objectIn(await confirm(id, 'k1:commit'))).toMatchObject({
      status: 'succeeded',
      amount_received: 1250,
    });
    expect((await confirm(id, 'k1:commit')).headers['idempotent-replayed']).toBe('true');
    const again = await confirm(id, 'k1:commit:2');
    expect([again.status, errorCode(again)]).toEqual([400, 'payment_intent_unexpected_state']);
    expect(await simulator.charged()).toBe(1);
    const seen = await simulator.requests('pay_a');
    expect(seen.map(({ operation }) => operation)).toEqual([
      'submit',
      'lookup',
      'commit',
      'commit',
      'commit',
    ]);
  });

  it('a declined confirmation is a card error, takes the method away and can be cancelled', async () => {
    const id = await intent();
    await simulator.script('pay_a', 'commit', 'decline_funds');
    const declined = await confirm(id, 'k1:commit');
    expect(declined.status).toBe(402);
    const code = { type: 'card_error', code: 'card_declined', decline_code: 'insufficient_funds' };
    expect(errorOf(declined)).toMatchObject(code);
    expect(objectIn(await get(`payment_intents/${id}`))).toMatchObject({
      status: 'requires_payment_method',
      payment_method: null,
      last_payment_error: code,
    });
    expect(errorCode(await confirm(id, 'k1:commit:2'))).toBe('payment_intent_unexpected_state');
    expect(objectIn(await post(`payment_intents/${id}/cancel`, 'k1:cancel'))['status']).toBe('canceled');
    expect(await simulator.charged()).toBe(0);
  });

  it('a cancelled one cannot be confirmed, a succeeded one not cancelled', async () => {
    const stopped = await intent('k1');
    await post(`payment_intents/${stopped}/cancel`);
    expect(errorCode(await confirm(stopped))).toBe('payment_intent_unexpected_state');
    const paid = await intent('k2');
    await confirm(paid);
    expect(errorCode(await post(`payment_intents/${paid}/cancel`))).toBe('payment_intent_unexpected_state');
    expect(await simulator.charged()).toBe(1);
  });

  it('are listed by customer and time', async () => {
    const id = await intent();
    const since = Math.floor(Date.now() / 1000) - 60;
    const listed = await get(`payment_intents?customer=cus_1&created%5Bgte%5D=${since}`);
    expect(listIn(listed).map((entry) => entry['id'])).toEqual([id]);
    expect(listIn(await get('payment_intents?customer=cus_2'))).toEqual([]);
  });
});

describe('what Stripe would refuse', () => {
  it.each<[string, string, Readonly<Record<string, string>>, number, string]>([
    ['no amount', 'transfers', { ...TRANSFER, amount: '' }, 400, 'parameter_missing'],
    ['a broken amount', 'transfers', { ...TRANSFER, amount: '12.5' }, 400, 'parameter_missing'],
    ['no destination', 'transfers', { ...TRANSFER, destination: '' }, 400, 'parameter_missing'],
    [
      'an intent that confirms itself',
      'payment_intents',
      { ...INTENT, confirm: 'true' },
      400,
      'parameter_missing',
    ],
    ['an unknown intent', 'payment_intents/pi_0123456789ab/confirm', {}, 404, 'resource_missing'],
  ])('%s', async (_title, path, fields, status, code) => {
    const answer = await post(path, 'k1', fields);
    expect([answer.status, errorCode(answer)]).toEqual([status, code]);
    expect((await simulator.allEffects()).count).toBe(0);
  });

  it('an unknown key, and a path that is not there', async () => {
    const stranger = await simulator.send({
      bearer: 'sk_stranger',
      path: '/v1/transfers',
      body: form(TRANSFER),
    });
    expect([stranger.status, errorOf(stranger)['type']]).toEqual([401, 'invalid_request_error']);
    expect((await post('transfers/tr_0123456789ab/confirm')).status).toBe(404);
  });
});
