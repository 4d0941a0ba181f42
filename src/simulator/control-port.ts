import { hash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { readBody } from './http-body.js';

/** An answer of the control port: a status and a JSON value. */
export interface ControlAnswer {
  readonly status: number;
  readonly content: unknown;
}

/** One command: its query and JSON body in, its answer out. */
export type ControlCommand = (
  query: URLSearchParams,
  body: unknown,
) => ControlAnswer | Promise<ControlAnswer>;

/** Room for the due times of a million payments at once. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** The judge's own port: reads the ledger, plans faults. Every request needs the token. */
export class ControlPort {
  private readonly server: Server;
  private readonly tokenDigest: Buffer;

  /** @param commands by method and path, such as `GET /effects`. */
  constructor(
    token: string,
    private readonly commands: ReadonlyMap<string, ControlCommand>,
  ) {
    this.tokenDigest = digest(`Bearer ${token}`);
    this.server = createServer((request, response) => this.receive(request, response));
  }

  /** @returns the port's number. @throws Error when it is taken. */
  async open(host: string, port: number): Promise<number> {
    this.server.listen({ host, port });
    await once(this.server, 'listening');
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('The control port has no number.');
    return address.port;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private receive(request: IncomingMessage, response: ServerResponse): void {
    readBody(request, MAX_BODY_BYTES, (body) => {
      this.carryOut(request, body).then(
        ({ status, content }) => send(response, status, content),
        (error: unknown) => send(response, 500, { error: String(error) }),
      );
    });
  }

  private async carryOut(request: IncomingMessage, body: string | null): Promise<ControlAnswer> {
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), this.tokenDigest)) {
      return refusal(401, 'The control token is missing or wrong.');
    }
    const url = new URL(request.url ?? '/', 'http://control');
    const command = this.commands.get(`${request.method} ${url.pathname}`);
    if (!command) return refusal(404, `Known: ${[...this.commands.keys()].join(', ')}.`);
    if (body === null) return refusal(413, 'The body is longer than 64 MiB.');
    let content: unknown;
    try {
      content = body === '' ? {} : JSON.parse(body);
    } catch {
      return refusal(400, 'The body is not JSON.');
    }
    return command(url.searchParams, content);
  }
}

export function answerOf(content: unknown): ControlAnswer {
  return { status: 200, content };
}

export const DONE: ControlAnswer = Object.freeze(answerOf({ done: true }));

export function refusal(status: number, message: string): ControlAnswer {
  return { status, content: { error: message } };
}

function send(response: ServerResponse, status: number, content: unknown): void {
  const body = JSON.stringify(content);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** Equal lengths, so that the comparison takes the same time for every input. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
