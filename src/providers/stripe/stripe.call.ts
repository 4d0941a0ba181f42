import type { Dispatcher } from 'undici';

/** Why there is no complete answer. A closed list: `code` of a result comes from it. */
export type StripeFault =
  | 'lease_lost'
  | 'dns'
  | 'connect_refused'
  | 'connect_timeout'
  | 'connect_failed'
  | 'client_closed'
  | 'client_fault'
  | 'second_send'
  | 'sdk_timeout'
  | 'deadline'
  | 'reset'
  | 'body_too_large'
  | 'unreadable';

/** The head of a complete answer. */
export interface StripeHead {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The worker's wall clock when the answer was complete, epoch milliseconds. */
  readonly receivedAtMs: number;
  /** The body as it was read; null: it was not text. */
  readonly body: string | null;
}

export interface CallLimits {
  /** Milliseconds from the start of the call until it ends by itself, whatever the SDK does. */
  readonly deadlineMs: number;
  readonly connectTimeoutMs: number;
  /** Asked on the connected socket; the first byte follows in the same turn, or none does. */
  readonly mayWrite: () => boolean;
}

/** A page of a list is long; nothing longer is read on. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * Thrown to the SDK instead of what the network said. It has no `code`: the SDK sends a request again
 * after ECONNRESET and EPIPE even when it was told never to retry.
 */
export class StripeTransportFault extends Error {
  constructor(readonly fault: StripeFault) {
    super(`no answer from the provider: ${fault}`);
  }
}

/**
 * One request of the SDK, at most once on the wire. Knows for certain whether a byte was handed to the
 * socket: undici asks the handler's `onRequestStart` on the connected socket, and writes in the same
 * turn (its diagnostics channel `sendHeaders` follows; a connect error comes without it).
 */
export class StripeCall {
  bytesSent = false;
  fault: StripeFault | null = null;
  head: StripeHead | null = null;
  private over = false;
  private dispatched = false;
  private refuse: ((fault: StripeTransportFault) => void) | null = null;
  private controller: Dispatcher.DispatchController | null = null;
  private connectTimer: NodeJS.Timeout | undefined;
  private readonly ended: Promise<void>;
  private end: () => void = () => undefined;

  constructor(private readonly limits: CallLimits) {
    this.ended = new Promise((resolve) => (this.end = resolve));
  }

  /** Resolves when the deadline has passed or the client was closed. Never rejects. */
  async untilEnded(): Promise<void> {
    const timer = setTimeout(() => this.fail('deadline'), Math.max(0, this.limits.deadlineMs));
    await this.ended;
    clearTimeout(timer);
  }

  /** After this nothing leaves any more, also when the SDK tries. Twice: nothing. */
  finish(): void {
    this.over = true;
    clearTimeout(this.connectTimer);
    this.end();
  }

  /** Ends the call without an answer; before the first byte was written, none will be. Twice: the first counts. */
  fail(fault: StripeFault): void {
    if (this.over) return;
    this.fault ??= fault;
    const error = new StripeTransportFault(fault);
    this.finish();
    this.refuse?.(error);
    this.controller?.abort(error);
  }

  /**
   * Sends, as `fetch` would, without what `fetch` does by itself: it follows no redirect and repeats
   * nothing (the standard's algorithm repeats a POST after 421).
   */
  send(pool: Dispatcher, url: URL, init: RequestInit): Promise<Response> {
    if (this.dispatched || this.over) {
      this.fault ??= 'second_send';
      return Promise.reject(new StripeTransportFault('second_send'));
    }
    this.dispatched = true;
    init.signal?.addEventListener('abort', () => this.fail('sdk_timeout'), { once: true });
    this.connectTimer = setTimeout(() => this.fail('connect_timeout'), this.limits.connectTimeoutMs);
    return new Promise((resolve, reject) => {
      this.refuse = reject;
      const options = {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: init.method as Dispatcher.HttpMethod,
        headers: Object.fromEntries(init.headers as [string, string][]),
        body: typeof init.body === 'string' ? init.body : null,
        idempotent: false,
      };
      try {
        pool.dispatch(options, this.handler(resolve));
      } catch {
        this.fail('client_fault');
      }
    });
  }

  private handler(resolve: (response: Response) => void): Dispatcher.DispatchHandler {
    const chunks: Buffer[] = [];
    let size = 0;
    let status = 0;
    let headers: Readonly<Record<string, string>> = {};
    return {
      onRequestStart: (controller) => this.start(controller),
      onResponseStart: (_controller, received, receivedHeaders) => {
        status = received;
        headers = flatten(receivedHeaders);
      },
      onResponseData: (_controller, chunk) => {
        size += chunk.length;
        if (size > MAX_BODY_BYTES) return this.fail('body_too_large');
        chunks.push(chunk);
      },
      onResponseEnd: () => this.complete(status, headers, Buffer.concat(chunks), resolve),
      onResponseError: (_controller, error) => this.fail(faultOf(error, this.bytesSent)),
      onRequestUpgrade: () => this.fail('unreadable'),
    };
  }

  /** On the connected socket. An abort in here leaves it without a byte of this request. */
  private start(controller: Dispatcher.DispatchController): void {
    clearTimeout(this.connectTimer);
    this.controller = controller;
    if (this.over) {
      controller.abort(new StripeTransportFault(this.fault ?? 'client_fault'));
      return;
    }
    let allowed: boolean;
    try {
      allowed = this.limits.mayWrite();
    } catch {
      return this.fail('client_fault');
    }
    if (!allowed) return this.fail('lease_lost');
    this.bytesSent = true;
  }

  /**
   * Hands the SDK a JSON object or nothing: of a bare number or word it makes an error outside its own
   * promise, which would end the process.
   */
  private complete(
    status: number,
    headers: Readonly<Record<string, string>>,
    bytes: Buffer,
    resolve: (response: Response) => void,
  ): void {
    if (this.over) return;
    const body = decode(bytes);
    this.head = { status, headers, receivedAtMs: Date.now(), body };
    if (body === null || !isJsonObject(body)) return this.fail('unreadable');
    try {
      resolve(new Response(body, { status, headers }));
    } catch {
      this.fail('unreadable');
    }
  }
}

function faultOf(error: Error & { readonly code?: unknown }, bytesSent: boolean): StripeFault {
  const code = typeof error.code === 'string' ? error.code : '';
  if (bytesSent) return code.startsWith('HPE_') ? 'unreadable' : 'reset';
  if (code === 'ECONNREFUSED') return 'connect_refused';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns';
  return code === 'UND_ERR_CONNECT_TIMEOUT' ? 'connect_timeout' : 'connect_failed';
}

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

/** Text that is not valid UTF-8 is not guessed: a replaced character could hide another destination. */
function decode(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
