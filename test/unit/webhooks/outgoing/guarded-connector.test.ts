import { createServer, connect, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newSecret } from '../../../../src/webhooks/outgoing/event-signature.js';
import { EventSender } from '../../../../src/webhooks/outgoing/event-sender.js';
import { startWebhookReceiver, type WebhookReceiver } from '../../../support/webhook-receiver.js';

const EVENT = {
  paymentId: 'pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk',
  version: 1,
  state: 'scheduled',
  occurredAt: '2026-12-24 09:00:00+00',
} as const;

let receiver: WebhookReceiver;
let proxy: Server;
/** The heads of what was asked of the proxy. */
let asked: string[];
let answer: string;

/** Leads every CONNECT to the receiver, whatever address it names. */
beforeEach(async () => {
  receiver = await startWebhookReceiver();
  asked = [];
  answer = 'HTTP/1.1 200 Connection established\r\n\r\n';
  proxy = createServer((client) => {
    client.on('error', () => undefined);
    client.once('data', (head) => {
      asked.push(head.toString('latin1'));
      client.write(answer);
      if (!answer.startsWith('HTTP/1.1 200')) return void client.end();
      const way = connect(receiver.port, '127.0.0.1');
      way.on('error', () => client.destroy());
      client.on('close', () => way.destroy());
      way.pipe(client);
      client.pipe(way);
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  await receiver.close();
  await new Promise((resolve) => proxy.close(resolve));
});

async function send(resolve: () => Promise<readonly string[]>, user = '') {
  const { port } = proxy.address() as AddressInfo;
  const sender = new EventSender({
    policy: { ports: [], allowLoopback: false },
    proxy: `http://${user}127.0.0.1:${port}`,
    resolve,
    tls: { ca: receiver.ca },
  });
  try {
    return await sender.send('https://hooks.example.com/payments', EVENT, [newSecret()]);
  } finally {
    await sender.close();
  }
}

describe('the egress proxy', () => {
  it('is asked for the address that was judged, and the name is checked end to end', async () => {
    expect(await send(async () => ['8.8.8.8'], 'worker:p%40ss@')).toEqual({
      code: 'delivered',
      httpStatus: 204,
    });
    const credentials = Buffer.from('worker:p@ss').toString('base64');
    expect(asked).toEqual([
      `CONNECT 8.8.8.8:443 HTTP/1.1\r\nHost: 8.8.8.8:443\r\nProxy-Authorization: Basic ${credentials}\r\n\r\n`,
    ]);
    expect(receiver.received.map(({ host, path }) => [host, path])).toEqual([
      ['hooks.example.com', '/payments'],
    ]);
  });

  it('is asked for an IPv6 address in brackets', async () => {
    expect(await send(async () => ['2001:4860:4860::8888'])).toMatchObject({ code: 'delivered' });
    expect(asked[0]).toContain('CONNECT [2001:4860:4860::8888]:443 HTTP/1.1');
  });

  it('is not asked for an address that must not be reached', async () => {
    expect(await send(async () => ['10.0.0.1'])).toEqual({ code: 'address_refused', httpStatus: null });
    expect(asked).toEqual([]);
  });

  it.each([
    ['refuses', 'HTTP/1.1 403 Forbidden\r\n\r\n'],
    ['speaks something else', 'SSH-2.0-x\r\n\r\n'],
    ['says more than its head', 'HTTP/1.1 200 OK\r\n\r\nmore'],
    ['never ends its head', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(10_000)}`],
  ])('that %s means unreachable, and nothing is sent', async (_how, text) => {
    answer = text;
    expect(await send(async () => ['8.8.8.8'])).toEqual({ code: 'unreachable', httpStatus: null });
    expect(receiver.received).toEqual([]);
  });
});
