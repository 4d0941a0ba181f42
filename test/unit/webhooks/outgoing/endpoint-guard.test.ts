import { Socket, type TcpNetConnectOpts } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  isPublicAddress,
  judgeUrl,
  mayDial,
  type GuardPolicy,
} from '../../../../src/webhooks/outgoing/endpoint-guard.js';
import type { ClientEvent } from '../../../../src/webhooks/outgoing/event.js';
import { newSecret } from '../../../../src/webhooks/outgoing/event-signature.js';
import { EventSender } from '../../../../src/webhooks/outgoing/event-sender.js';

const STRICT: GuardPolicy = { ports: [8443], allowLoopback: false };
const EVENT: ClientEvent = {
  paymentId: 'pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk',
  version: 3,
  state: 'succeeded',
  occurredAt: '2026-12-24 09:00:00.123456+00',
};

/** Refused by their text: nobody is even asked what they resolve to. */
const BY_TEXT = [
  'http://hooks.example.com/',
  'HTTP://hooks.example.com/',
  'hTtP://hooks.example.com/',
  'ftp://hooks.example.com/',
  'file:///etc/passwd',
  'gopher://hooks.example.com/',
  'javascript:alert(1)',
  'data:text/plain,x',
  '//hooks.example.com/',
  'hooks.example.com',
  'https:hooks.example.com',
  'https:///hooks.example.com/',
  'https:\\\\hooks.example.com\\',
  'https://hooks.example.com\\@10.0.0.1/',
  'https://user:secret@hooks.example.com/',
  'https://user@hooks.example.com/',
  'https://@hooks.example.com/',
  'https://hooks.example.com@10.0.0.1/',
  'https://hooks.example.com:443@10.0.0.1/',
  'https://hooks.example.com/#fragment',
  'https://127.0.0.1/',
  'https://127.0.0.1./',
  'https://127.1/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.0.0.1/',
  'https://0177.0.0.1/',
  'https://017700000001/',
  'https://169.254.169.254/latest/meta-data/',
  'https://8.8.8.8/',
  'https://[::1]/',
  'https://[::]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[fe80::1%25eth0]/',
  'https://[fe80::1%eth0]/',
  'https://[2001:4860:4860::8888]/',
  'https://%31%32%37.0.0.1/',
  'https://１２７.0.0.1/',
  'https://ⓗooks.example.com/',
  'https://hooks。example.com/',
  'https://bücher.example.com/',
  'https://hooks.example.com./',
  'https://localhost/',
  'https://LOCALHOST/',
  'https://app.localhost/',
  'https://metadata.google.internal/',
  'https://printer.local/',
  'https://router.home.arpa/',
  'https://intranet/',
  'https://hooks.example.com:80/',
  'https://hooks.example.com:22/',
  'https://hooks.example.com:0/',
  'https://hooks.example.com:99999/',
  'https://hooks.example.com/\u0000',
  'https://hooks.example.com/ HTTP/1.1',
  'https://hooks.example.com/\r\nX: 1',
  ' https://hooks.example.com/',
  `https://hooks.example.com/${'a'.repeat(2_048)}`,
  `https://${'a'.repeat(64)}.example.com/`,
  'https://-a.-b/',
];

