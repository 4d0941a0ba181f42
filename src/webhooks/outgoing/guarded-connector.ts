import { Resolver } from 'node:dns/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { buildConnector } from 'undici';
import { isLoopbackAddress, mayDial, type GuardPolicy } from './endpoint-guard.js';

/** Times in ms. A name server and a receiver that do not answer hold a delivery no longer than this. */
const RESOLVE_MS = 2_000;
const RESOLVE_TRIES = 2;
const CONNECT_MS = 5_000;
/** Addresses of one name that are looked at; more is somebody trying. */
const MOST_ADDRESSES = 32;
/** Longest head of a proxy's answer to CONNECT, in bytes. */
const MOST_PROXY_HEAD = 8_192;

/** Nothing was dialled: `address_refused` by the guard, `name_unknown` by the name servers. */
export class NotDialled extends Error {
  override readonly name = 'NotDialled';
  constructor(
    readonly code: 'address_refused' | 'name_unknown',
    options?: ErrorOptions,
  ) {
    super(code, options);
  }
}

export interface ConnectorOptions {
  readonly policy: GuardPolicy;
  /** Name to addresses; called once for each connection. Absent: the name servers of this host. */
  readonly resolve?: (hostname: string) => Promise<readonly string[]>;
  /** An HTTP proxy as URL: the connection goes through it, to the address that was judged. */
  readonly proxy?: string | null;
  /** Further TLS options: a test's own authority. */
  readonly tls?: Pick<ConnectionOptions, 'ca'>;
}

/**
 * Every connection to a client's endpoint is made here: the name is resolved once, all its addresses
 * are judged, and one of those very addresses is dialled. The name stays in SNI and the certificate
 * check, and nothing asks the name servers again: a second answer could be another one.
 * @returns a connector for undici's Agent. Fails with NotDialled before anything is dialled.
 */
export function guardedConnector(options: ConnectorOptions): buildConnector.connector {
  const { policy, resolve = resolveName, proxy = null, tls = {} } = options;
  return (target, callback) => void dial(target, callback);

  async function dial(target: buildConnector.Options, callback: buildConnector.Callback): Promise<void> {
    let connect: (callback: buildConnector.Callback) => void;
    try {
      connect = await open(target);
    } catch (error) {
      callback(error as Error, null);
      return;
    }
    connect(callback);
  }

  async function open(target: buildConnector.Options): Promise<(callback: buildConnector.Callback) => void> {
    const addresses = await addressesOf(target.hostname);
    if (!mayDial(addresses, policy)) throw new NotDialled('address_refused');
    const address = addresses[0] ?? '';
    const known = { allowH2: false, timeout: CONNECT_MS, ...tls };
    if (proxy !== null && !isLoopbackAddress(address)) {
      const httpSocket = await throughProxy(new URL(proxy), address, Number(target.port || 443));
      return (callback) => buildConnector(known)({ ...target, httpSocket }, callback);
    }
    const judged = addresses.map((each) => ({ address: each, family: each.includes(':') ? 6 : 4 }));
    const lookup = (_name: string, how: { all?: boolean }, done: LookupDone): void => {
      if (how.all === true) done(null, judged);
      else done(null, address, judged[0]?.family);
    };
    return (callback) =>
      buildConnector({ ...known, lookup: lookup as never, autoSelectFamily: true })(target, callback);
  }

  async function addressesOf(hostname: string): Promise<readonly string[]> {
    if (policy.allowLoopback && LOOPBACK.has(hostname)) return LOOPBACK.get(hostname) ?? [];
    return resolve(hostname);
  }
}

type LookupDone = (
  error: null,
  address: string | readonly { readonly address: string; readonly family: number }[],
  family?: number,
) => void;

/** Hosts that development may allow; no name server is asked for them. */
const LOOPBACK: ReadonlyMap<string, readonly string[]> = new Map([
  ['localhost', ['127.0.0.1']],
  ['127.0.0.1', ['127.0.0.1']],
  ['[::1]', ['::1']],
  ['::1', ['::1']],
]);

/**
 * Asks the name servers themselves: the system's look-up blocks threads that files and Postgres need,
 * for as long as a client's name server likes, and reads this host's own list of names.
 * @returns IPv4 first, since a host without IPv6 cannot dial the others.
 */
async function resolveName(hostname: string): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES });
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const found = answers.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  if (found.length > 0) return found.slice(0, MOST_ADDRESSES);
  const cause = answers.find((each) => each.status === 'rejected')?.reason as unknown;
  throw new NotDialled('name_unknown', { cause });
}

/** Asks the proxy for a way to exactly this address (RFC 9110, CONNECT). */
function throughProxy(proxy: URL, address: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const authority = `${address.includes(':') ? `[${address}]` : address}:${port}`;
    const socket = connectTcp({ host: proxy.hostname, port: Number(proxy.port || 80) });
    let head = '';
    const fail = (error?: Error): void => {
      socket.destroy();
      reject(error ?? new Error('the egress proxy did not open a way'));
    };
    const read = (part: Buffer): void => {
      head += part.toString('latin1');
      const end = head.indexOf('\r\n\r\n');
      if (end === -1 && head.length <= MOST_PROXY_HEAD) return;
      // Whatever follows the head before our first byte is not the receiver speaking.
      if (end !== head.length - 4 || !/^HTTP\/1\.[01] 2\d\d[ \r]/.test(head)) return fail();
      socket.off('data', read).off('error', fail).setTimeout(0);
      resolve(socket);
    };
    socket.setTimeout(CONNECT_MS, () => fail());
    socket
      .on('error', fail)
      .on('close', () => fail())
      .on('data', read);
    socket.once('connect', () =>
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${credentialsOf(proxy)}\r\n`),
    );
  });
}

function credentialsOf({ username, password }: URL): string {
  if (username === '') return '';
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Proxy-Authorization: Basic ${Buffer.from(text).toString('base64')}\r\n`;
}
