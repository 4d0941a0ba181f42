import { hash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { readBody } from './http-body.js';

/** An answer of the control port: a status and a JSON value, or a text of another type. */
export interface ControlAnswer {
  readonly status: number;
  readonly content: unknown;
  /** Set: the content is a text of this type and is sent as it is. */
  readonly contentType?: string;
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
        (answer) => send(response, answer),
        (error: unknown) => send(response, refusal(500, String(error))),
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

function send(response: ServerResponse, { status, content, contentType }: ControlAnswer): void {
  const body = contentType === undefined ? JSON.stringify(content) : String(content);
  response.writeHead(status, {
    'content-type': contentType ?? 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** Equal lengths, so that the comparison takes the same time for every input. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