/** Names that look like any other, and what they resolve to. */
const BY_ADDRESS: Readonly<Record<string, readonly string[]>> = {
  'a1.example.com': ['127.0.0.1'],
  'a2.example.com': ['10.1.2.3'],
  'a3.example.com': ['172.16.0.1'],
  'a4.example.com': ['192.168.1.1'],
  'a5.example.com': ['169.254.169.254'],
  'a6.example.com': ['100.64.0.1'],
  'a7.example.com': ['0.0.0.0'],
  'a8.example.com': ['224.0.0.1'],
  'a9.example.com': ['255.255.255.255'],
  'a10.example.com': ['240.0.0.1'],
  'a11.example.com': ['192.0.2.1'],
  'a12.example.com': ['198.18.0.1'],
  'a13.example.com': ['::1'],
  'a14.example.com': ['::'],
  'a15.example.com': ['::ffff:10.0.0.1'],
  'a16.example.com': ['64:ff9b::a00:1'],
  'a17.example.com': ['64:ff9b:1::a00:1'],
  'a18.example.com': ['2002:a00:1::1'],
  'a19.example.com': ['2001:0:a00:1::1'],
  'a20.example.com': ['fd00::1'],
  'a21.example.com': ['fe80::1'],
  'a22.example.com': ['fe80::1%eth0'],
  'a23.example.com': ['fec0::1'],
  'a24.example.com': ['ff02::1'],
  'a25.example.com': ['2001:db8::1'],
  'a26.example.com': ['3fff::1'],
  'a27.example.com': ['::a00:1'],
  'a28.example.com': ['5f00::1'],
  'a29.example.com': ['8.8.8.8', '10.0.0.1'],
  'a30.example.com': ['10.0.0.1', '8.8.8.8'],
  'a31.example.com': [],
  'a32.example.com': ['not an address'],
};

interface Dial {
  readonly host: string | undefined;
  readonly port: number;
  /** What the socket is told when it asks for the name's addresses. */
  readonly addresses: readonly string[];
  readonly servername: string | undefined;
}
const dials: Dial[] = [];

beforeEach(() => {
  dials.length = 0;
  vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket, ...args: unknown[]) {
    // The driver's own form: one array that holds the options.
    const given = (Array.isArray(args[0]) ? args[0][0] : args[0]) as TcpNetConnectOpts & {
      servername?: string;
    };
    let addresses: readonly string[] = [];
    given.lookup?.(given.host ?? '', { all: true }, (_error, found) => {
      addresses = typeof found === 'string' ? [found] : found.map((each) => each.address);
    });
    dials.push({ host: given.host, port: Number(given.port), addresses, servername: given.servername });
    queueMicrotask(() => this.destroy(new Error('nothing is dialled in this test')));
    return this;
  });
});
afterEach(() => void vi.restoreAllMocks());

async function send(url: string, resolve: (name: string) => Promise<readonly string[]>, proxy?: string) {
  const sender = new EventSender({ policy: STRICT, resolve, proxy: proxy ?? null });
  try {
    return await sender.send(url, EVENT, [newSecret()]);
  } finally {
    await sender.close();
  }
}

