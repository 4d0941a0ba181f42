import { createServer, type Server } from 'node:https';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createTestAuthority } from './certificates.js';

/** One event as it arrived. */
export interface Received {
  readonly path: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly id: string;
  readonly paymentId: string;
  readonly version: number;
}

/** What the receiver does with an event; a number is a status without a body, undefined: it answers itself, or never. */
export type Reaction = number | ((event: Received, response: ServerResponse) => number | undefined);

export interface WebhookReceiver {
  readonly port: number;
  /** The authority that signed its certificate. */
  readonly ca: string;
  /** Everything that arrived, oldest first. */
  readonly received: readonly Received[];
  /** What happens at this path from now on; 204 where nothing was said. */
  react(path: string, reaction: Reaction): void;
  /** Those that arrived at this path. */
  at(path: string): readonly Received[];
  close(): Promise<void>;
}

/** A client's receiver with TLS on the loopback, for names under example.com. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const authority = await createTestAuthority();
  const { cert, key } = await authority.issue('hooks.example.com', 'other.example.com');
  const received: Received[] = [];
  const reactions = new Map<string, Reaction>();
  const server: Server = createServer({ cert, key }, (request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8');
      const body = JSON.parse(text) as { payment_id: string; version: number };
      const event: Received = {
        path: request.url ?? '',
        host: request.headers.host ?? '',
        headers: request.headers as Record<string, string>,
        text,
        id: String(request.headers['webhook-id']),
        paymentId: body.payment_id,
        version: body.version,
      };
      received.push(event);
      const reaction = reactions.get(event.path) ?? 204;
      const status = typeof reaction === 'number' ? reaction : reaction(event, response);
      if (typeof status === 'number') response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    ca: authority.ca,
    received,
    react: (path, reaction) => void reactions.set(path, reaction),
    at: (path) => received.filter((event) => event.path === path),
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}
