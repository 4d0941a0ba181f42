import { Agent, request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSimulatorSettings } from '../../../src/simulator/settings.js';
import { startSimulator } from '../../../src/simulator/simulator.js';
import type { RunningSimulator } from '../../../src/simulator/simulator.js';
import { SimulatorControl } from '../../support/simulator-control.js';
import type { FaultInput } from '../../support/simulator-control.js';

interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const TOKEN = 'control-token';
const BODY = { amount: 1250, currency: 'EUR', destination: 'acct_dest', reference: 'pay_a/1' };

let folder: string;
let running: RunningSimulator;
let control: SimulatorControl;
let agent: Agent;

async function start(): Promise<void> {
  running = await startSimulator(
    readSimulatorSettings({
      SIMULATOR_PORT: '0',
      SIMULATOR_CONTROL_PORT: '0',
      SIMULATOR_CONTROL_TOKEN: TOKEN,
      SIMULATOR_LEDGER_FILE: join(folder, 'ledger.jsonl'),
      SIMULATOR_PROFILE_KEYS: 'sk_a:A,sk_t:T',
    }),
  );
  const controlUrl = `http://127.0.0.1:${running.controlPort}`;
  control = new SimulatorControl(() => ({ controlUrl, controlToken: TOKEN }));
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'simulator-'));
  agent = new Agent({ keepAlive: false });
  await start();
});
afterEach(() => {
  running.stop();
  agent.destroy();
  rmSync(folder, { recursive: true, force: true });
});

interface Sent {
  readonly method?: 'GET' | 'POST';
  readonly path?: string;
  readonly key?: string;
  readonly bearer?: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Rejects with the socket's error when the connection is cut. */
function send({
  method = 'POST',
  path = '/v1/payouts',
  key,
  bearer = 'sk_a',
  body,
  signal,
}: Sent = {}): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        agent,
        port: running.port,
        host: '127.0.0.1',
        method,
        path,
        signal,
        headers: { authorization: `Bearer ${bearer}`, ...(key && { 'idempotency-key': key }) },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    request.on('error', reject);
    request.end(method === 'GET' ? '' : JSON.stringify(body ?? BODY));
  });
}
const list = (reference = 'pay_a/1'): Promise<HttpAnswer> =>
  send({ method: 'GET', path: `/v1/payouts?reference=${encodeURIComponent(reference)}` });
const payout = ({ body }: HttpAnswer): Record<string, unknown> => JSON.parse(body) as Record<string, unknown>;
const errorCode = (answer: HttpAnswer): unknown =>
  (payout(answer)['error'] as Record<string, unknown>)['code'];
const payouts = (answer: HttpAnswer): Record<string, unknown>[] =>
  payout(answer)['data'] as Record<string, unknown>[];
const charged = async (): Promise<number> => (await control.effects('pay_a')).count;
const disturb = (...faults: FaultInput[]): Promise<void> => control.script('pay_a', 'submit', ...faults);

describe('the protocol', () => {
  it('replays with a header, and finds the payout by id and by reference', async () => {
    const first = await send({ key: 'k1' });
    const second = await send({ key: 'k1' });
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(second.body).toBe(first.body);
    const id = String(payout(first)['id']);
    expect(payout(await send({ method: 'GET', path: `/v1/payouts/${id}` }))).toEqual(payout(first));
    expect(payouts(await list())).toEqual([payout(first)]);
    expect(payout(await list('pay_b/1'))).toEqual({ object: 'list', data: [], has_more: false });
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
    expect((await control.allEffects()).count).toBe(0);
    const [seen] = await control.requests();
    expect(seen).toMatchObject({ httpStatus: status, key: 'k1' });
  });

  it('DC-03: 40 parallel requests under one key move the money once and get one answer', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => send({ key: 'k1' })));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1);
    expect(await charged()).toBe(1);
  });

  it('profile T pays at the commit', async () => {
    const made = payout(await send({ bearer: 'sk_t', key: 'k1' }));
    expect(made['status']).toBe('requires_commit');
    expect(await charged()).toBe(0);
    const path = `/v1/payouts/${String(made['id'])}/commit`;
    expect(payout(await send({ bearer: 'sk_t', path, key: 'k1:commit' }))['status']).toBe('succeeded');
    expect(await charged()).toBe(1);
    const seen = await control.requests('pay_a');
    expect(seen.map(({ operation }) => operation)).toEqual(['submit', 'commit']);
  });
});

