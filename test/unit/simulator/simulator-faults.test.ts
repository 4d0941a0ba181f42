import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BODY, HttpSimulator, errorCode, listIn, objectIn } from '../../support/simulator-http.js';
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

describe('faults before execution move nothing, and the repeat under the key pays once', () => {
  it.each<[FaultInput, number | null]>([
    ['reset_before', null],
    ['http_500_before', 500],
    ['http_502_html_before', 502],
    ['http_502_json_before', 502],
    ['http_404_json_before', 404],
    ['empty_200_before', 200],
    ['http_409_in_use', 409],
    ['http_400_key_reused', 400],
    ['http_401', 401],
    ['http_403', 403],
    ['http_429', 429],
    ['redirect_307', 307],
  ])('%s', async (fault, status) => {
    await disturb(fault);
    const first = await send({ key: 'k1' }).catch(() => null);
    expect(first?.status ?? null).toBe(status);
    expect(await charged()).toBe(0);
    expect((await send({ key: 'k1' })).status).toBe(200);
    expect(await charged()).toBe(1);
    const seen = await simulator.requests('pay_a');
    expect(seen.map(({ fault: kind, httpStatus }) => [kind, httpStatus])).toEqual([
      [fault, status],
      ['none', 200],
    ]);
  });

  it.each<[string | number | undefined, string | undefined]>([
    [60, '60'],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 'Wed, 21 Oct 2026 07:28:00 GMT'],
    [undefined, undefined],
  ])('BK-02: http_429 sends Retry-After %s', async (retryAfter, header) => {
    await disturb({ kind: 'http_429', ...(retryAfter !== undefined && { retryAfter }) });
    expect((await send({ key: 'k1' })).headers['retry-after']).toBe(header);
  });

  it('BK-02: http_429 sends a date that is so many ms ahead', async () => {
    await disturb({ kind: 'http_429', retryAfterDateMs: 3_600_000 });
    const before = Date.now();
    const date = Date.parse(String((await send({ key: 'k1' })).headers['retry-after']));
    expect(date - before).toBeGreaterThan(3_590_000);
    expect(date - before).toBeLessThanOrEqual(3_600_000 + 60_000);
  });

  it('another status than 500 can be told', async () => {
    await disturb({ kind: 'http_500_before', httpStatus: 503 });
    expect((await send({ key: 'k1' })).status).toBe(503);
  });

  it('hang never answers, and its key is busy until the client has gone', async () => {
    await disturb('hang');
    const leave = new AbortController();
    const hung = send({ key: 'k1', signal: leave.signal }).catch(() => 'gone');
    await simulator.untilRequests('pay_a', (seen) => seen.length === 1);
    expect((await send({ key: 'k1' })).status).toBe(409);
    leave.abort();
    expect(await hung).toBe('gone');
    await expect.poll(async () => (await send({ key: 'k1' })).status).toBe(200);
    expect(await charged()).toBe(1);
  });
});

