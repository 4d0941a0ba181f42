import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BODY, HttpSimulator, TOKEN } from '../../support/simulator-http.js';
import type { FaultInput } from '../../support/simulator-control.js';

/** What an endpoint got. */
interface Taken {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly account: string;
    readonly data: { readonly object: Record<string, unknown> };
    readonly request: { readonly idempotency_key: string };
  };
  readonly at: number;
}

const SECRET = 'secret-of-the-endpoint';
const STANDARD_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

let simulator: HttpSimulator;
let receiver: Server;
let taken: Taken[];
/** Statuses of the next answers; then 204. */
let answers: number[];
let url: string;

beforeEach(async () => {
  taken = [];
  answers = [];
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      taken.push({
        headers: request.headers,
        body,
        event: JSON.parse(body) as Taken['event'],
        at: Date.now(),
      });
      response.writeHead(answers.shift() ?? 204).end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  simulator = await HttpSimulator.start({
    SIMULATOR_WEBHOOKS: JSON.stringify([{ account: 'acct_a', url, secret: SECRET }]),
    SIMULATOR_WEBHOOK_RETRY_MS: '10,20',
  });
});
afterEach(() => {
  simulator.close();
  receiver.close();
  receiver.closeAllConnections();
});

/** Waits until nothing is under way, then gives what arrived. */
async function settled(count: number): Promise<readonly Taken[]> {
  await expect.poll(() => taken.length).toBeGreaterThanOrEqual(count);
  await expect.poll(async () => (await simulator.webhooks()).pending).toBe(0);
  return taken;
}
const types = (list: readonly Taken[]): string[] => list.map(({ event }) => event.type);
const disturb = (...faults: FaultInput[]): Promise<void> => simulator.script('pay_a', 'webhook', ...faults);
/** The header's parts, and whether it is right under the secret. */
function checked({ headers, body }: Taken): { readonly isRight: boolean; readonly ageS: number } {
  const [, t, v1] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(String(headers['simulated-signature'])) ?? [];
  const right = createHmac('sha256', SECRET).update(`${t}.${body}`).digest('hex');
  return { isRight: right === v1, ageS: Date.now() / 1000 - Number(t) };
}

describe('events', () => {
  it('tell of a success with payout, reference and key, signed', async () => {
    await simulator.send({ key: 'k1' });
    const [first] = await settled(1);
    expect(first!.event).toMatchObject({
      object: 'event',
      type: 'payout.succeeded',
      account: 'acct_a',
      livemode: false,
      data: { object: { object: 'payout', reference: 'pay_a/1', status: 'succeeded' } },
      request: { idempotency_key: 'k1' },
    });
    expect(checked(first!).isRight).toBe(true);
    expect(taken).toHaveLength(1);
  });

  it('PR-01: tell of pending, success and return in order, by the virtual clock', async () => {
    await simulator.script('pay_a', 'submit', {
      kind: 'pending_then_final',
      afterMs: 60_000,
      returnAfterMs: 120_000,
    });
    await simulator.send({ key: 'k1' });
    await settled(1);
    await simulator.advanceClock(60_000);
    await settled(2);
    await simulator.advanceClock(60_000);
    expect(types(await settled(3))).toEqual(['payout.pending', 'payout.succeeded', 'payout.returned']);
    expect(taken[2]!.event.data.object['returned']).toMatchObject({
      code: 'destination_closed',
      amount: 1250,
    });
  });

  it('tell of a failure after pending, of nothing for a decline or an inert payout', async () => {
    await simulator.setWebhook({ account: 'acct_t', url, secrets: [SECRET] });
    await simulator.send({ key: 'k0', bearer: 'sk_t' });
    await simulator.script('pay_a', 'submit', 'decline', {
      kind: 'pending_then_final',
      afterMs: 10,
      final: 'failed',
    });
    await simulator.send({ key: 'k1' });
    await simulator.send({ key: 'k2' });
    expect(types(await settled(2))).toEqual(['payout.pending', 'payout.failed']);
  });

  it('are sent again until 2xx, under one id, and then no more', async () => {
    answers = [500, 302];
    await simulator.send({ key: 'k1' });
    const all = await settled(3);
    expect(new Set(all.map(({ event }) => event.id)).size).toBe(1);
    expect(
      (await simulator.deliveries('pay_a')).map(({ attempt, httpStatus }) => [attempt, httpStatus]),
    ).toEqual([
      [1, 500],
      [2, 302],
      [3, 204],
    ]);
    expect(all).toHaveLength(3);
  });

  it('are given up after the last repeat, and sent once more on demand', async () => {
    answers = [500, 500, 500];
    await simulator.send({ key: 'k1' });
    await settled(3);
    await simulator.redeliver('pay_a');
    const all = await settled(4);
    expect(new Set(all.map(({ event }) => event.id)).size).toBe(1);
  });

  it('go nowhere once the endpoint is taken away, and elsewhere by a restart on the same ledger', async () => {
    await simulator.setWebhook({ account: 'acct_a', url: null });
    await simulator.restart();
    await simulator.send({ key: 'k1' });
    expect((await simulator.webhooks()).endpoints).toEqual([]);
    await simulator.reset();
    await simulator.send({ key: 'k2' });
    expect((await settled(1)).map(({ event }) => event.request.idempotency_key)).toEqual(['k2']);
  });
});

