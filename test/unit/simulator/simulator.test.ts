import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BODY, HttpSimulator, TOKEN, errorCode, listIn, objectIn } from '../../support/simulator-http.js';
import type { HttpAnswer, Sent } from '../../support/simulator-http.js';
import type { FaultInput } from '../../support/simulator-control.js';

let simulator: HttpSimulator;
beforeEach(async () => {
  simulator = await HttpSimulator.start();
});
afterEach(() => simulator.close());

const send = (sent?: Sent): Promise<HttpAnswer> => simulator.send(sent);
const list = (reference?: string): Promise<HttpAnswer> => simulator.list(reference);
const charged = (): Promise<number> => simulator.charged();
const disturb = (...faults: FaultInput[]): Promise<void> => simulator.script('pay_a', 'submit', ...faults);

describe('the protocol', () => {
  it('replays with a header, and finds the payout by id and by reference', async () => {
    const first = await send({ key: 'k1' });
    const second = await send({ key: 'k1' });
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(second.body).toBe(first.body);
    const id = String(objectIn(first)['id']);
    expect(objectIn(await send({ method: 'GET', path: `/v1/payouts/${id}` }))).toEqual(objectIn(first));
    expect(listIn(await list())).toEqual([objectIn(first)]);
    expect(objectIn(await list('pay_b/1'))).toEqual({ object: 'list', data: [], has_more: false });
    expect(await charged()).toBe(1);
  });

  it.each<[string, Sent, number, string]>([
    ['an unknown bearer key', { bearer: 'sk_stranger' }, 401, 'invalid_api_key'],
    ['an unknown path', { path: '/v2/payouts' }, 404, 'unknown_path'],
    ['a commit in profile A', { path: '/v1/payouts/po_12345678/commit' }, 404, 'unknown_path'],
    ['an unknown payout', { method: 'GET', path: '/v1/payouts/po_12345678' }, 404, 'payout_not_found'],
    ['a list without a reference', { method: 'GET', path: '/v1/payouts' }, 404, 'unknown_path'],
    ['a missing parameter', { body: { ...BODY, amount: undefined } }, 400, 'parameter_invalid'],
    ['an unknown parameter', { body: { ...BODY, due_at: 'now' } }, 400, 'parameter_invalid'],
    ['a fractional amount', { body: { ...BODY, amount: 12.5 } }, 400, 'parameter_invalid'],
    ['a text amount', { body: { ...BODY, amount: '1250' } }, 400, 'parameter_invalid'],
    ['a negative amount', { body: { ...BODY, amount: -1 } }, 400, 'parameter_invalid'],
    ['a body of 100 KB', { body: { ...BODY, description: 'x'.repeat(100_000) } }, 413, 'body_too_large'],
  ])('%s is refused and moves nothing', async (_title, sent, status, code) => {
    const answer = await send({ key: 'k1', ...sent });
    expect(answer.status).toBe(status);
    expect(errorCode(answer)).toBe(code);
    expect((await simulator.allEffects()).count).toBe(0);
    const [seen] = await simulator.requests();
    expect(seen).toMatchObject({ httpStatus: status, key: 'k1' });
  });

  it('DC-03: 40 parallel requests under one key move the money once and get one answer', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => send({ key: 'k1' })));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1);
    expect(await charged()).toBe(1);
  });

  it('profile T pays at the commit', async () => {
    const made = objectIn(await send({ bearer: 'sk_t', key: 'k1' }));
    expect(made['status']).toBe('requires_commit');
    expect(await charged()).toBe(0);
    const path = `/v1/payouts/${String(made['id'])}/commit`;
    expect(objectIn(await send({ bearer: 'sk_t', path, key: 'k1:commit' }))['status']).toBe('succeeded');
    expect(await charged()).toBe(1);
    const seen = await simulator.requests('pay_a');
    expect(seen.map(({ operation }) => operation)).toEqual(['submit', 'commit']);
  });
});

