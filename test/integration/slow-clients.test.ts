import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;
const sockets: Slow[] = [];

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
});
afterEach(() => {
  for (const { socket } of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

interface Slow {
  readonly socket: Socket;
  /** Everything that was received. */
  text: string;
  isClosed: boolean;
}

/** Opens connections that send the same and then nothing more. */
async function open(count: number, bytes: string, reads = true): Promise<readonly Slow[]> {
  const { hostname, port } = new URL(api.url);
  const opened: Slow[] = [];
  for (let i = 0; i < count; i++) {
    const socket = connect(Number(port), hostname);
    const slow: Slow = { socket, text: '', isClosed: false };
    socket.on('error', () => undefined).on('close', () => (slow.isClosed = true));
    await once(socket, 'connect');
    if (reads) socket.setEncoding('utf8').on('data', (chunk: string) => (slow.text += chunk));
    if (bytes !== '') socket.write(bytes);
    opened.push(slow);
  }
  sockets.push(...opened);
  return opened;
}

const credential = (): string => `Authorization: Bearer ${client.key}\r\n`;

/** A payment is made, read, listed and cancelled as if nobody else were there. */
async function expectService(): Promise<void> {
  const created = await client.create();
  expect(created.status, created.text).toBe(201);
  const path = `/v1/payments/${created.body.id}`;
  expect((await client.get(path)).status).toBe(200);
  expect((await client.get('/v1/payments?limit=5')).status).toBe(200);
  expect((await client.post(`${path}/cancel`)).body.state).toBe('cancelled');
}

describe('clients that take their time', () => {
  it('with their headers hold up nobody, and end with 408', async () => {
    const slow = await open(400, `POST /v1/payments HTTP/1.1\r\nHost: a\r\n${credential()}X-Half: `);
    await expectService();
    await until(
      'the answers',
      () => slow.filter(({ isClosed }) => isClosed).length,
      (n) => n === 400,
    );
    expect(new Set(slow.map(({ text }) => text.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 408']));
    expect(slow[0]?.text).toContain('"code":"request_timeout"');
  });

  it('with their body hold no place: more of them than the API can hold do not stop others', async () => {
    const head = `POST /v1/payments HTTP/1.1\r\nHost: a\r\n${credential()}Content-Type: application/json\r\n`;
    await open(800, `${head}Idempotency-Key: ${unique('slow')}\r\nContent-Length: 100\r\n\r\n{`);
    await expectService();
  });

  it('to read their answers hold no place that others need', async () => {
    for (let i = 0; i < 100; i++) await client.create({ description: 'd'.repeat(140) });
    const list = `GET /v1/payments?limit=100 HTTP/1.1\r\nHost: a\r\n${credential()}\r\n`;
    await open(60, list.repeat(20), false);
    // 1,200 lists at once are turned away in part; what matters is that nobody's reading is waited for.
    await until(
      'a create beside them',
      async () => (await client.create()).status,
      (status) => status === 201,
    );
    await expectService();
  });

  it('without a credential are answered 401 before their body comes', async () => {
    const head = 'POST /v1/payments HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
    const slow = await open(50, `${head}Content-Length: 100\r\n\r\n`);
    await until(
      'the answers',
      () => slow.filter(({ text }) => text !== '').length,
      (n) => n === 50,
    );
    expect(new Set(slow.map(({ text }) => text.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 401']));
  });
});

describe('connections that ask nothing', () => {
  it('up to 2,000 of them do not stop others', async () => {
    const before = await open(1, `GET /v1/payments?limit=1 HTTP/1.1\r\nHost: a\r\n${credential()}\r\n`);
    await until(
      'its answer',
      () => before[0]?.text ?? '',
      (text) => text.includes('200 OK'),
    );
    await open(2_000, '');
    await expectService();
  });
});
