import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FaultPlan } from './fault-plan.js';
import { runWithFault } from './fault-runner.js';
import type { Disguise, FaultStage, Work } from './fault-runner.js';
import { readBody } from './http-body.js';
import { errorAnswer, listAnswer } from './payout-answer.js';
import type { Answer } from './payout-answer.js';
import type { PayoutBook } from './payout-book.js';
import type { Call, PayoutProtocol } from './payout-protocol.js';
import { understand } from './provider-route.js';
import type { Wish } from './provider-route.js';
import type { RequestLog, SeenRequest } from './request-log.js';
import type { SimulatedAccount } from './settings.js';

export interface ProviderPortParts {
  readonly accounts: ReadonlyMap<string, SimulatedAccount>;
  readonly book: PayoutBook;
  readonly protocol: PayoutProtocol;
  readonly plan: FaultPlan;
  readonly log: RequestLog;
  /** Calls back once the ledger is with the operating system. */
  readonly whenWritten: (callback: () => void) => void;
  /** The wall clock, epoch milliseconds. */
  readonly now: () => number;
}

const MAX_BODY_BYTES = 64 * 1024;
/** Longer than a client keeps a free connection, so that it is the client who closes. */
const KEEP_ALIVE_MS = 65_000;
/** A burst of connections must not be refused by the kernel. */
const BACKLOG = 4096;
const NOT_FOUND = errorAnswer(404, 'payout_not_found', 'No such payout.');
const EMPTY_LIST = listAnswer([]);

const OPERATION_OF = { create: 'submit', commit: 'commit', read: 'lookup', list: 'lookup' } as const;

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

  answer({ response, seen }: Work, answer: Answer, disguise?: Disguise): void {
    const { status, body, headers } = { headers: {}, ...(disguise ? disguise(answer) : answer) };
    this.parts.whenWritten(() => {
      if (response.destroyed) return;
      seen.httpStatus = status;
      seen.replayed = answer.replayed;
      response.writeHead(status, { ...this.headersOf(answer, body), ...headers });
      response.end(body);
    });
  }

  reset({ request }: Work): void {
    this.parts.whenWritten(() => request.socket.resetAndDestroy());
  }

  truncate({ response, seen }: Work, answer: Answer): void {
    this.parts.whenWritten(() => {
      if (response.destroyed) return;
      seen.httpStatus = answer.status;
      response.writeHead(answer.status, this.headersOf(answer, answer.body));
      response.write(answer.body.slice(0, Math.ceil(answer.body.length / 2)), () => response.destroy());
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

  now(): number {
    return this.parts.now();
  }

  private admit(socket: Socket): void {
    if (this.connectionsToRefuse === 0) return;
    this.connectionsToRefuse -= 1;
    socket.resetAndDestroy();
  }

  private receive(request: IncomingMessage, response: ServerResponse): void {
    const receivedAt = this.now();
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
    const { wish, operation, reference, payoutId } = understand(method, path, body, account);
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
    const work = { request, response, seen, ...this.effectOf(wish, { key: seen.key, receivedAt }) };
    if (wish.kind === 'refused') return this.answer(work, wish.answer);
    runWithFault(this, work, this.parts.plan.next(OPERATION_OF[wish.kind], seen.reference));
  }

  private effectOf(
    wish: Wish,
    { key, receivedAt }: Omit<Call, 'account'>,
  ): Pick<Work, 'execute' | 'hold' | 'absent'> {
    const { protocol } = this.parts;
    const free = (): null => null;
    if (wish.kind === 'refused') return { execute: () => wish.answer, hold: free, absent: NOT_FOUND };
    const call: Call = { account: wish.account, key, receivedAt };
    switch (wish.kind) {
      case 'create':
      case 'commit':
        return {
          execute: (variant) => protocol.execute(call, wish.instruction, variant),
          hold: () => protocol.hold(call, wish.instruction),
          absent: NOT_FOUND,
        };
      case 'read':
        return { execute: () => protocol.read(call, wish.id), hold: free, absent: NOT_FOUND };
      case 'list':
        return { execute: () => protocol.list(call, wish.reference), hold: free, absent: EMPTY_LIST };
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
