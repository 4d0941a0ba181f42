import { AsyncLocalStorage } from 'node:async_hooks';
import Stripe from 'stripe';
import { Pool } from 'undici';
import { StripeCall, StripeTransportFault } from './stripe.call.js';
import type { StripeFault, StripeHead } from './stripe.call.js';

/** Pinned: the shapes that the mapping understands are those of this version. */
export const STRIPE_API_VERSION = '2026-10-28.endive';

export interface StripeClientOptions {
  /** `https://api.stripe.com`, or a stand-in's address. */
  readonly baseUrl: string;
  /** A plain key. An authenticator of the SDK that rejects would leave the call without an end. */
  readonly apiKey: string;
  readonly connectTimeoutMs: number;
  readonly sdkTimeoutMs: number;
  /** Must exceed the calls in flight that the lane allows: a queued call's deadline runs. */
  readonly maxSockets: number;
}

/** What the SDK said at the end: an object without `error`, an error, or nothing until the deadline. */
export type SdkOutcome =
  | { readonly kind: 'resolved'; readonly value: unknown }
  | { readonly kind: 'thrown'; readonly error: unknown }
  | { readonly kind: 'silent' };

/** What one call came to: the SDK's word, and what our transport saw below it. */
export interface StripeExchange {
  readonly outcome: SdkOutcome;
  /** False is a proof: no byte was handed to a socket, and none will be. */
  readonly bytesSent: boolean;
  readonly fault: StripeFault | null;
  readonly head: StripeHead | null;
}

export interface ExchangeLimits {
  readonly deadlineMs: number;
  readonly mayWrite: () => boolean;
}

type SdkCall = (stripe: Stripe, options: Stripe.RequestOptions) => Promise<unknown>;

/** Closed from here before the other side does, so that a free connection is seldom found dead. */
const FREE_SOCKET_MS = 10_000;

/**
 * Stripe's SDK over a transport of our own: one request per call, no retry, no redirect, no telemetry.
 * The SDK builds requests and names errors; it is never asked whether something was sent.
 */
export class StripeClient {
  private readonly pool: Pool;
  private readonly stripe: Stripe;
  private readonly calls = new AsyncLocalStorage<StripeCall>();
  private readonly open = new Set<StripeCall>();
  private closed = false;

  constructor(private readonly options: StripeClientOptions) {
    const { protocol, hostname, port, origin } = new URL(options.baseUrl);
    this.pool = new Pool(origin, {
      connections: options.maxSockets,
      pipelining: 1,
      allowH2: false,
      // undici's own timer is coarse: the call's timer ends it first, this one frees the socket.
      connect: { timeout: options.connectTimeoutMs * 2 },
      keepAliveTimeout: FREE_SOCKET_MS,
      keepAliveMaxTimeout: FREE_SOCKET_MS,
      // The call has a deadline of its own.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const secure = protocol === 'https:';
    this.stripe = new Stripe(options.apiKey, {
      apiVersion: STRIPE_API_VERSION,
      httpClient: Stripe.createFetchHttpClient(this.fetchOnce),
      host: hostname,
      port: port === '' ? (secure ? 443 : 80) : Number(port),
      protocol: secure ? 'https' : 'http',
      maxNetworkRetries: 0,
      timeout: options.sdkTimeoutMs,
      telemetry: false,
    });
  }

  /** Never rejects, and never later than the deadline. Twice: two requests on the wire. */
  async exchange(request: SdkCall, { deadlineMs, mayWrite }: ExchangeLimits): Promise<StripeExchange> {
    if (this.closed)
      return { outcome: { kind: 'silent' }, bytesSent: false, fault: 'client_closed', head: null };
    const { connectTimeoutMs } = this.options;
    const call = new StripeCall({ deadlineMs, connectTimeoutMs, mayWrite });
    this.open.add(call);
    const answer = this.calls.run(call, () => outcomeOf(request, this.stripe));
    const silence = call.untilEnded().then((): SdkOutcome => ({ kind: 'silent' }));
    const outcome = await Promise.race([answer, silence]);
    call.finish();
    this.open.delete(call);
    return { outcome, bytesSent: call.bytesSent, fault: call.fault, head: call.head };
  }

  /** Cuts every connection; calls under way end without an answer. Twice: nothing. */
  async close(): Promise<void> {
    this.closed = true;
    for (const call of this.open) call.fail('client_closed');
    await this.pool.destroy();
  }

  /** What the SDK takes for `fetch`. It belongs to the call in whose context the SDK runs. */
  private readonly fetchOnce = (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const call = this.calls.getStore();
    // The SDK hands over a text; a ready-made request would bring settings of its own.
    if (!call || typeof input !== 'string') return Promise.reject(new StripeTransportFault('client_fault'));
    return call.send(this.pool, new URL(input), init);
  };
}

async function outcomeOf(request: SdkCall, stripe: Stripe): Promise<SdkOutcome> {
  try {
    return { kind: 'resolved', value: await request(stripe, {}) };
  } catch (error) {
    return { kind: 'thrown', error };
  }
}