describe('UO-01: faults after execution have moved the money, and the repeat under the key is a replay', () => {
  it.each<[FaultInput, number | null, (answer: HttpAnswer | null) => void]>([
    ['reset_after', null, (answer) => expect(answer).toBeNull()],
    ['truncate_after', 200, (answer) => expect(answer).toBeNull()],
    ['http_500_after', 500, (answer) => expect(errorCode(answer!)).toBe('internal_error')],
    ['http_502_html_after', 502, (answer) => expect(answer?.body).toMatch(/^<html>/)],
    ['http_502_json_after', 502, (answer) => expect(objectIn(answer!)).not.toHaveProperty('error')],
    ['http_404_json_after', 404, (answer) => expect(objectIn(answer!)).not.toHaveProperty('error')],
    ['other_currency_after', 200, (answer) => expect(objectIn(answer!)['currency']).toBe('USD')],
    [
      'other_destination_after',
      200,
      (answer) => expect(objectIn(answer!)['destination']).not.toBe('acct_dest'),
    ],
    ['other_object_after', 200, (answer) => expect(objectIn(answer!)['reference']).not.toBe('pay_a/1')],
    ['empty_200_after', 200, (answer) => expect(answer?.body).toBe('')],
    ['broken_json_after', 200, (answer) => expect(() => objectIn(answer!)).toThrow(SyntaxError)],
    ['unknown_status_after', 200, (answer) => expect(objectIn(answer!)['status']).toBe('reticulating')],
    ['other_amount_after', 200, (answer) => expect(objectIn(answer!)['amount']).toBe(1251)],
  ])('%s', async (fault, status, check) => {
    await disturb(fault);
    check(await send({ key: 'k1' }).catch(() => null));
    expect(await charged()).toBe(1);
    const repeat = await send({ key: 'k1' });
    expect(repeat.headers['idempotent-replayed']).toBe('true');
    expect(objectIn(repeat)).toMatchObject({ amount: 1250, status: 'succeeded' });
    expect(await charged()).toBe(1);
    expect((await simulator.requests('pay_a'))[0]).toMatchObject({ fault, httpStatus: status });
  });

  it('a stored 500 is marked as replayed also while the fault goes on, an unstored one never', async () => {
    await disturb({ kind: 'http_500_after', stored: true, times: 2 });
    const marks = async (key: string): Promise<unknown> =>
      (await send({ key })).headers['idempotent-replayed'];
    expect([await marks('k1'), await marks('k1')]).toEqual([undefined, 'true']);
    await disturb({ kind: 'http_500_after', times: 2 });
    expect([await marks('k2'), await marks('k2')]).toEqual([undefined, undefined]);
  });

  it('a stored 500 is what the key replays, also though the money moved', async () => {
    await disturb({ kind: 'http_500_after', stored: true });
    expect((await send({ key: 'k1' })).status).toBe(500);
    const repeat = await send({ key: 'k1' });
    expect([repeat.status, repeat.headers['idempotent-replayed']]).toEqual([500, 'true']);
    expect(await charged()).toBe(1);
    expect(listIn(await list())).toHaveLength(1);
  });

  it('AM-01: a booked other amount is paid and shown to every lookup', async () => {
    await disturb({ kind: 'other_amount_after', amount: 9_999, booked: true });
    expect(objectIn(await send({ key: 'k1' }))['amount']).toBe(9_999);
    expect(listIn(await list())[0]?.['amount']).toBe(9_999);
    expect((await simulator.effects('pay_a')).charges.map(({ amount }) => amount)).toEqual([9_999]);
  });
});

describe('outcomes', () => {
  it.each([
    ['decline', 'card_declined'],
    ['decline_funds', 'insufficient_funds'],
  ])('%s is a stored 402', async (fault, code) => {
    await disturb(fault);
    const answer = await send({ key: 'k1' });
    expect([answer.status, errorCode(answer)]).toEqual([402, code]);
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBe('true');
    expect(await charged()).toBe(0);
  });

  it('PR-01: pending_then_final ends after so many lookups', async () => {
    await disturb({
      kind: 'pending_then_final',
      lookups: 2,
      final: 'failed',
      failureCode: 'destination_closed',
    });
    expect(objectIn(await send({ key: 'k1' }))['status']).toBe('pending');
    expect(await charged()).toBe(1);
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push(listIn(await list())[0]?.['status']);
    expect(statuses).toEqual(['pending', 'pending', 'failed']);
    const { count, charges } = await simulator.effects('pay_a');
    expect([count, charges[0]?.status]).toEqual([0, 'failed']);
  });

  it('double pays twice under one key, shows one payout, and the repeat is a replay', async () => {
    await disturb('double');
    const first = await send({ key: 'k1' });
    expect(await charged()).toBe(2);
    expect((await send({ key: 'k1' })).body).toBe(first.body);
    expect((await simulator.allEffects()).duplicates).toEqual([{ paymentId: 'pay_a', count: 2 }]);
    expect(listIn(await list())).toHaveLength(2);
  });

  it('PR-01: return_after brings part of the money back at its time', async () => {
    await disturb({ kind: 'return_after', afterMs: 60_000, returnCode: 'account_closed', returnAmount: 50 });
    expect(objectIn(await send({ key: 'k1' }))).toMatchObject({ status: 'succeeded', returned: null });
    expect((await simulator.effects('pay_a')).charges.map(({ returned }) => returned)).toEqual([false]);
    await simulator.advanceClock(60_000);
    const { count, charges } = await simulator.effects('pay_a');
    expect([count, charges[0]!.returned]).toEqual([1, true]);
    expect(listIn(await list())[0]!['returned']).toMatchObject({ code: 'account_closed', amount: 50 });
  });

  it('UO-03: hang_after executes and never answers', async () => {
    await disturb('hang_after');
    const leave = new AbortController();
    const hung = send({ key: 'k1', signal: leave.signal }).catch(() => 'gone');
    await simulator.untilCharged('pay_a');
    leave.abort();
    expect(await hung).toBe('gone');
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBe('true');
  });

  it('DC-01: slow executes at once, and its key is busy until the answer', async () => {
    await disturb({ kind: 'slow', afterMs: 1_000 });
    const slow = send({ key: 'k1' });
    await simulator.untilCharged('pay_a');
    expect(errorCode(await send({ key: 'k1' }))).toBe('idempotency_key_in_use');
    expect((await slow).status).toBe(200);
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBe('true');
    expect(await charged()).toBe(1);
  });

  it('late_commit executes after its client has gone, under the arrival time of the request', async () => {
    await disturb({ kind: 'late_commit', afterMs: 500 });
    const leave = new AbortController();
    const lost = send({ key: 'k1', signal: leave.signal }).catch(() => 'gone');
    const [seen] = await simulator.untilRequests('pay_a', (requests) => requests.length === 1);
    expect(listIn(await list())).toEqual([]);
    leave.abort();
    expect(await lost).toBe('gone');
    const [charge] = await simulator.untilCharged('pay_a');
    expect(charge?.receivedAt).toBe(seen?.receivedAt);
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBe('true');
  });
});

