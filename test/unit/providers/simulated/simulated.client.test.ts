import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { SimulatedClient } from '../../../../src/providers/simulated/simulated.client.js';
import type { Exchange, ExchangeRequest } from '../../../../src/providers/simulated/simulated.client.js';

/** A TCP server that records what arrives, and answers each request by a function of its number. */
class Peer {
  readonly received: string[] = [];
  readonly sockets: Socket[] = [];
  private constructor(private readonly server: Server) {}

  static async open(
    answer: (socket: Socket, no: number) => void,
    greet?: (socket: Socket) => void,
  ): Promise<Peer> {
    const server = createServer();
    const peer = new Peer(server);
    server.on('connection', (socket) => {
      peer.sockets.push(socket);
      socket.on('error', () => undefined);
      greet?.(socket);
      socket.on('data', (chunk) => {
        peer.received.push(chunk.toString('latin1'));
        answer(socket, peer.received.length);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return peer;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }
}

const opened: { close: () => void }[] = [];
afterEach(() => {
  for (const thing of opened.splice(0)) thing.close();
});

async function peerThat(
  answer: (socket: Socket, no: number) => void,
  greet?: (socket: Socket) => void,
): Promise<Peer> {
  const peer = await Peer.open(answer, greet);
  opened.push(peer);
  return peer;
}

function clientOf(baseUrl: string, connectTimeoutMs = 3_000): SimulatedClient {
  const client = new SimulatedClient({ baseUrl, apiKey: 'sk_a', connectTimeoutMs, maxSockets: 4 });
  opened.push(client);
  return client;
}
const clientTo = (peer: Peer): SimulatedClient => clientOf(`http://127.0.0.1:${peer.port}`);

function post(client: SimulatedClient, changes: Partial<ExchangeRequest> = {}): Promise<Exchange> {
  return client.exchange({
    method: 'POST',
    path: '/v1/payouts',
    headers: { 'idempotency-key': 'k1' },
    body: '{"amount":1}',
    deadlineMs: 10_000,
    mayWrite: () => true,
    ...changes,
  });
}

function http(body: string, head = '200 OK'): string {
  return `HTTP/1.1 ${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
const broken = (fault: string, bytesSent: boolean): unknown => ({ fault, bytesSent, response: null });

/** A port of the loopback interface where nobody listens. */
async function closedPort(): Promise<number> {
  const peer = await Peer.open(() => undefined);
  const { port } = peer;
  peer.close();
  return port;
}

describe('an exchange', () => {
  it('sends one request with key, credential and body, and reads the answer', async () => {
    const peer = await peerThat((socket) => socket.write(http('{"a":"ä"}', '201 Created')));
    const exchange = await post(clientTo(peer));
    expect(exchange).toMatchObject({
      bytesSent: true,
      fault: null,
      response: { status: 201, body: '{"a":"ä"}' },
    });
    expect(peer.received).toHaveLength(1);
    expect(peer.received[0]).toMatch(/^POST \/v1\/payouts HTTP\/1\.1\r\n/);
    expect(peer.received[0]).toMatch(/\r\nidempotency-key: k1\r\n/);
    expect(peer.received[0]).toMatch(/\r\nauthorization: Bearer sk_a\r\n/);
    expect(peer.received[0]).toMatch(/\r\n\r\n\{"amount":1\}$/);
  });

  it('makes a connection of its own for every call where that is wanted', async () => {
    const peer = await peerThat((socket) => socket.write(http('{}')));
    const client = new SimulatedClient({
      baseUrl: `http://127.0.0.1:${peer.port}`,
      apiKey: 'sk_a',
      connectTimeoutMs: 3_000,
      maxSockets: 4,
      freshSockets: true,
    });
    opened.push(client);
    await post(client);
    await post(client);
    expect([peer.sockets.length, peer.received.length]).toEqual([2, 2]);
  });

  it('keeps the connection for the next', async () => {
    const peer = await peerThat((socket) => socket.write(http('{}')));
    const client = clientTo(peer);
    await post(client);
    await post(client);
    expect([peer.sockets.length, peer.received.length]).toEqual([1, 2]);
  });

  it('puts the path behind the path of the base URL', async () => {
    const peer = await peerThat((socket) => socket.write(http('{}')));
    await post(clientOf(`http://127.0.0.1:${peer.port}/pay/`));
    expect(peer.received[0]).toMatch(/^POST \/pay\/v1\/payouts /);
  });

