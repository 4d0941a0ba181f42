import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Why there is no complete response. A closed list: `code` of a result comes from it. */
export type ExchangeFault =
  | 'lease_lost'
  | 'dns'
  | 'connect_refused'
  | 'connect_timeout'
  | 'connect_failed'
  | 'client_closed'
  | 'client_fault'
  | 'deadline'
  | 'reset'
  | 'body_too_large'
  | 'unreadable';

export interface ExchangeResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** The worker's wall clock when the response was complete, epoch milliseconds. */
  readonly receivedAtMs: number;
}

/** What one HTTP call came to: a complete response, or the fault that ended it. Never both. */
export type Exchange =
  | { readonly bytesSent: true; readonly fault: null; readonly response: ExchangeResponse }
  | {
      readonly bytesSent: boolean;
      readonly fault: ExchangeFault;
      readonly response: null;
      /** What an answer that was too long began with: evidence, never read as an answer. */
      readonly beginning?: string;
    };

export interface ExchangeRequest {
  readonly method: 'GET' | 'POST';
  /** Path and query, appended to the base URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Milliseconds from this call until it ends by itself. */
  readonly deadlineMs: number;
  /** Asked on the connected socket; the first byte follows in the same turn, or none does. */
  readonly mayWrite: () => boolean;
}

export interface ClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly connectTimeoutMs: number;
  /**
   * Must exceed the calls in flight that the lane allows: an agent with fewer sockets queues calls,
   * and their deadline runs meanwhile.
   */
  readonly maxSockets: number;
  /**
   * Every call has a connection of its own. On one that was used before, the other side may be gone
   * when the bytes are handed over, and nobody can say whether they left.
   */
  readonly freshSockets?: boolean;
}

/** A longer answer is not read on: no payout is that long. */
const MAX_BODY_BYTES = 64 * 1024;
/** Below the server's 65 s, so that a free connection is closed from here and seldom found dead. */
const FREE_SOCKET_MS = 20_000;

/**
 * One HTTP call at a time and nothing more: no retry, no redirect, no second write. Knows for
 * certain whether a byte was handed to the socket, which is what makes `not_sent` provable.
 */
export class SimulatedClient {
  private readonly base: URL;
  private readonly agent: http.Agent;
  private closed = false;

  constructor(private readonly options: ClientOptions) {
    this.base = new URL(options.baseUrl);
    const agentOptions = {
      keepAlive: options.freshSockets !== true,
      noDelay: true,
      maxSockets: options.maxSockets,
      maxFreeSockets: options.maxSockets,
      timeout: FREE_SOCKET_MS,
    };
    this.agent = this.isSecure ? new https.Agent(agentOptions) : new http.Agent(agentOptions);
  }

  private get isSecure(): boolean {
    return this.base.protocol === 'https:';
  }

  /** Never rejects. Twice: two calls on the wire. */
  exchange(wanted: ExchangeRequest): Promise<Exchange> {
    if (this.closed) return Promise.resolve({ bytesSent: false, fault: 'client_closed', response: null });
    return new Promise((resolve) => new Call(() => this.open(wanted), wanted, this.options, resolve));
  }

  /** Cuts every connection; calls under way end with a reset. Twice: nothing. */
  close(): void {
    this.closed = true;
    this.agent.destroy();
  }

  /** Nothing is written before `end`: Node sends the headers with the body. */
  private open({ method, path, headers, body }: ExchangeRequest): http.ClientRequest {
    const { request } = this.isSecure ? https : http;
    return request({
      agent: this.agent,
      protocol: this.base.protocol,
      hostname: this.base.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: this.base.port,
      method,
      path: `${this.base.pathname.replace(/\/$/, '')}${path}`,
      headers: {
        ...headers,
        authorization: `Bearer ${this.options.apiKey}`,
        ...(method === 'POST' && {
          'content-length': Buffer.byteLength(body),
          'content-type': 'application/json',
        }),
      },
    });
  }
}

