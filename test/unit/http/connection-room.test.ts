import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { keepRoomForConnections } from '../../../src/http/connection-room.js';

const MOST = 10;
let server: Server;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Answers `/slow` when told to, everything else at once. */
async function start(): Promise<{ port: number; release: () => void }> {
  const waiting: (() => void)[] = [];
  server = createServer((request, response) => {
    const answer = (): void => void response.end('done');
    if (request.url === '/slow') waiting.push(answer);
    else answer();
  });
  server.maxConnections = MOST;
  keepRoomForConnections(server, MOST);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    release: () => waiting.forEach((answer) => answer()),
  };
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  const accepted = once(server, 'connection');
  await once(socket, 'connect');
  await accepted;
  return socket;
}

async function ask(socket: Socket, path = '/'): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return chunk.toString().split('\r\n', 1)[0] ?? '';
}

describe('connections that ask nothing', () => {
  it('make room, oldest first, for those that ask', async () => {
    const { port } = await start();
    const idle: Socket[] = [];
    for (let i = 0; i < 3 * MOST; i++) idle.push(await open(port));
    const asking = await open(port);
    expect(await ask(asking)).toBe('HTTP/1.1 200 OK');
    await expect.poll(() => idle.filter((socket) => socket.destroyed).length).toBeGreaterThan(2 * MOST);
    expect(idle.at(-1)?.destroyed).toBe(false);
  });

  it('make room also when they had been answered before', async () => {
    const { port } = await start();
    for (let i = 0; i < 2 * MOST; i++) await ask(await open(port));
    expect(await ask(await open(port))).toBe('HTTP/1.1 200 OK');
  });
});

describe('a connection with a request in progress', () => {
  it('is never closed to make room', async () => {
    const { port, release } = await start();
    const busy = await open(port);
    const requested = once(server, 'request');
    const answer = ask(busy, '/slow');
    await requested;
    for (let i = 0; i < 3 * MOST; i++) await open(port);
    release();
    expect(await answer).toBe('HTTP/1.1 200 OK');
  });
});