  it('shows a redirect and does not follow it', async () => {
    const peer = await peerThat((socket) =>
      socket.write(http('', '307 Temporary Redirect\r\nlocation: /elsewhere')),
    );
    expect(await post(clientTo(peer))).toMatchObject({ response: { status: 307 } });
    expect(peer.received).toHaveLength(1);
  });
});

describe('the question before the first byte', () => {
  it('is asked once the connection stands, and a no leaves not one byte', async () => {
    const peer = await peerThat(() => undefined);
    let asked = 0;
    const mayWrite = (): boolean => {
      asked += 1;
      return false;
    };
    expect(await post(clientTo(peer), { mayWrite })).toEqual(broken('lease_lost', false));
    await expect.poll(() => peer.sockets[0]?.destroyed).toBe(true);
    expect(asked).toBe(1);
    expect(peer.sockets[0]?.bytesRead).toBe(0);
  });

  it('is asked again on a connection that is used again', async () => {
    const peer = await peerThat((socket) => socket.write(http('{}')));
    const client = clientTo(peer);
    await post(client);
    expect(await post(client, { mayWrite: () => false })).toEqual(broken('lease_lost', false));
    await expect.poll(() => peer.sockets[0]?.destroyed).toBe(true);
    expect(peer.received).toHaveLength(1);
  });

  it('is not asked when there is no connection', async () => {
    let asked = 0;
    const mayWrite = (): boolean => {
      asked += 1;
      return true;
    };
    const client = clientOf(`http://127.0.0.1:${await closedPort()}`);
    expect(await post(client, { mayWrite })).toEqual(broken('connect_refused', false));
    expect(asked).toBe(0);
  });

  it('that fails counts as a no', async () => {
    const peer = await peerThat(() => undefined);
    const mayWrite = (): boolean => {
      throw new Error('clock broken');
    };
    expect(await post(clientTo(peer), { mayWrite })).toEqual(broken('client_fault', false));
    await expect.poll(() => peer.sockets[0]?.destroyed).toBe(true);
    expect(peer.received).toEqual([]);
  });

  it('waits its turn when all sockets are busy, and is asked only then', async () => {
    const held: Socket[] = [];
    const peer = await peerThat((socket) => held.push(socket));
    const client = clientTo(peer);
    const first = Array.from({ length: 4 }, () => post(client));
    await expect.poll(() => held.length).toBe(4);
    let asked = 0;
    const fifth = post(client, { mayWrite: () => (asked += 1) > 0 });
    expect(asked).toBe(0);
    held[0]?.write(http('{}'));
    await expect.poll(() => asked).toBe(1);
    for (const socket of held) if (!socket.destroyed) socket.write(http('{}'));
    await Promise.all(first);
    expect((await fifth).bytesSent).toBe(true);
  });
});