describe('the endpoint guard (SSRF)', () => {
  it('knows more than 60 addresses that must not be dialled', () => {
    expect(new Set(BY_TEXT).size).toBe(BY_TEXT.length);
    expect(BY_TEXT.length + Object.keys(BY_ADDRESS).length).toBeGreaterThanOrEqual(60);
  });

  it.each(BY_TEXT)('refuses %j before anything is resolved', async (url) => {
    const asked: string[] = [];
    const result = await send(url, async (name) => {
      asked.push(name);
      return ['8.8.8.8'];
    });
    expect(result).toEqual({ code: 'url_refused', httpStatus: null });
    expect(asked).toEqual([]);
    expect(dials).toEqual([]);
  });

  it.each(Object.entries(BY_ADDRESS))('does not dial %s, which resolves to %j', async (name, addresses) => {
    const result = await send(`https://${name}/`, async () => addresses);
    expect(result).toEqual({ code: 'address_refused', httpStatus: null });
    expect(dials).toEqual([]);
  });

  it('dials the very addresses it judged, and keeps the name for TLS', async () => {
    const result = await send('HTTPS://Hooks.Example.com/x?y=1', async () => [
      '8.8.8.8',
      '2001:4860:4860::8888',
    ]);
    expect(result.code).toBe('unreachable');
    expect(dials).toEqual([
      {
        host: 'hooks.example.com',
        port: 443,
        addresses: ['8.8.8.8', '2001:4860:4860::8888'],
        servername: 'hooks.example.com',
      },
    ]);
  });

  it('asks once for a connection: a second answer, of a name that is bound anew, is never read', async () => {
    let asked = 0;
    const rebinding = async (): Promise<readonly string[]> => (asked++ === 0 ? ['8.8.8.8'] : ['127.0.0.1']);
    await send('https://rebind.example.com/', rebinding);
    expect(asked).toBe(1);
    expect(dials.flatMap((dial) => dial.addresses)).toEqual(['8.8.8.8']);
  });

  it('judges again when the name resolves to something private on the next try', async () => {
    const answers = [['8.8.8.8'], ['10.0.0.1']];
    const sender = new EventSender({ policy: STRICT, resolve: async () => answers.shift() ?? [] });
    await sender.send('https://rebind.example.com/', EVENT, [newSecret()]);
    expect(await sender.send('https://rebind.example.com/', EVENT, [newSecret()])).toMatchObject({
      code: 'address_refused',
    });
    expect(dials).toHaveLength(1);
    await sender.close();
  });

  it('dials a listed port, and lets a proxy lead only to the address that was judged', async () => {
    await send('https://hooks.example.com:8443/', async () => ['8.8.8.8']);
    expect(dials.at(-1)).toMatchObject({ host: 'hooks.example.com', port: 8443 });
    await send('https://hooks.example.com/', async () => ['8.8.8.8'], 'http://egress.example.com:3128');
    expect(dials.at(-1)).toMatchObject({ host: 'egress.example.com', port: 3128 });
    const before = dials.length;
    await send('https://hooks.example.com/', async () => ['10.0.0.1'], 'http://egress.example.com:3128');
    expect(dials).toHaveLength(before);
  });

  it('says which rule a URL breaks and never repeats it', () => {
    const reasonOf = (url: string) => {
      const verdict = judgeUrl(url, STRICT);
      return verdict.kind === 'refused' ? verdict.reason : 'allowed';
    };
    expect(reasonOf('https://hooks.example.com/a/b?c=d')).toBe('allowed');
    expect(reasonOf('https://xn--bcher-kva.example.com/')).toBe('allowed');
    expect(reasonOf('http://hooks.example.com/')).toBe('not_https');
    expect(reasonOf('https://a:b@hooks.example.com/')).toBe('has_credentials');
    expect(reasonOf('https://hooks.example.com/#x')).toBe('has_fragment');
    expect(reasonOf('https://127.0.0.1/')).toBe('ip_literal');
    expect(reasonOf('https://intranet/')).toBe('host_not_public');
    expect(reasonOf('https://hooks.example.com:81/')).toBe('port_not_allowed');
    expect(reasonOf('nothing')).toBe('malformed');
  });

  it('allows this machine only where a development setting says so, and nothing private beside it', () => {
    const open: GuardPolicy = { ports: [], allowLoopback: true };
    for (const url of ['http://localhost:4000/', 'https://127.0.0.1:4000/', 'http://[::1]:4000/']) {
      expect(judgeUrl(url, STRICT).kind).toBe('refused');
      expect(judgeUrl(url, open).kind).toBe('allowed');
    }
    for (const url of ['http://hooks.example.com/', 'https://10.0.0.1/', 'http://localhost@10.0.0.1/']) {
      expect(judgeUrl(url, open).kind).toBe('refused');
    }
    expect(mayDial(['127.0.0.1'], open)).toBe(true);
    expect(mayDial(['127.0.0.1', '10.0.0.1'], open)).toBe(false);
    expect(mayDial(['::ffff:127.0.0.1'], open)).toBe(false);
    expect(mayDial(['127.0.0.1'], STRICT)).toBe(false);
  });

  it('calls public what anybody could reach', () => {
    for (const text of [
      '8.8.8.8',
      '1.1.1.1',
      '172.15.255.255',
      '172.32.0.1',
      '100.128.0.1',
      '2606:4700::1111',
    ]) {
      expect([text, isPublicAddress(text)]).toEqual([text, true]);
    }
  });
});
