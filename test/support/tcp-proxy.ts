import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * open: bytes pass. cut: connections are reset and new ones refused. answers_lost: what the client
 * sends passes, and the connection is reset when the server answers, so that the client never hears.
 */
export type ProxyMode = 'open' | 'cut' | 'answers_lost';

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
  let mode: ProxyMode = 'open';
  const server = createServer((client) => {
    if (mode === 'cut') return void client.resetAndDestroy();
    const upstream = connect({ host: target.hostname, port: Number(target.port) });
    const reset = (): void => {
      client.resetAndDestroy();
      upstream.destroy();
    };
    open.add(client);
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk) => {
      if (mode === 'answers_lost') reset();
      else client.write(chunk);
    });
    for (const socket of [client, upstream]) socket.on('error', reset);
    client.on('close', () => {
      open.delete(client);
      upstream.destroy();
    });
    upstream.on('close', () => client.destroy());
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
      if (mode === 'cut') for (const client of open) client.resetAndDestroy();
    },
    close: () =>
      new Promise((resolve) => {
        for (const client of open) client.destroy();
        server.close(() => resolve());
      }),
  };
}
