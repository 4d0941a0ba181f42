import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * open: bytes pass. cut: connections are reset and new ones refused. answers_lost: what the client
 * sends passes, and the connection is reset when the server answers, so that the client never hears.
 * silent: half-open, as when a firewall forgets a connection. Open ones carry nothing any more, not
 * even their end, also when the proxy is open again; new ones are taken and never answered.
 */
export type ProxyMode = 'open' | 'cut' | 'answers_lost' | 'silent';

export interface TcpProxy {
  /** The given URL with the proxy's address instead. */
  readonly url: string;
  mode: ProxyMode;
  close(): Promise<void>;
}

/** A proxy in front of a server, which tests can cut. `cut` resets the open connections at once. */
export async function startTcpProxy(targetUrl: string): Promise<TcpProxy> {
  const target = new URL(targetUrl);
  const open = new Set<Socket>();
  const upstreams = new Set<Socket>();
  let mode: ProxyMode = 'open';
  const dead = new Set<Socket>();
  const silence = (client: Socket): void => {
    dead.add(client);
    client.pause();
  };
  const server = createServer((client) => {
    if (mode === 'cut') return void client.resetAndDestroy();
    if (mode === 'silent') {
      open.add(client);
      client.on('error', () => undefined);
      silence(client);
      return;
    }
    const upstream = connect({ host: target.hostname, port: Number(target.port) });
    const reset = (): void => {
      client.resetAndDestroy();
      upstream.destroy();
    };
    open.add(client);
    upstreams.add(upstream);
    client.on('data', (chunk) => {
      if (!dead.has(client)) upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      if (dead.has(client)) return;
      if (mode === 'answers_lost') reset();
      else client.write(chunk);
    });
    for (const socket of [client, upstream]) {
      socket.on('error', () => {
        if (!dead.has(client)) reset();
      });
    }
    client.on('close', () => {
      open.delete(client);
      if (!dead.has(client)) upstream.destroy();
    });
    upstream.on('close', () => {
      upstreams.delete(upstream);
      if (!dead.has(client)) client.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(targetUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    get mode() {
      return mode;
    },
    set mode(next) {
      mode = next;
      if (mode === 'cut') {
        for (const client of open) client.resetAndDestroy();
        for (const upstream of upstreams) upstream.destroy();
      }
      if (mode === 'silent') for (const client of open) silence(client);
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of [...open, ...upstreams]) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
