import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptContext } from '../../../../src/providers/payment-provider.js';
import { SimulatedProvider } from '../../../../src/providers/simulated/simulated.adapter.js';

const PAYMENT = {
  paymentId: 'pay_a',
  generation: 1,
  providerKey: '0d3f3c6e-0000-5000-8000-000000000001',
  amountMinor: 1250n,
  currency: 'EUR',
  destination: 'acct_dest',
  reference: null,
  description: null,
};
const ATTEMPT: AttemptContext = {
  paymentId: 'pay_a',
  generation: 1,
  attempt: 1,
  providerKey: PAYMENT.providerKey,
  commitTry: 1,
  deadlineMs: 10_000,
  mayWrite: () => true,
};
const ID = 'po_0123456789abcdef';

let server: Server;
let provider: SimulatedProvider;
/** What the peer writes to every request before it hangs up. */
let answer: Buffer;
const sockets = new Set<Socket>();

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  provider = new SimulatedProvider({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'sk_t', profile: 'T' });
});
afterAll(async () => {
  await provider.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

/** Nothing that the provider documents: no payout, no list, no error form. */
const body = fc.oneof(
  fc.constantFrom('', '<!doctype html><h1>502</h1>', '{"id":', 'null', '[]', '{}', '"payout"', '\u0000'),
  fc.constantFrom('{"object":"payout"}', '{"error":"card_declined"}', '{"error":{"code":"card_declined"}}'),
  fc.constantFrom(
    '{"object":"list","data":{}}',
    '{"object":"list","data":[1],"has_more":false}',
    'x'.repeat(5_000_000),
  ),
  fc.jsonValue().map((value) => JSON.stringify({ object: 'payout', id: ID, livemode: false, amount: value })),
  fc.string({ unit: 'binary' }),
);
const header = fc.constantFrom(
  '',
  'idempotent-replayed: true\r\n',
  'location: http://127.0.0.1:1/\r\n',
  'retry-after: -1\r\nretry-after: soon\r\n',
  'content-type: text/html; charset=latin1\r\n',
  'content-encoding: gzip\r\n',
  'transfer-encoding: chunked\r\n',
  'content-length: 3\r\n',
  'request-id: \u00e4\u00f6\r\n',
);
const early = fc.constantFrom(
  '',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n',
);
const status = fc.oneof(
  fc.constantFrom(100, 101, 200, 201, 204, 301, 307, 400, 402, 404, 408, 409, 429, 500, 502),
  fc.integer({ min: 100, max: 999 }),
);
const wire = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(early, status, header, body)
      .map(([first, code, head, text]) => `${first}HTTP/1.1 ${code} X\r\n${head}\r\n${text}`),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
);

describe('whatever the wire brings', () => {
  it('UO-01: is ambiguous for a call that writes, and cannot be told by a lookup; nothing throws', async () => {
    const prepared = provider.prepare(PAYMENT);
    const refs = {
      ...ATTEMPT,
      providerRef: null,
      sentSince: new Date(0),
      by: 'any',
      expected: PAYMENT,
    } as const;
    await fc.assert(
      fc.asyncProperty(wire, async (text) => {
        answer = Buffer.from(text, 'utf8');
        const results = await Promise.all([
          provider.submit(prepared, ATTEMPT),
          provider.commit(prepared, ID, ATTEMPT),
          provider.cancel(ID, ATTEMPT),
        ]);
        for (const result of results) {
          expect(result).toMatchObject({ class: 'ambiguous', status: null, bytesSent: true });
          expect(Buffer.byteLength(result.foreignBody ?? '')).toBeLessThanOrEqual(4_096);
        }
        const answers = await Promise.all([
          provider.lookup(refs),
          provider.lookup({ ...refs, providerRef: ID }),
          provider.lookup({ ...refs, by: 'list_scan' }),
        ]);
        expect(answers.map(({ kind }) => kind)).toEqual(['cannot_tell', 'cannot_tell', 'cannot_tell']);
      }),
      { numRuns: 150 },
    );
  });
});
