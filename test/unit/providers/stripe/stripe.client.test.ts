import * as diagnostics from 'node:diagnostics_channel';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type Stripe from 'stripe';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StripeClient } from '../../../../src/providers/stripe/stripe.client.js';
import type { ExchangeLimits, StripeExchange } from '../../../../src/providers/stripe/stripe.client.js';
import { answer, hangUp, reset, scriptedServer, silence } from '../../../support/scripted-server.js';
import type { ScriptedServer } from '../../../support/scripted-server.js';
import { transfer } from '../../../support/stripe-exchange.js';
import { until } from '../../../support/until.js';

const KEY = 'sk_test_client';
let server: ScriptedServer;
let client: StripeClient;
const open = (
  baseUrl: string,
  changes: { sdkTimeoutMs?: number; connectTimeoutMs?: number } = {},
): StripeClient =>
  new StripeClient({
    baseUrl,
    apiKey: KEY,
    connectTimeoutMs: 3_000,
    sdkTimeoutMs: 20_000,
    maxSockets: 8,
    ...changes,
  });

beforeEach(async () => {
  server = await scriptedServer();
  client = open(server.url);
});
afterEach(async () => {
  await client.close();
  await server.close();
});

const create = (stripe: Stripe, options: Stripe.RequestOptions): Promise<unknown> =>
  stripe.transfers.create({ amount: 1250, currency: 'eur', destination: 'acct_1Payee' }, options);

/** One POST under one key. */
function post(changes: Partial<ExchangeLimits> = {}, through = client): Promise<StripeExchange> {
  return through.exchange((stripe) => create(stripe, { idempotencyKey: 'key-1' }), {
    deadlineMs: 10_000,
    mayWrite: () => true,
    ...changes,
  });
}

describe('one call is one request', () => {
  it('it carries key, pinned version and plain credential, and no telemetry', async () => {
    server.behave(answer(200, transfer()));
    await post();
    await post();
    expect(server.seen).toHaveLength(2);
    for (const { headers } of server.seen) {
      expect(headers).toMatchObject({
        'idempotency-key': 'key-1',
        'stripe-version': '2026-10-28.endive',
        authorization: `Bearer ${KEY}`,
      });
      expect(headers).not.toHaveProperty('x-stripe-client-telemetry');
    }
    expect(server.seen[0]?.body).toBe('amount=1250&currency=eur&destination=acct_1Payee');
  });

  it.each([
    ['a reset', reset],
    ['a hang-up', hangUp],
    ['500', answer(500, { error: { type: 'api_error' } })],
    [
      '500 that asks for a retry',
      answer(500, { error: { type: 'api_error' } }, { 'stripe-should-retry': 'true' }),
    ],
    ['409', answer(409, { error: { type: 'idempotency_error', code: 'idempotency_key_in_use' } })],
    ['429', answer(429, { error: { type: 'invalid_request_error', code: 'rate_limit' } })],
    ['421, which fetch would repeat', answer(421, { error: { type: 'invalid_request_error' } })],
    [
      '401',
      answer(401, { error: { type: 'invalid_request_error' } }, { 'www-authenticate': 'Basic realm="x"' }),
    ],
  ])('DC-01: nothing is sent again after %s', async (_name, behaviour) => {
    server.behave(behaviour, answer(200, transfer()));
    const { outcome, bytesSent } = await post();
    expect(outcome.kind).not.toBe('resolved');
    expect(bytesSent).toBe(true);
    // Another call passes through the same client: whatever was to come is there by now.
    await post();
    expect(server.seen).toHaveLength(2);
  });

  it('DC-01: an SDK that would repeat is not let: the second request of a call never leaves', async () => {
    server.behave(answer(500, { error: { type: 'api_error' } }), answer(200, transfer()));
    const eager = (stripe: Stripe): Promise<unknown> =>
      create(stripe, { idempotencyKey: 'key-1', maxNetworkRetries: 2 });
    const result = await client.exchange(eager, { deadlineMs: 10_000, mayWrite: () => true });
    expect(result.bytesSent).toBe(true);
    expect(result.outcome.kind).not.toBe('resolved');
    expect(server.seen).toHaveLength(1);
  });

  it('DC-01: two requests in one call are one request and a fault', async () => {
    server.behave(answer(200, transfer()));
    const twice = async (stripe: Stripe): Promise<unknown> => {
      await create(stripe, { idempotencyKey: 'key-1' });
      return create(stripe, { idempotencyKey: 'key-1' });
    };
    const result = await client.exchange(twice, { deadlineMs: 10_000, mayWrite: () => true });
    expect(result).toMatchObject({ bytesSent: true, fault: 'second_send', outcome: { kind: 'thrown' } });
    expect(server.seen).toHaveLength(1);
  });

  it.each([301, 302, 303, 307, 308])('a redirect %d is an answer, not a way to go', async (status) => {
    server.behave(answer(status, {}, { location: `${server.url}/elsewhere` }));
    const { head, outcome } = await post();
    expect(head?.status).toBe(status);
    expect(outcome).toMatchObject({ kind: 'resolved' });
    expect(server.seen.map(({ path }) => path)).toEqual(['/v1/transfers']);
  });
});

