import * as http from 'node:http';
import type { AddressInfo } from 'node:net';

/** What happens to one request on its way. */
export type Fate = 'pass' | 'lose_request' | 'lose_answer';

export interface Relay {
  readonly url: string;
  /** The next request meets the first, the one after it the second; later ones pass. */
  meet(...fates: readonly Fate[]): void;
  /** Paths of the POSTs that reached the stand-in. */
  readonly forwarded: readonly string[];
  close(): Promise<void>;
}

/**
 * Stands between the adapter and a stand-in and plays the crash: the request or the answer is lost and
 * the connection reset.
 * @param unknown form parameters that the stand-in does not know and would refuse; they are taken out,
 * and the test's report says so.
 */
export async function relayTo(target: string, unknown: readonly string[] = []): Promise<Relay> {
  const { hostname, port } = new URL(target);
  const forwarded: string[] = [];
  let fates: Fate[] = [];
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const fate = fates.shift() ?? 'pass';
      if (fate === 'lose_request') return request.socket.resetAndDestroy();
      const body = without(unknown, Buffer.concat(chunks).toString('utf8'));
      const { 'content-length': _, ...headers } = request.headers;
      const onward = http.request(
        {
          hostname,
          port,
          method: request.method,
          path: request.url,
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        },
        (answer) => {
          if (request.method === 'POST') forwarded.push(request.url ?? '');
          if (fate === 'lose_answer') {
            answer.resume().on('end', () => request.socket.resetAndDestroy());
            return;
          }
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        },
      );
      onward.on('error', () => request.socket.resetAndDestroy());
      onward.end(body);
    });
  });
  server.on('connection', (socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    forwarded,
    meet: (...next) => (fates = [...next]),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function without(unknown: readonly string[], body: string): string {
  if (unknown.length === 0) return body;
  return body
    .split('&')
    .filter((pair) => !unknown.includes(pair.split('=', 1)[0] ?? ''))
    .join('&');
}