/** The life of one call: connect, ask, write, read. Settles exactly once. */
class Call {
  private bytesSent = false;
  private settled = false;
  private request: http.ClientRequest | null = null;
  private readonly deadline: NodeJS.Timeout;
  private readonly connectTimer: NodeJS.Timeout;

  constructor(
    open: () => http.ClientRequest,
    private readonly wanted: ExchangeRequest,
    options: ClientOptions,
    private readonly resolve: (exchange: Exchange) => void,
  ) {
    this.deadline = setTimeout(() => this.fail('deadline'), Math.max(0, wanted.deadlineMs));
    this.connectTimer = setTimeout(() => this.fail('connect_timeout'), options.connectTimeoutMs);
    try {
      this.request = open();
    } catch {
      // Node refuses, for example, a header with a line break: a fault of ours, nothing was sent.
      this.fail('client_fault');
      return;
    }
    this.request
      .on('error', (error: NodeJS.ErrnoException) => this.fail(faultOf(error, this.bytesSent)))
      .on('close', () => this.fail(this.bytesSent ? 'reset' : 'connect_failed'))
      .on('upgrade', () => this.fail('unreadable'))
      .on('response', (response) => this.read(response))
      .on('socket', (socket) => this.whenConnected(socket, () => this.write(socket)));
  }

  private whenConnected(socket: Socket, connected: () => void): void {
    if (socket instanceof TLSSocket) {
      if (socket.authorized) connected();
      else socket.once('secureConnect', connected);
    } else if (socket.connecting) socket.once('connect', connected);
    else connected();
  }

  private write(socket: Socket): void {
    clearTimeout(this.connectTimer);
    if (this.settled || !this.request) return;
    if (!socket.writable) return this.fail('connect_failed');
    let allowed: boolean;
    try {
      allowed = this.wanted.mayWrite();
    } catch {
      return this.fail('client_fault');
    }
    if (!allowed) return this.fail('lease_lost');
    this.bytesSent = true;
    this.request.end(this.wanted.body);
  }

  private read(response: http.IncomingMessage): void {
    // An answer to a question that was not asked: whatever it says, nothing was sent.
    if (!this.bytesSent) return this.fail('connect_failed');
    const chunks: Buffer[] = [];
    let size = 0;
    response
      .on('data', (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size <= MAX_BODY_BYTES) return;
        this.fail('body_too_large', Buffer.concat(chunks).toString('utf8'));
      })
      .on('end', () => this.complete(response, Buffer.concat(chunks)))
      .on('error', () => this.fail('reset'))
      .on('close', () => this.fail('reset'));
  }

  private complete(response: http.IncomingMessage, bytes: Buffer): void {
    const body = decode(bytes);
    if (body === null || response.statusCode === undefined) return this.fail('unreadable');
    const { statusCode: status, headers } = response;
    const received: ExchangeResponse = { status, headers, body, receivedAtMs: Date.now() };
    this.settle({ bytesSent: true, fault: null, response: received });
  }

  private fail(fault: ExchangeFault, beginning?: string): void {
    if (this.settled) return;
    const { bytesSent } = this;
    this.settle({ bytesSent, fault, response: null, ...(beginning !== undefined && { beginning }) });
    this.request?.destroy();
  }

  private settle(exchange: Exchange): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.deadline);
    clearTimeout(this.connectTimer);
    this.resolve(exchange);
  }
}

function faultOf(error: NodeJS.ErrnoException, bytesSent: boolean): ExchangeFault {
  if (bytesSent) return error.code?.startsWith('HPE_') ? 'unreadable' : 'reset';
  if (error.code === 'ECONNREFUSED') return 'connect_refused';
  if (error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN') return 'dns';
  return 'connect_failed';
}

/** Text that is not valid UTF-8 is not guessed: a replaced character could hide another destination. */
function decode(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