describe('no byte left', () => {
  it('a refused connection is a proof', async () => {
    await server.close();
    expect(await post()).toMatchObject({ bytesSent: false, fault: 'connect_refused', head: null });
  });

  it('a name that does not resolve is a proof', async () => {
    const nowhere = open('http://name.invalid:9');
    expect(await post({}, nowhere)).toMatchObject({ bytesSent: false, fault: 'dns' });
    await nowhere.close();
  });

  it('a server that does not speak TLS is a proof', async () => {
    const secure = open(server.url.replace('http:', 'https:'));
    expect(await post({}, secure)).toMatchObject({ bytesSent: false, fault: 'connect_failed' });
    await secure.close();
    expect(server.seen).toHaveLength(0);
  });

  it('a handshake that does not end within the connect time-out is a proof', async () => {
    const mute = createServer((socket) => socket.resume());
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const { port } = mute.address() as AddressInfo;
    const secure = open(`https://127.0.0.1:${port}`, { connectTimeoutMs: 50 });
    expect(await post({}, secure)).toMatchObject({ bytesSent: false, fault: 'connect_timeout' });
    await secure.close();
    await new Promise((resolve) => mute.close(resolve));
  });

  it('CR-01: a lease that is gone when the socket is connected is a proof, and nothing arrives', async () => {
    let asked = 0;
    const result = await post({
      mayWrite: () => {
        asked++;
        expect(server.connections()).toBe(1);
        return false;
      },
    });
    expect(result).toMatchObject({ bytesSent: false, fault: 'lease_lost' });
    expect(asked).toBe(1);
    server.behave(answer(200, transfer()));
    await post();
    expect(server.seen).toHaveLength(1);
  });

  it('a check of the lease that throws counts as no', async () => {
    const mayWrite = (): boolean => {
      throw new Error('no database');
    };
    expect(await post({ mayWrite })).toMatchObject({ bytesSent: false, fault: 'client_fault' });
    expect(server.seen).toHaveLength(0);
  });

  it('the lease is asked again on a connection that is used again', async () => {
    server.behave(answer(200, transfer()));
    await post();
    expect(await post({ mayWrite: () => false })).toMatchObject({ bytesSent: false, fault: 'lease_lost' });
    expect(server.seen).toHaveLength(1);
  });

  it('parameters that the SDK itself refuses never leave', async () => {
    const result = await client.exchange((stripe) => stripe.rawRequest('GET', '/v1/transfers', { a: 1 }), {
      deadlineMs: 1_000,
      mayWrite: () => true,
    });
    expect(result.bytesSent).toBe(false);
    expect(server.seen).toHaveLength(0);
  });

  it('a closed client sends nothing', async () => {
    await client.close();
    expect(await post()).toMatchObject({ bytesSent: false, fault: 'client_closed' });
  });

  it('our word never lags behind undici’s: no `sendHeaders` without a byte counted as sent', async () => {
    const told: string[] = [];
    const onHeaders = (): number => told.push('sendHeaders');
    const onError = (): number => told.push('connectError');
    diagnostics.subscribe('undici:client:sendHeaders', onHeaders);
    diagnostics.subscribe('undici:client:connectError', onError);
    try {
      server.behave(answer(200, transfer()));
      expect((await post()).bytesSent).toBe(true);
      expect((await post({ mayWrite: () => false })).bytesSent).toBe(false);
      await server.close();
      const late = open(server.url);
      expect((await post({}, late)).bytesSent).toBe(false);
      await late.close();
    } finally {
      diagnostics.unsubscribe('undici:client:sendHeaders', onHeaders);
      diagnostics.unsubscribe('undici:client:connectError', onError);
    }
    expect(told).toEqual(['sendHeaders', 'connectError']);
  });
});

