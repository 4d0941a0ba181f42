import * as http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** What the server does with one request. Nothing: it stays silent. */
export type Behaviour = (
  request: SeenRequest,
  response: http.ServerResponse,
  raw: http.IncomingMessage,
) => unknown;

export interface ScriptedServer {
  readonly url: string;
  /** Every request that arrived in full, in order. */
  readonly seen: readonly SeenRequest[];
  readonly connections: () => number;
  /** The next request meets the first, the one after it the second; later ones the last. */
  behave(...behaviours: readonly Behaviour[]): void;
  close(): Promise<void>;
}

/** An HTTP server on loopback that does what a test tells it, and remembers who came. */
export async function scriptedServer(): Promise<ScriptedServer> {
  const seen: SeenRequest[] = [];
  let script: readonly Behaviour[] = [];
  let connections = 0;
  const server = http.createServer((raw, response) => {
    const chunks: Buffer[] = [];
    raw.on('data', (chunk: Buffer) => chunks.push(chunk));
    raw.on('end', () => {
      const { method = '', url = '', headers } = raw;
      const request = { method, path: url, headers, body: Buffer.concat(chunks).toString('utf8') };
      seen.push(request);
      const behaviour = script[0];
      if (script.length > 1) script = script.slice(1);
      void behaviour?.(request, response, raw);
    });
    raw.on('error', () => undefined);
  });
  server.on('connection', (socket) => {
    connections++;
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    connections: () => connections,
    behave: (...behaviours) => (script = behaviours),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Answers with JSON, or with the text as it is. */
export function answer(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Behaviour {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (_request, response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_1', ...headers })
      .end(text);
}

export const silence: Behaviour = () => undefined;
export const reset: Behaviour = (_request, _response, raw) => raw.socket.resetAndDestroy();
export const hangUp: Behaviour = (_request, _response, raw) => raw.socket.destroy();
