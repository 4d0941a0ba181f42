import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { AccountSwitches, SimulatedAccount } from './account.js';
import type { Disguise } from './answer-disguise.js';
import type { FaultPlan } from './fault-plan.js';
import { runWithFault } from './fault-runner.js';
import type { FaultStage, Work } from './fault-runner.js';
import { readBody } from './http-body.js';
import { listAnswer, notFoundAnswer } from './payout-answer.js';
import type { Answer } from './payout-answer.js';
import type { Payout, PayoutBook } from './payout-book.js';
import type { PayoutLookups } from './payout-lookups.js';
import type { Call, PayoutProtocol } from './payout-protocol.js';
import { understand } from './provider-route.js';
import type { Wish } from './provider-route.js';
import type { RequestLog, SeenRequest } from './request-log.js';
import { stripeDialect } from './stripe/stripe-dialect.js';
import { stripeFormOf, understandStripe } from './stripe/stripe-route.js';

export interface ProviderPortParts {
  readonly accounts: ReadonlyMap<string, SimulatedAccount>;
  readonly book: PayoutBook;
  readonly protocol: PayoutProtocol;
  readonly lookups: PayoutLookups;
  readonly plan: FaultPlan;
  readonly log: RequestLog;
  readonly switchesOf: (account: string) => AccountSwitches;
  /** Calls back once the ledger is with the operating system. */
  readonly whenWritten: (callback: () => void) => void;
  /** Calls back once no event about the reference has to arrive before the answer. */
  readonly beforeAnswer: (reference: string, callback: () => void) => void;
  /** The wall clock, epoch milliseconds: arrivals are measured with it and with nothing else. */
  readonly now: () => number;
  readonly virtualNow: () => number;
  /** Ends the process without a word. */
  readonly kill: () => void;
}

const MAX_BODY_BYTES = 64 * 1024;
/** Longer than a client keeps a free connection, so that it is the client who closes. */
const KEEP_ALIVE_MS = 65_000;
/** A burst of connections must not be refused by the kernel. */
const BACKLOG = 4096;
const NOT_FOUND = notFoundAnswer();
const EMPTY_LIST = listAnswer([]);

/** The HTTP side of the provider, with its faults. */
export class ProviderPort implements FaultStage {
  private readonly server: Server;
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly unanswered = new Set<Socket>();
  private readonly requestIdPrefix = `req_${randomBytes(6).toString('hex')}`;
  private connectionsToRefuse = 0;
  private answerCount = 0;

