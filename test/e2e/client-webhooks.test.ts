import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Rig } from '../support/rig.js';

interface Arrived {
  readonly id: string;
  readonly payment_id: string;
  readonly version: number;
  readonly type: string;
}

let rig: Rig;
let server: Server;
let secret: string;
const arrived: Arrived[] = [];
const forged: string[] = [];
/** While true the receiver has events and answers none: the worker cannot know that they arrived. */
let isSilent = false;

beforeAll(async () => {
  rig = await Rig.start({ env: { PAYMENTS_WEBHOOK_OUT_LOOPBACK: 'true' } });
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString('utf8')));
    request.on('end', () => {
      try {
        arrived.push(new Webhook(secret).verify(text, request.headers as Record<string, string>) as Arrived);
      } catch {
        forged.push(text);
      }
      if (!isSilent) response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const made = await rig.call('POST', '/v1/webhook-endpoints', {
    body: { url: `http://127.0.0.1:${port}/` },
  });
  expect(made.status).toBe(201);
  secret = made.body['secret'] as string;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rig.stop();
});

it('a worker killed while events are on their way: every version of every payment arrives, in order, repeats under their id', async () => {
  isSilent = true;
  const due = rig.secondAfter(12_000);
  const ids = await rig.scheduleMany(20, due);
  await rig.until('events are on their way', async () => arrived.length > 0);
  await rig.stack.kill('worker');
  isSilent = false;
  const inFlight = new Set(arrived.map((event) => event.id));
  await rig.stack.restart('worker');
  await rig.untilFinal(ids, due);

  const rows = await rig.sql<{ payment_id: string; seq: number; type: string }>(
    `SELECT payment_id, seq, 'payment.' || to_state AS type FROM payment_transition ORDER BY payment_id, seq`,
  );
  await rig.until(
    'every event is recorded as delivered',
    async () =>
      (await rig.sql(`SELECT 1 FROM webhook_delivery WHERE result IS DISTINCT FROM 'delivered'`)).length ===
      0,
  );
  expect(forged).toEqual([]);
  const told = new Map(arrived.map((event) => [`${event.payment_id} ${event.version}`, event.type]));
  expect(told).toEqual(new Map(rows.map((row) => [`${row.payment_id} ${row.seq}`, row.type])));
  const firsts = new Map<string, number[]>();
  for (const { payment_id: id, version } of arrived) {
    const seen = firsts.get(id) ?? [];
    if (!seen.includes(version)) firsts.set(id, [...seen, version]);
  }
  for (const [id, versions] of firsts)
    expect([id, versions]).toEqual([id, versions.toSorted((a, b) => a - b)]);
  // What was on its way when the worker died came again, and nothing else made it known as a repeat.
  const times = (id: string): number => arrived.filter((event) => event.id === id).length;
  for (const id of inFlight) expect([id, times(id)]).toEqual([id, 2]);
  await rig.judge(ids);
});