describe('profiles', () => {
  const readById = (bearer: string): Promise<HttpAnswer> =>
    send({ bearer, method: 'GET', path: '/v1/payouts/po_0123456789ab' });
  const listBy = (bearer: string): Promise<HttpAnswer> =>
    send({ bearer, method: 'GET', path: '/v1/payouts?reference=pay_a%2F1' });

  it.each(['sk_b', 'sk_d'])(
    '%s has no lookups: 404 and 405 in the error form of the provider',
    async (bearer) => {
      await send({ bearer, key: 'k1' });
      const [read, listed] = [await readById(bearer), await listBy(bearer)];
      expect([read.status, errorCode(read)]).toEqual([404, 'unknown_path']);
      expect([listed.status, errorCode(listed)]).toEqual([405, 'method_not_allowed']);
    },
  );

  it('B replays under the key', async () => {
    await send({ bearer: 'sk_b', key: 'k1' });
    expect((await send({ bearer: 'sk_b', key: 'k1' })).headers['idempotent-replayed']).toBe('true');
    expect(await charged()).toBe(1);
  });

  it.each(['sk_c', 'sk_d'])('%s pays again for a repeat, and effects counts both', async (bearer) => {
    await send({ bearer, key: 'k1' });
    expect((await send({ bearer, key: 'k1' })).headers['idempotent-replayed']).toBeUndefined();
    expect((await simulator.allEffects()).duplicates).toEqual([{ paymentId: 'pay_a', count: 2 }]);
  });

  it('C lists both payouts of a repeat by reference', async () => {
    await send({ bearer: 'sk_c', key: 'k1' });
    await send({ bearer: 'sk_c', key: 'k1' });
    expect(listIn(await listBy('sk_c'))).toHaveLength(2);
  });

  it('T cancels before the commit only', async () => {
    const { id } = objectIn(await send({ bearer: 'sk_t', key: 'k1' }));
    const path = `/v1/payouts/${String(id)}`;
    expect(objectIn(await send({ bearer: 'sk_t', path: `${path}/cancel` }))['status']).toBe('cancelled');
    expect(objectIn(await send({ bearer: 'sk_t', path: `${path}/commit` }))['status']).toBe('cancelled');
    expect(await charged()).toBe(0);
    const seen = await simulator.requests('pay_a');
    expect(seen.map(({ operation }) => operation)).toEqual(['submit', 'cancel', 'commit']);
  });
});

describe('switches and the virtual clock', () => {
  it('DC-02: an advanced clock ends the life of a key; the arrival of the request stays true', async () => {
    await send({ key: 'k1' });
    const before = Date.now();
    await simulator.advanceClock(86_400_000);
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBeUndefined();
    const { count, charges } = await simulator.effects('pay_a');
    expect(count).toBe(2);
    expect(charges[1]!.receivedAt - before).toBeLessThan(86_400_000);
  });

  it('an advanced clock ends pending payouts and brings money back, over a restart too', async () => {
    const week = 7 * 86_400_000;
    await disturb({ kind: 'pending_then_final', afterMs: week, returnAfterMs: 2 * week });
    expect(objectIn(await send({ key: 'k1' }))['status']).toBe('pending');
    await simulator.advanceClock(week);
    expect(listIn(await list())[0]).toMatchObject({ status: 'succeeded', returned: null });
    await simulator.restart();
    await simulator.advanceClock(week);
    expect(listIn(await list())[0]).toMatchObject({ status: 'succeeded', returned: { amount: 1250 } });
    expect(await charged()).toBe(1);
  });

  it('the switches of an account hold over a restart, and a reset ends them', async () => {
    await simulator.switchAccount('acct_a', { keyScope: 'api_key', lookupLagMs: 1_000 });
    await simulator.restart();
    await send({ key: 'k1' });
    expect(listIn(await list())).toEqual([]);
    expect((await send({ key: 'k1', bearer: 'sk_a2' })).headers['idempotent-replayed']).toBeUndefined();
    await simulator.advanceClock(1_000);
    expect(listIn(await list())).toHaveLength(2);
    await simulator.reset();
    await send({ key: 'k1' });
    expect((await send({ key: 'k1', bearer: 'sk_a2' })).headers['idempotent-replayed']).toBe('true');
    expect(listIn(await list())).toHaveLength(1);
  });
});