describe('what fails before the first byte was not sent', () => {
  it('a refused connection', async () => {
    expect(await post(clientOf(`http://127.0.0.1:${await closedPort()}`))).toEqual(
      broken('connect_refused', false),
    );
  });

  it('a host that does not exist', async () => {
    expect(await post(clientOf('http://a..b'))).toEqual(broken('dns', false));
  });

  it('a secure connection that never comes about', async () => {
    const peer = await peerThat(() => undefined);
    const client = clientOf(`https://127.0.0.1:${peer.port}`, 50);
    expect(await post(client)).toEqual(broken('connect_timeout', false));
    expect(peer.received.join('')).not.toContain('payouts');
  });

  it('a secure connection to somebody who does not speak it', async () => {
    const peer = await peerThat((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect(await post(clientOf(`https://127.0.0.1:${peer.port}`))).toEqual(broken('connect_failed', false));
  });

  it('a deadline that ends first', async () => {
    const peer = await peerThat(() => undefined);
    const client = clientOf(`https://127.0.0.1:${peer.port}`, 60_000);
    expect(await post(client, { deadlineMs: 30 })).toEqual(broken('deadline', false));
  });

  it('a header that cannot be written', async () => {
    const peer = await peerThat(() => undefined);
    const headers = { 'idempotency-key': 'a\r\nx: b' };
    expect(await post(clientTo(peer), { headers })).toEqual(broken('client_fault', false));
    expect(peer.sockets).toEqual([]);
  });

  it('a client that was closed', async () => {
    const peer = await peerThat(() => undefined);
    const client = clientTo(peer);
    client.close();
    client.close();
    expect(await post(client)).toEqual(broken('client_closed', false));
    expect(peer.sockets).toEqual([]);
  });
});

describe('what fails after the first byte was sent, once', () => {
  it.each<[string, (socket: Socket) => void, string]>([
    ['UO-03: a reset', (socket) => void socket.resetAndDestroy(), 'reset'],
    ['UO-03: a close without an answer', (socket) => void socket.end(), 'reset'],
    ['a cut in the head', (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-le'), 'reset'],
    [
      'a cut in the body',
      (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'),
      'reset',
    ],
    ['an answer that is no HTTP', (socket) => void socket.end('220 mail ESMTP\r\n'), 'unreadable'],
    [
      'a body that is no UTF-8',
      (socket) =>
        void socket.write(
          Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n'), Buffer.from([0xff])]),
        ),
      'unreadable',
    ],
    [
      'TP-03: a body beyond 64 KiB',
      (socket) => void socket.write(http('x'.repeat(64 * 1024 + 1))),
      'body_too_large',
    ],
    [
      'TP-03: a body without end',
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
        const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`;
        for (let i = 0; i < 8; i += 1) socket.write(chunk);
      },
      'body_too_large',
    ],
    [
      'a switch of protocols',
      (socket) =>
        void socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
      'unreadable',
    ],
  ])('%s', async (_title, answer, fault) => {
    const peer = await peerThat(answer);
    expect(await post(clientTo(peer))).toMatchObject(broken(fault, true) as object);
    expect(peer.received).toHaveLength(1);
  });

  it('TP-03: of 5 MB only the beginning is kept, and it is never taken for an answer', async () => {
    const peer = await peerThat((socket) => void socket.write(http(`<html>${'x'.repeat(5_000_000)}`)));
    const exchange = await post(clientTo(peer));
    expect(exchange.response).toBeNull();
    const { beginning = '' } = exchange as { readonly beginning?: string };
    expect(beginning.startsWith('<html>xxx')).toBe(true);
    expect(beginning.length).toBeLessThan(256 * 1024);
  });

  it('a body of exactly 64 KiB is read', async () => {
    const peer = await peerThat((socket) => socket.write(http('x'.repeat(64 * 1024))));
    expect((await post(clientTo(peer))).response?.body.length).toBe(64 * 1024);
  });

  it('DC-01: silence until the deadline, and the connection is not used again', async () => {
    const peer = await peerThat((socket, no) => no > 1 && socket.write(http('{}')));
    const client = clientTo(peer);
    expect(await post(client, { deadlineMs: 50 })).toEqual(broken('deadline', true));
    await post(client);
    expect(peer.sockets).toHaveLength(2);
  });

  it('a reset of a connection that was used before is no proof that nothing was sent', async () => {
    const peer = await peerThat((socket, no) =>
      no === 1 ? socket.write(http('{}')) : socket.resetAndDestroy(),
    );
    const client = clientTo(peer);
    await post(client);
    expect(await post(client)).toEqual(broken('reset', true));
    expect([peer.sockets.length, peer.received.length]).toEqual([1, 2]);
  });

  it('a client that is closed meanwhile', async () => {
    const peer = await peerThat(() => undefined);
    const client = clientTo(peer);
    const exchange = post(client);
    await expect.poll(() => peer.received.length).toBe(1);
    client.close();
    expect(await exchange).toEqual(broken('reset', true));
  });
});

describe('answers nobody asked for', () => {
  it('on a free connection are never taken for the answer to the next request', async () => {
    const peer = await peerThat((socket, no) => {
      socket.write(http(`{"no":${no}}`));
      if (no === 1) setImmediate(() => socket.write(http('{"no":"stale"}')));
    });
    const client = clientTo(peer);
    expect((await post(client)).response?.body).toBe('{"no":1}');
    await expect.poll(() => peer.sockets[0]?.destroyed).toBe(true);
    expect((await post(client)).response?.body).toBe('{"no":2}');
  });

  it('before the request was written prove nothing but that it was not sent', async () => {
    const peer = await peerThat(
      () => undefined,
      (socket) => socket.write(http('{}', '408 Request Timeout')),
    );
    expect(await post(clientTo(peer), { mayWrite: () => false })).toEqual(broken('lease_lost', false));
  });
});