describe('the end comes in time', () => {
  it('DC-01: silence ends at the deadline', async () => {
    server.behave(silence);
    expect(await post({ deadlineMs: 100 })).toMatchObject({ bytesSent: true, fault: 'deadline' });
    expect(server.seen).toHaveLength(1);
  });

  it('the SDK’s time-out, which is shorter, is told apart', async () => {
    const hasty = open(server.url, { sdkTimeoutMs: 60 });
    server.behave(silence);
    expect(await post({}, hasty)).toMatchObject({ bytesSent: true, fault: 'sdk_timeout' });
    await hasty.close();
  });

  it('a body that never ends is cut at the deadline', async () => {
    server.behave((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).write('{'),
    );
    expect(await post({ deadlineMs: 100 })).toMatchObject({ bytesSent: true, fault: 'deadline', head: null });
  });

  it('a call of which the SDK makes nothing ends too', async () => {
    const result = client.exchange(() => new Promise(() => undefined), {
      deadlineMs: 50,
      mayWrite: () => true,
    });
    expect(await result).toMatchObject({ bytesSent: false, fault: 'deadline', outcome: { kind: 'silent' } });
  });

  it('after its end a call cannot send any more', async () => {
    let goOn: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    let late: Promise<unknown> = Promise.resolve();
    const result = await client.exchange(
      (stripe, options) => (late = waiting.then(() => create(stripe, options))),
      { deadlineMs: 20, mayWrite: () => true },
    );
    expect(result).toMatchObject({ bytesSent: false, fault: 'deadline' });
    goOn();
    await expect(late).rejects.toThrow();
    expect(server.seen).toHaveLength(0);
  });

  it('closing the client ends calls under way', async () => {
    server.behave(silence);
    const under = post();
    await until(
      'the request',
      () => server.seen.length,
      (count) => count === 1,
    );
    await client.close();
    expect(await under).toMatchObject({ bytesSent: true, fault: 'client_closed' });
  });
});

describe('an answer that is no JSON object', () => {
  it.each([
    ['HTML', answer(502, '<html>')],
    ['nothing', answer(200, '')],
    ['broken JSON', answer(200, '{"id":"tr_1Tr')],
    // The SDK makes an unhandled rejection of these: the process would end.
    ['a number', answer(200, '1')],
    ['a word', answer(200, '"succeeded"')],
    ['true', answer(200, 'true')],
    ['null', answer(200, 'null')],
    ['a list', answer(200, '[]')],
    [
      'text that is not UTF-8',
      ((_r, response) => response.writeHead(200).end(Buffer.from([0x7b, 0xff, 0x7d]))) as typeof silence,
    ],
    ['204', answer(204, '')],
    ['205', ((_r, response) => response.writeHead(205).end()) as typeof silence],
  ])('UO-01: %s never reaches the SDK', async (_name, behaviour) => {
    server.behave(behaviour);
    const { outcome, fault, head, bytesSent } = await post();
    expect({ fault, bytesSent }).toEqual({ fault: 'unreadable', bytesSent: true });
    expect(outcome.kind).not.toBe('resolved');
    expect(head?.status).toBeGreaterThanOrEqual(200);
  });

  it('TP-03: more than 4 MiB are not read on', async () => {
    server.behave(answer(200, `{"a":"${'x'.repeat(5 * 1024 * 1024)}"}`));
    expect(await post()).toMatchObject({ fault: 'body_too_large', head: null });
  });
});