describe('the control port', () => {
  it.each(['', 'Bearer wrong-token', TOKEN])('refuses the authorization "%s"', async (authorization) => {
    const url = `${simulator.controlUrl}/effects`;
    expect((await fetch(url, { headers: { authorization } })).status).toBe(401);
  });

  it('names every payment that was paid twice, and lists all charges', async () => {
    await send({ key: 'k1' });
    await send({ key: 'k2', body: { ...BODY, reference: 'pay_a/2' } });
    await send({ key: 'k3', body: { ...BODY, reference: 'pay_b/1' } });
    const all = await simulator.allEffects();
    expect(all).toMatchObject({ count: 3, payments: 2, duplicates: [{ paymentId: 'pay_a', count: 2 }] });
    expect(all.charges.map(({ reference, key }) => [reference, key])).toEqual([
      ['pay_a/1', 'k1'],
      ['pay_a/2', 'k2'],
      ['pay_b/1', 'k3'],
    ]);
    expect((await simulator.effects('pay_a/2')).count).toBe(2);
  });

  it('finds charges that came before their time, and says which it cannot judge', async () => {
    const inAnHour = Date.now() + 3_600_000;
    await simulator.expect({ pay_a: new Date(inAnHour).toISOString(), pay_b: Date.now() - 1_000 });
    for (const reference of ['pay_a/1', 'pay_b/1', 'pay_c/1']) await send({ body: { ...BODY, reference } });
    const early = await simulator.early();
    expect(early).toMatchObject({ count: 1, unregistered: 1 });
    expect(early.charges[0]).toMatchObject({ reference: 'pay_a/1', expectedAt: inAnHour });
  });

  it('closes and opens the provider port', async () => {
    await simulator.suspend();
    await simulator.suspend();
    await expect(send({ key: 'k1' })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await simulator.resume();
    await simulator.resume();
    expect((await send({ key: 'k1' })).status).toBe(200);
  });

  it('cuts hanging requests when the port closes', async () => {
    await disturb('hang');
    const hung = send({ key: 'k1' });
    const ended = expect(hung).rejects.toThrow();
    await simulator.untilRequests('pay_a', (seen) => seen.length === 1);
    await simulator.suspend();
    await ended;
  });

  it('resets as many new connections as it is told', async () => {
    await simulator.refuse(2);
    await expect(send({ key: 'k1' })).rejects.toThrow();
    await expect(send({ key: 'k1' })).rejects.toThrow();
    expect((await send({ key: 'k1' })).status).toBe(200);
    expect(await simulator.requests('pay_a')).toHaveLength(1);
  });

  it('reset forgets charges, keys, plans, requests and late executions, also in the file', async () => {
    await send({ key: 'k1' });
    await disturb({ kind: 'late_commit', afterMs: 200 }, 'decline');
    const lost = send({ key: 'k2' }).catch(() => 'cut');
    await simulator.untilRequests('pay_a', (seen) => seen.length === 2);
    await simulator.reset();
    expect(await lost).toBe('cut');
    expect(await simulator.requests()).toEqual([]);
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBeUndefined();
    // Timers of one length fire in order: had the first one lived, k2 would be paid before k3.
    await disturb({ kind: 'late_commit', afterMs: 200 });
    const late = send({ key: 'k3' }).catch(() => 'cut');
    const keys = (await simulator.untilCharged('pay_a', 2)).map(({ key }) => key);
    expect(keys).toEqual(['k1', 'k3']);
    await simulator.restart();
    expect(await late).toBe('cut');
    expect((await simulator.effects('pay_a')).charges.map(({ key }) => key)).toEqual(['k1', 'k3']);
  });

  it.each<[string, string, unknown]>([
    ['an unknown fault', '/plan', { scripts: [{ reference: 'a', submit: ['explode'] }] }],
    ['an unreadable time', '/expect', { pay_a: 'soon' }],
    ['a listen without a word', '/listen', {}],
    ['a clock that goes back', '/clock', { advance_ms: -1 }],
    ['switches of an unknown account', '/accounts', { account: 'acct_x', keyLifeMs: 5 }],
    ['an unknown switch', '/accounts', { account: 'acct_a', keyLife: 5 }],
    ['a refusal without a count', '/refuse', { connections: 'all' }],
    ['an unknown command', '/explode', {}],
  ])('refuses %s with a sentence', async (_title, path, body) => {
    await expect(simulator.control('POST', path, body)).rejects.toThrow(`POST ${path} was refused: `);
  });
});