describe('signatures', () => {
  it('of Standard Webhooks cover id, time and body, once per secret', async () => {
    const other = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
    const secrets = [STANDARD_SECRET, other];
    await simulator.setWebhook({ account: 'acct_a', url, scheme: 'standard', secrets });
    await simulator.send({ key: 'k1' });
    const [{ headers, body, event }] = (await settled(1)) as [Taken];
    expect(headers['webhook-id']).toBe(event.id);
    const text = `${event.id}.${String(headers['webhook-timestamp'])}.${body}`;
    const expected = [Buffer.alloc(32, 7), Buffer.alloc(24, 9)].map(
      (key) => `v1,${createHmac('sha256', key).update(text).digest('base64')}`,
    );
    expect(headers['webhook-signature']).toBe(expected.join(' '));
  });

  it('of Stripe are in the header of Stripe', async () => {
    await simulator.setWebhook({ account: 'acct_a', url, scheme: 'stripe', secrets: ['whsec_stripe'] });
    await simulator.send({ key: 'k1' });
    const [{ headers, body }] = (await settled(1)) as [Taken];
    const [, t, v1] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(String(headers['stripe-signature'])) ?? [];
    expect(v1).toBe(createHmac('sha256', 'whsec_stripe').update(`${t}.${body}`).digest('hex'));
  });

  it.each<[string, unknown]>([
    ['no url', { account: 'acct_a', secret: SECRET }],
    ['an unknown account', { account: 'acct_x', url: 'http://127.0.0.1', secret: SECRET }],
    ['an unknown scheme', { account: 'acct_a', url: 'http://127.0.0.1', secret: SECRET, scheme: 'none' }],
    ['a short secret', { account: 'acct_a', url: 'http://127.0.0.1', secret: 'short' }],
    [
      'a secret that is not base64',
      { account: 'acct_a', url: 'http://127.0.0.1', secret: SECRET, scheme: 'standard' },
    ],
  ])('an endpoint with %s is refused without a word of the secret', async (_title, endpoint) => {
    const response = await fetch(`${simulator.controlUrl}/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify(endpoint),
    });
    expect(response.status).toBe(400);
    expect(await response.text()).not.toContain(SECRET);
  });
});

describe('F19: faults of events', () => {
  it('drop sends nothing, and says so', async () => {
    await disturb('drop');
    await simulator.send({ key: 'k1' });
    await expect.poll(async () => (await simulator.deliveries('pay_a')).length).toBe(1);
    expect((await simulator.deliveries('pay_a'))[0]).toMatchObject({ attempt: 0, error: 'dropped' });
    expect(taken).toEqual([]);
  });

  it('duplicate sends one event several times', async () => {
    await disturb({ kind: 'duplicate', copies: 5 });
    await simulator.send({ key: 'k1' });
    const all = await settled(5);
    expect(new Set(all.map(({ body }) => body)).size).toBe(1);
    expect(all).toHaveLength(5);
  });

  it('reorder lets the next event overtake', async () => {
    const submit = [{ kind: 'pending_then_final', afterMs: 100_000 }];
    const webhook = [{ kind: 'reorder', afterMs: 20_000 }];
    await simulator.plan({ scripts: [{ reference: 'pay_a', submit, webhook }] });
    await simulator.send({ key: 'k1' });
    await simulator.advanceClock(100_000);
    expect(types(await settled(2))).toEqual(['payout.succeeded', 'payout.pending']);
  });

  it('reorder without a next event only delays', async () => {
    await disturb({ kind: 'reorder', afterMs: 30 });
    await simulator.send({ key: 'k1' });
    expect(types(await settled(1))).toEqual(['payout.succeeded']);
  });

  it('early arrives before the answer of its cause', async () => {
    await disturb('early');
    await simulator.send({ key: 'k1' });
    expect(types(taken)).toEqual(['payout.succeeded']);
  });

  it.each([
    ['forged', false],
    ['other_account', true],
    ['unknown_reference', true],
    ['unknown_type', true],
    ['oversized', true],
  ] as const)('%s puts a stray event before the honest one', async (kind, isSigned) => {
    await disturb(kind);
    await simulator.send({ key: 'k1' });
    const [stray, honest] = (await settled(2)) as [Taken, Taken];
    expect(checked(stray).isRight).toBe(isSigned);
    expect(checked(honest).isRight).toBe(true);
    expect(honest.event).toMatchObject({ type: 'payout.succeeded', account: 'acct_a' });
    expect(stray.event.id).not.toBe(honest.event.id);
    const { object } = stray.event.data;
    const oddities = {
      forged: object['status'] === 'failed',
      other_account: stray.event.account !== 'acct_a',
      unknown_reference: object['reference'] !== BODY.reference,
      unknown_type: stray.event.type === 'payout.reticulated',
      oversized: stray.body.length > 1024 * 1024,
    };
    expect(Object.entries(oddities).filter(([, is]) => is)).toEqual([[kind, true]]);
    expect(taken).toHaveLength(2);
  });

  it.each([
    ['old', 600],
    ['future', -600],
  ] as const)('%s is first signed at the wrong time, then at the right one', async (kind, shiftS) => {
    answers = [400];
    await disturb(kind);
    await simulator.send({ key: 'k1' });
    const [first, second] = (await settled(2)).map(checked);
    expect(first!.isRight && second!.isRight).toBe(true);
    expect(Math.abs(first!.ageS - shiftS)).toBeLessThan(60);
    expect(Math.abs(second!.ageS)).toBeLessThan(60);
  });
});