describe('UO-02: lookups', () => {
  it('can deny what exists, fail, or be forbidden, and then tell the truth', async () => {
    const { id } = objectIn(await send({ key: 'k1' }));
    await simulator.script('pay_a', 'lookup', { kind: 'lookup_absent', times: 2 }, 'lookup_500', 'http_403');
    expect(listIn(await list())).toEqual([]);
    expect(errorCode(await send({ method: 'GET', path: `/v1/payouts/${String(id)}` }))).toBe(
      'payout_not_found',
    );
    expect((await list()).status).toBe(500);
    expect((await list()).status).toBe(403);
    expect(listIn(await list())).toHaveLength(1);
  });

  it('can lag, be stale, lose rows and show two', async () => {
    const { id } = objectIn(await send({ key: 'k1' }));
    const byId = { method: 'GET', path: `/v1/payouts/${String(id)}` } as const;
    await simulator.script(
      'pay_a',
      'lookup',
      { kind: 'lookup_lag', afterMs: 60_000 },
      'lookup_stale',
      { kind: 'lookup_lost_rows', times: 2 },
      'lookup_two_hits',
    );
    expect(listIn(await list())).toEqual([]);
    expect(listIn(await list())[0]).toMatchObject({ id, status: 'pending' });
    expect(listIn(await list())).toEqual([]);
    expect(objectIn(await send(byId))).toMatchObject({ id, status: 'succeeded' });
    expect(new Set(listIn(await list()).map((entry) => entry['id'])).size).toBe(2);
    expect(listIn(await list())).toHaveLength(1);
    expect(await charged()).toBe(1);
  });

  it('UO-02: a denial that sticks holds on every path, until its time is over', async () => {
    const { id } = objectIn(await send({ key: 'k1' }));
    await send({ key: 'k2', body: { ...BODY, reference: 'pay_b/1' } });
    const scan = (): Promise<HttpAnswer> =>
      send({ method: 'GET', path: `/v1/payouts?created_from=${Math.floor(Date.now() / 1000) - 600}` });
    await simulator.script('pay_a', 'lookup', { kind: 'lookup_absent', stickyMs: 10_000 });
    expect(listIn(await list())).toEqual([]);
    expect(listIn(await list())).toEqual([]);
    expect((await send({ method: 'GET', path: `/v1/payouts/${String(id)}` })).status).toBe(404);
    expect(listIn(await scan()).map(({ reference }) => reference)).toEqual(['pay_b/1']);
    await simulator.advanceClock(10_000);
    expect(listIn(await list())).toHaveLength(1);
    expect(listIn(await scan())).toHaveLength(2);
  });

  it('other amounts and unknown words are shown in lists too', async () => {
    await send({ key: 'k1' });
    await simulator.script(
      'pay_a',
      'lookup',
      { kind: 'other_amount_after', amount: 7 },
      'unknown_status_after',
    );
    expect(listIn(await list())[0]).toMatchObject({ amount: 7, status: 'succeeded' });
    expect(listIn(await list())[0]).toMatchObject({ amount: 1250, status: 'reticulating' });
  });
});