  constructor(private readonly parts: ProviderPortParts) {
    this.server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true }, (request, response) =>
      this.receive(request, response),
    );
    this.server.on('connection', (socket) => this.admit(socket));
    this.server.on('clientError', (_error, socket) => socket.destroy());
  }

  /** @returns the port's number. @throws Error when it is taken. */
  async open(host: string, port: number): Promise<number> {
    this.server.listen({ host, port, backlog: BACKLOG });
    await once(this.server, 'listening');
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('The provider port has no number.');
    return address.port;
  }

  get isOpen(): boolean {
    return this.server.listening;
  }

  /** Stops listening and cuts every connection; executions under way go on. Twice: nothing. */
  close(): void {
    if (!this.server.listening) return;
    this.server.close();
    this.server.closeAllConnections();
  }

  /** The next connections are reset as soon as they are made. */
  refuseConnections(count: number): void {
    this.connectionsToRefuse = count;
  }

  /** Drops what is under way: late executions, late and missing answers, refusals to come. */
  dropUnfinished(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    for (const socket of this.unanswered) socket.destroy();
    this.connectionsToRefuse = 0;
  }

  answer(work: Work, answer: Answer, disguise?: Disguise): void {
    const { response, seen } = work;
    const said = work.dialect(answer);
    const { status, body, headers } = { headers: {}, ...(disguise ? disguise(said) : said) };
    this.parts.whenWritten(() => {
      this.parts.beforeAnswer(seen.reference, () => {
        if (response.destroyed) return;
        seen.httpStatus = status;
        seen.replayed = answer.replayed;
        response.writeHead(status, { ...this.headersOf(answer, body), ...headers });
        response.end(body);
      });
    });
  }

  reset({ request }: Work): void {
    this.parts.whenWritten(() => request.socket.resetAndDestroy());
  }

  truncate(work: Work, answer: Answer): void {
    const { response, seen } = work;
    const { status, body } = work.dialect(answer);
    this.parts.whenWritten(() => {
      if (response.destroyed) return;
      seen.httpStatus = status;
      response.writeHead(status, this.headersOf(answer, body));
      response.write(body.slice(0, Math.ceil(body.length / 2)), () => response.destroy());
    });
  }

  later(delayMs: number, callback: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      callback();
    }, delayMs);
    this.timers.add(timer);
  }

  abandon({ response }: Work, gone: () => void): void {
    response.once('close', gone);
  }

  kill(): void {
    this.parts.whenWritten(this.parts.kill);
  }

  virtualNow(): number {
    return this.parts.virtualNow();
  }

  private admit(socket: Socket): void {
    if (this.connectionsToRefuse === 0) return;
    this.connectionsToRefuse -= 1;
    socket.resetAndDestroy();
  }

  private receive(request: IncomingMessage, response: ServerResponse): void {
    const receivedAt = this.parts.now();
    const { socket } = request;
    this.unanswered.add(socket);
    response.once('close', () => this.unanswered.delete(socket));
    readBody(request, MAX_BODY_BYTES, (body) => this.carryOut(request, response, receivedAt, body));
  }

  private carryOut(
    request: IncomingMessage,
    response: ServerResponse,
    receivedAt: number,
    body: string | null,
  ): void {
    const bearer = headerText(request, 'authorization')?.replace(/^Bearer /, '') ?? '';
    const account = this.parts.accounts.get(bearer) ?? null;
    const [method, path] = [request.method ?? '', request.url ?? ''];
    const form = stripeFormOf(path);
    const incoming = { method, path, body, account };
    const understood = form ? understandStripe(incoming) : understand(incoming);
    const { wish, operation, reference, payoutId } = understood;
    const seen: SeenRequest = {
      receivedAt,
      operation,
      method,
      path,
      reference: reference ?? this.referenceOf(account, payoutId),
      key: headerText(request, 'idempotency-key'),
      fault: 'none',
      httpStatus: null,
      replayed: false,
    };
    this.parts.log.add(seen);
    const effect = this.effectOf(wish, seen);
    const dialect = form ? stripeDialect(form) : (answer: Answer) => answer;
    const work: Work = { request, response, seen, dialect, ...effect };
    if (wish.kind === 'refused') return this.answer(work, wish.answer);
    const planned = wish.kind === 'write' ? wish.operation : 'lookup';
    runWithFault(this, work, this.parts.plan.next(planned, seen.reference));
  }

  private effectOf(
    wish: Wish,
    { key, receivedAt, reference }: SeenRequest,
  ): Pick<Work, 'execute' | 'hold' | 'absent'> {
    const { protocol, lookups, plan, switchesOf } = this.parts;
    const free = (): null => null;
    if (wish.kind === 'refused') return { execute: () => wish.answer, hold: free, absent: NOT_FOUND };
    const call: Call = { account: wish.account, key, receivedAt };
    const { account } = wish.account;
    const look = (lagMs: number): { account: string; lagMs: number } => ({
      account,
      lagMs: Math.max(lagMs, switchesOf(account).lookupLagMs),
    });
    switch (wish.kind) {
      case 'write':
        return {
          execute: (variant) => protocol.execute(call, wish.instruction, variant),
          hold: () => protocol.hold(call, wish.instruction),
          absent: NOT_FOUND,
        };
      case 'read': {
        const { form, id } = wish;
        return { execute: (_, lagMs) => lookups.read(look(lagMs), form, id), hold: free, absent: NOT_FOUND };
      }
      case 'list': {
        const { query } = wish;
        const isScan = reference === '';
        const hidden = (payout: Payout): boolean => isScan && plan.hidesFromScans(payout.reference);
        return {
          execute: (_, lagMs) => lookups.list(look(lagMs), query, hidden),
          hold: free,
          absent: EMPTY_LIST,
        };
      }
    }
  }

  private referenceOf(account: SimulatedAccount | null, payoutId: string | null): string {
    if (!account || payoutId === null) return '';
    return this.parts.book.payout(account.account, payoutId)?.reference ?? '';
  }

  private headersOf(answer: Answer, body: string): Record<string, string | number> {
    this.answerCount += 1;
    return {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'request-id': `${this.requestIdPrefix}${this.answerCount}`,
      ...(answer.replayed && { 'idempotent-replayed': 'true' }),
    };
  }
}

function headerText(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' ? value : null;
}