describe('faults before execution move nothing, and the repeat under the key pays once', () => {
  it.each<[FaultInput, number | null]>([
    ['reset_before', null],
    ['http_500_before', 500],
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
    const seen = await control.requests('pay_a');
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

  it('hang never answers, and its key is busy until the client has gone', async () => {
    await disturb('hang');
    const leave = new AbortController();
    const hung = send({ key: 'k1', signal: leave.signal }).catch(() => 'gone');
    await control.untilRequests('pay_a', (seen) => seen.length === 1);
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
    ['empty_200_after', 200, (answer) => expect(answer?.body).toBe('')],
    ['broken_json_after', 200, (answer) => expect(() => payout(answer!)).toThrow(SyntaxError)],
    ['unknown_status_after', 200, (answer) => expect(payout(answer!)['status']).toBe('reticulating')],
    ['other_amount_after', 200, (answer) => expect(payout(answer!)['amount']).toBe(1251)],
  ])('%s', async (fault, status, check) => {
    await disturb(fault);
    check(await send({ key: 'k1' }).catch(() => null));
    expect(await charged()).toBe(1);
    const repeat = await send({ key: 'k1' });
    expect(repeat.headers['idempotent-replayed']).toBe('true');
    expect(payout(repeat)).toMatchObject({ amount: 1250, status: 'succeeded' });
    expect(await charged()).toBe(1);
    expect((await control.requests('pay_a'))[0]).toMatchObject({ fault, httpStatus: status });
  });

  it('a stored 500 is what the key replays, also though the money moved', async () => {
    await disturb({ kind: 'http_500_after', stored: true });
    expect((await send({ key: 'k1' })).status).toBe(500);
    const repeat = await send({ key: 'k1' });
    expect([repeat.status, repeat.headers['idempotent-replayed']]).toEqual([500, 'true']);
    expect(await charged()).toBe(1);
    expect(payouts(await list())).toHaveLength(1);
  });

  it('AM-01: a booked other amount is paid and shown to every lookup', async () => {
    await disturb({ kind: 'other_amount_after', amount: 9_999, booked: true });
    expect(payout(await send({ key: 'k1' }))['amount']).toBe(9_999);
    expect(payouts(await list())[0]?.['amount']).toBe(9_999);
    expect((await control.effects('pay_a')).charges.map(({ amount }) => amount)).toEqual([9_999]);
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
    expect(payout(await send({ key: 'k1' }))['status']).toBe('pending');
    expect(await charged()).toBe(1);
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push(payouts(await list())[0]?.['status']);
    expect(statuses).toEqual(['pending', 'pending', 'failed']);
    const { count, charges } = await control.effects('pay_a');
    expect([count, charges[0]?.status]).toEqual([0, 'failed']);
  });

  it('DC-01: slow executes at once, and its key is busy until the answer', async () => {
    await disturb({ kind: 'slow', afterMs: 1_000 });
    const slow = send({ key: 'k1' });
    await control.untilCharged('pay_a');
    expect(errorCode(await send({ key: 'k1' }))).toBe('idempotency_key_in_use');
    expect((await slow).status).toBe(200);
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBe('true');
    expect(await charged()).toBe(1);
  });

  it('late_commit executes after its client has gone, under the arrival time of the request', async () => {
    await disturb({ kind: 'late_commit', afterMs: 500 });
    const leave = new AbortController();
    const lost = send({ key: 'k1', signal: leave.signal }).catch(() => 'gone');
    const [seen] = await control.untilRequests('pay_a', (requests) => requests.length === 1);
    expect(payouts(await list())).toEqual([]);
    leave.abort();
    expect(await lost).toBe('gone');
    const [charge] = await control.untilCharged('pay_a');
    expect(charge?.receivedAt).toBe(seen?.receivedAt);
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBe('true');
  });
});

describe('UO-02: lookups', () => {
  it('can deny what exists, fail, or be forbidden, and then tell the truth', async () => {
    const { id } = payout(await send({ key: 'k1' }));
    await control.script('pay_a', 'lookup', { kind: 'lookup_absent', times: 2 }, 'lookup_500', 'http_403');
    expect(payouts(await list())).toEqual([]);
    expect(errorCode(await send({ method: 'GET', path: `/v1/payouts/${String(id)}` }))).toBe(
      'payout_not_found',
    );
    expect((await list()).status).toBe(500);
    expect((await list()).status).toBe(403);
    expect(payouts(await list())).toHaveLength(1);
  });

  it('other amounts and unknown words are shown in lists too', async () => {
    await send({ key: 'k1' });
    await control.script(
      'pay_a',
      'lookup',
      { kind: 'other_amount_after', amount: 7 },
      'unknown_status_after',
    );
    expect(payouts(await list())[0]).toMatchObject({ amount: 7, status: 'succeeded' });
    expect(payouts(await list())[0]).toMatchObject({ amount: 1250, status: 'reticulating' });
  });
});

describe('the control port', () => {
  it.each(['', 'Bearer wrong-token', TOKEN])('refuses the authorization "%s"', async (authorization) => {
    const url = `http://127.0.0.1:${running.controlPort}/effects`;
    expect((await fetch(url, { headers: { authorization } })).status).toBe(401);
  });

  it('names every payment that was paid twice, and lists all charges', async () => {
    await send({ key: 'k1' });
    await send({ key: 'k2', body: { ...BODY, reference: 'pay_a/2' } });
    await send({ key: 'k3', body: { ...BODY, reference: 'pay_b/1' } });
    const all = await control.allEffects();
    expect(all).toMatchObject({ count: 3, payments: 2, duplicates: [{ paymentId: 'pay_a', count: 2 }] });
    expect(all.charges.map(({ reference, key }) => [reference, key])).toEqual([
      ['pay_a/1', 'k1'],
      ['pay_a/2', 'k2'],
      ['pay_b/1', 'k3'],
    ]);
    expect((await control.effects('pay_a/2')).count).toBe(2);
  });

  it('finds charges that came before their time, and says which it cannot judge', async () => {
    const inAnHour = Date.now() + 3_600_000;
    await control.expect({ pay_a: new Date(inAnHour).toISOString(), pay_b: Date.now() - 1_000 });
    for (const reference of ['pay_a/1', 'pay_b/1', 'pay_c/1']) await send({ body: { ...BODY, reference } });
    const early = await control.early();
    expect(early).toMatchObject({ count: 1, unregistered: 1 });
    expect(early.charges[0]).toMatchObject({ reference: 'pay_a/1', expectedAt: inAnHour });
  });

  it('closes and opens the provider port', async () => {
    await control.suspend();
    await control.suspend();
    await expect(send({ key: 'k1' })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await control.resume();
    await control.resume();
    expect((await send({ key: 'k1' })).status).toBe(200);
  });

  it('cuts hanging requests when the port closes', async () => {
    await disturb('hang');
    const hung = send({ key: 'k1' });
    const ended = expect(hung).rejects.toThrow();
    await control.untilRequests('pay_a', (seen) => seen.length === 1);
    await control.suspend();
    await ended;
  });

  it('resets as many new connections as it is told', async () => {
    await control.refuse(2);
    await expect(send({ key: 'k1' })).rejects.toThrow();
    await expect(send({ key: 'k1' })).rejects.toThrow();
    expect((await send({ key: 'k1' })).status).toBe(200);
    expect(await control.requests('pay_a')).toHaveLength(1);
  });

  it('reset forgets charges, keys, plans, requests and late executions, also in the file', async () => {
    await send({ key: 'k1' });
    await disturb({ kind: 'late_commit', afterMs: 200 }, 'decline');
    const lost = send({ key: 'k2' }).catch(() => 'cut');
    await control.untilRequests('pay_a', (seen) => seen.length === 2);
    await control.reset();
    expect(await lost).toBe('cut');
    expect(await control.requests()).toEqual([]);
    expect((await send({ key: 'k1' })).headers['idempotent-replayed']).toBeUndefined();
    // Timers of one length fire in order: had the first one lived, k2 would be paid before k3.
    await disturb({ kind: 'late_commit', afterMs: 200 });
    const late = send({ key: 'k3' }).catch(() => 'cut');
    const keys = (await control.untilCharged('pay_a', 2)).map(({ key }) => key);
    expect(keys).toEqual(['k1', 'k3']);
    running.stop();
    expect(await late).toBe('cut');
    await start();
    expect((await control.effects('pay_a')).charges.map(({ key }) => key)).toEqual(['k1', 'k3']);
  });

  it.each<[string, string, unknown]>([
    ['an unknown fault', '/plan', { scripts: [{ reference: 'a', submit: ['explode'] }] }],
    ['an unreadable time', '/expect', { pay_a: 'soon' }],
    ['a listen without a word', '/listen', {}],
    ['a refusal without a count', '/refuse', { connections: 'all' }],
    ['an unknown command', '/explode', {}],
  ])('refuses %s with a sentence', async (_title, path, body) => {
    await expect(control.control('POST', path, body)).rejects.toThrow(`POST ${path} was refused: `);
  });
});
