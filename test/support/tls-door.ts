import { connect as connectPlain, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import type { TestCertificate } from './certificates.js';

export interface TlsDoor {
  /** `host:port` to dial. */
  readonly address: string;
  close(): Promise<void>;
}

/**
 * TLS in front of a server that speaks none, as a front end with mutual TLS does it: who shows no
 * certificate of the authority never reaches the server.
 * @param target `host:port` of the server behind.
 */
export async function openTlsDoor(target: string, ca: string, own: TestCertificate): Promise<TlsDoor> {
  const [host = '', port = ''] = target.split(':');
  const open = new Set<{ destroy(): void }>();
  const server = createServer(
    { ...own, ca, requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2'] },
    (client) => {
      const upstream = connectPlain({ host, port: Number(port) });
      for (const socket of [client, upstream]) {
        open.add(socket);
        socket.on('error', () => {
          client.destroy();
          upstream.destroy();
        });
        socket.on('close', () => open.delete(socket));
      }
      client.pipe(upstream).pipe(client);
    },
  );
  // A refused handshake is the caller's to report.
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
