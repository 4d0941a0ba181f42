import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Readiness } from './readiness.js';

export interface HealthServerOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** The process itself works. Depends on nothing else: an outage must not restart every process. */
  readonly live: () => boolean;
  readonly ready: () => Promise<Readiness>;
  /** Text in the Prometheus format. */
  readonly metrics: () => Promise<string>;
}

export interface HealthServer {
  readonly port: number;
  /** Closes the port and its connections. Twice: nothing. */
  stop(): Promise<void>;
}

/** Probes and scrapers are few; a flood must not take sockets from the process. */
const MOST_CONNECTIONS = 64;
const REQUEST_MS = 5_000;
const JSON_TYPE = 'application/json';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
  response.end(body);
}

const sendJson = (response: ServerResponse, ok: boolean, body: object): void =>
  send(response, ok ? 200 : 503, JSON_TYPE, JSON.stringify(body));

async function answer(
  options: HealthServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return send(response, 405, JSON_TYPE, '{"ok":false,"error":"method_not_allowed"}');
  }
  const path = request.url?.split('?', 1)[0] ?? '';
  switch (path) {
    case '/livez': {
      const ok = options.live();
      return sendJson(response, ok, { ok });
    }
    case '/readyz': {
      const readiness = await options.ready();
      return sendJson(response, readiness.ok, readiness);
    }
    case '/metrics':
      return send(response, 200, METRICS_TYPE, await options.metrics());
    default:
      return send(response, 404, JSON_TYPE, '{"ok":false,"error":"not_found"}');
  }
}

/**
 * Serves /livez, /readyz and /metrics on a port of their own, so that neither overload nor access
 * rules of the API reach them. 200 or 503; an answer that fails is 503 and never ends the process.
 * @throws the error of the socket when the port cannot be opened.
 */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const server: Server = createServer((request, response) => {
    answer(options, request, response).catch(() => {
      if (!response.headersSent) sendJson(response, false, { ok: false, error: 'not_available' });
    });
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.requestTimeout = REQUEST_MS;
  server.headersTimeout = REQUEST_MS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', () => undefined);
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
