import { Agent, errors, request, type Dispatcher } from 'undici';
import { judgeUrl, type GuardPolicy } from './endpoint-guard.js';
import { eventBody, eventId, type ClientEvent } from './event.js';
import { signatureHeaders } from './event-signature.js';
import { guardedConnector, NotDialled, type ConnectorOptions } from './guarded-connector.js';

/** What a try came to: a closed list; nothing that the receiver wrote is in it. */
export type DeliveryCode =
  | 'delivered'
  /** 410: the receiver says that nothing shall be sent there any more. */
  | 'gone'
  | 'http_error'
  /** A redirect is never followed: it would lead past the guard. */
  | 'redirected'
  | 'timed_out'
  | 'unreachable'
  | 'tls_failed'
  | 'name_unknown'
  | 'address_refused'
  | 'url_refused'
  /** Ours: the signing secret does not open, so nothing was sent. */
  | 'secret_unreadable';

export interface DeliveryResult {
  readonly code: DeliveryCode;
  /** Null when no answer came. */
  readonly httpStatus: number | null;
}

/** Times in ms: of the whole delivery, and of the answer's head. */
const WHOLE_MS = 15_000;
const HEAD_MS = 10_000;
/** An idle connection to a receiver is kept this long: the events of one payment come close together. */
const IDLE_MS = 4_000;
/** Bytes of an answer that are read, only to use its connection again; nobody sees them. */
const MOST_READ = 4_096;
/** Headers of an answer, in bytes. */
const MOST_HEAD = 8_192;

export interface EventSenderOptions extends Omit<ConnectorOptions, 'policy'> {
  readonly policy: GuardPolicy;
  /** For tests: shorter than 15 s. */
  readonly wholeMs?: number;
}

/** Sends events to endpoints of clients: judged, signed, without following where they point. */
export class EventSender {
  private readonly agent: Agent;

  constructor(private readonly options: EventSenderOptions) {
    this.agent = new Agent({
      connect: guardedConnector(options),
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      maxHeaderSize: MOST_HEAD,
      headersTimeout: HEAD_MS,
      bodyTimeout: HEAD_MS,
    });
  }

  /**
   * Makes one try, of at most 15 s. Never throws for what the receiver or the network does.
   * @param secrets one or two, newest first; the event is signed with each.
   */
  async send(urlText: string, event: ClientEvent, secrets: readonly string[]): Promise<DeliveryResult> {
    // Judged when it was stored, and again: the rules may have become stricter since.
    const verdict = judgeUrl(urlText, this.options.policy);
    if (verdict.kind === 'refused') return { code: 'url_refused', httpStatus: null };
    const body = eventBody(event);
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'payments-webhooks/1',
      ...signatureHeaders({ id: eventId(event), nowMs: Date.now(), body }, secrets),
    };
    const signal = AbortSignal.timeout(this.options.wholeMs ?? WHOLE_MS);
    try {
      const answer = await request(verdict.url, {
        method: 'POST',
        dispatcher: this.agent,
        headers,
        body,
        signal,
      });
      await this.discard(answer, signal);
      return { code: codeOfStatus(answer.statusCode), httpStatus: answer.statusCode };
    } catch (error) {
      return { code: codeOfError(error), httpStatus: null };
    }
  }

  /** Ends every connection; tries under way end as unreachable. Twice: nothing. */
  async close(): Promise<void> {
    await this.agent.destroy();
  }

  /** The answer stands with its head; its body neither counts nor delays. */
  private async discard({ body }: Dispatcher.ResponseData, signal: AbortSignal): Promise<void> {
    await body.dump({ limit: MOST_READ, signal }).catch(() => undefined);
  }
}

function codeOfStatus(status: number): DeliveryCode {
  if (status >= 200 && status < 300) return 'delivered';
  if (status >= 300 && status < 400) return 'redirected';
  return status === 410 ? 'gone' : 'http_error';
}

function codeOfError(error: unknown): DeliveryCode {
  if (error instanceof NotDialled) return error.code;
  const { code = '', name } = error as { readonly code?: string; readonly name?: string };
  if (
    name === 'TimeoutError' ||
    error instanceof errors.ConnectTimeoutError ||
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError
  ) {
    return 'timed_out';
  }
  // OpenSSL's and Node's codes of a certificate or a handshake that is not right.
  const isTls = /^(ERR_SSL_|ERR_TLS_|EPROTO$|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_)/.test(code);
  return isTls ? 'tls_failed' : 'unreachable';
}
