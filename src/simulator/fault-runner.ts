import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Fault } from './fault.js';
import type { Answer } from './payout-answer.js';
import { errorAnswer } from './payout-answer.js';
import { PLAIN_EXECUTION } from './payout-protocol.js';
import type { Variant } from './payout-protocol.js';
import type { SeenRequest } from './request-log.js';

/** A request that was read and understood, ready to be carried out. */
export interface Work {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly seen: SeenRequest;
  /** Carries it out, as often as it is called. */
  readonly execute: (variant: Variant) => Answer;
  /** Marks the key busy; null when another request holds it. */
  readonly hold: () => (() => void) | null;
  /** The answer of a lookup that finds nothing. */
  readonly absent: Answer;
}

/** Changes an answer on its way to the client. */
export type Disguise = (answer: Answer) => Disguised;
interface Disguised {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the runner needs of the server. */
export interface FaultStage {
  /** Answers once the ledger is written. */
  readonly answer: (work: Work, answer: Answer, disguise?: Disguise) => void;
  /** Cuts the connection with a reset once the ledger is written. */
  readonly reset: (work: Work) => void;
  /** Sends half of the answer, then cuts. */
  readonly truncate: (work: Work, answer: Answer) => void;
  /** Calls back after so many milliseconds, unless the simulator is reset or stopped. */
  readonly later: (delayMs: number, callback: () => void) => void;
  /** Leaves the request unanswered; calls back when the client has gone. */
  readonly abandon: (work: Work, gone: () => void) => void;
  /** The wall clock, epoch milliseconds. */
  readonly now: () => number;
}

/** Carries out one request with its fault. */
export function runWithFault(stage: FaultStage, work: Work, fault: Fault): void {
  const { kind } = fault;
  work.seen.fault = kind;
  const execute = (variant: Partial<Variant> = {}): Answer =>
    work.execute({ ...PLAIN_EXECUTION, ...variant });
  switch (kind) {
    case 'none':
      return stage.answer(work, execute());
    case 'hang':
      return hang(stage, work);
    case 'slow':
      return answerLate(stage, work, fault, execute());
    case 'late_commit':
      return commitLate(stage, work, fault, execute);
    case 'reset_before':
      return stage.reset(work);
    case 'reset_after':
      execute();
      return stage.reset(work);
    case 'truncate_after':
      return stage.truncate(work, execute());
    case 'decline':
      return stage.answer(work, execute({ declineCode: 'card_declined' }));
    case 'decline_funds':
      return stage.answer(work, execute({ declineCode: 'insufficient_funds' }));
    case 'pending_then_final':
      return stage.answer(work, execute({ pending: pendingEnd(fault, work.seen.receivedAt) }));
    case 'lookup_absent':
      return stage.answer(work, work.absent);
    case 'lookup_500':
      return stage.answer(work, SERVER_ERROR);
    case 'http_500_before':
      return stage.answer(work, fault.stored ? execute(STORED_ERROR_ALONE) : SERVER_ERROR);
    case 'http_500_after':
      return stage.answer(work, execute(fault.stored ? STORED_ERROR : {}), always(SERVER_ERROR));
    case 'http_401':
      return stage.answer(work, errorAnswer(401, 'invalid_api_key', 'Unknown API key.'));
    case 'http_403':
      return stage.answer(work, errorAnswer(403, 'permission_denied', 'This key may not do that.'));
    case 'http_429':
      return stage.answer(work, errorAnswer(429, 'rate_limited', 'Too many requests.'), retryAfter(fault));
    case 'redirect_307':
      return stage.answer(work, EMPTY, redirectTo(work));
    case 'http_502_html_after':
      return stage.answer(work, execute(), always(BAD_GATEWAY));
    case 'empty_200_after':
      return stage.answer(work, execute(), always(EMPTY));
    case 'broken_json_after':
      return stage.answer(work, execute(), brokenJson);
    case 'unknown_status_after':
      return stage.answer(work, execute(), changed({ status: 'reticulating' }));
    case 'other_amount_after':
      return answerOtherAmount(stage, work, fault, execute);
  }
}

const SERVER_ERROR = errorAnswer(500, 'internal_error', 'Something went wrong on our side.');
const STORED_ERROR: Partial<Variant> = { storedInstead: SERVER_ERROR };
const STORED_ERROR_ALONE: Partial<Variant> = { storedInstead: SERVER_ERROR, nothingExecuted: true };
const EMPTY: Answer = { status: 200, body: '', replayed: false };
const BAD_GATEWAY: Disguised = {
  status: 502,
  body: '<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>',
  headers: { 'content-type': 'text/html' },
};

function hang(stage: FaultStage, work: Work): void {
  const release = work.hold();
  stage.abandon(work, () => release?.());
}

function answerLate(stage: FaultStage, work: Work, fault: Fault, answer: Answer): void {
  const release = work.hold();
  stage.later(fault.afterMs ?? 0, () => {
    release?.();
    stage.answer(work, answer);
  });
}

/** The request outlives its client: it is executed late, whether anybody still listens or not. */
function commitLate(stage: FaultStage, work: Work, fault: Fault, execute: () => Answer): void {
  const release = work.hold();
  stage.abandon(work, () => undefined);
  if (!release) return;
  stage.later(fault.afterMs ?? 0, () => {
    release();
    execute();
  });
}

function answerOtherAmount(
  stage: FaultStage,
  work: Work,
  fault: Fault,
  execute: (variant: Partial<Variant>) => Answer,
): void {
  if (fault.booked) return stage.answer(work, execute({ amount: fault.amount }));
  stage.answer(work, execute({}), (answer) => {
    const body = parsed(answer.body);
    const shown = fault.amount ?? Number(firstPayout(body)?.['amount'] ?? 0) + 1;
    return changed({ amount: shown })(answer);
  });
}

function pendingEnd(fault: Fault, receivedAt: number): Variant['pending'] {
  return {
    status: fault.final,
    failureCode: fault.final === 'failed' ? fault.failureCode : null,
    atMs: fault.afterMs === null ? null : receivedAt + fault.afterMs,
    afterLookups: fault.lookups,
  };
}

function always(disguised: Disguised): Disguise {
  return () => disguised;
}

function retryAfter(fault: Fault): Disguise {
  return (answer) => ({
    ...answer,
    ...(fault.retryAfter !== null && { headers: { 'retry-after': fault.retryAfter } }),
  });
}

function redirectTo({ request }: Work): Disguise {
  const location = `http://${request.headers.host}${request.url}`;
  return () => ({ status: 307, body: '', headers: { location } });
}

function brokenJson({ status, body }: Answer): Disguised {
  return { status, body: body.slice(0, Math.ceil(body.length / 2)) };
}

/** Overwrites members of the payout, or of every payout of a list. Errors stay as they are. */
function changed(members: Readonly<Record<string, unknown>>): Disguise {
  return ({ status, body }) => {
    const content = parsed(body);
    if (Array.isArray(content['data'])) {
      content['data'] = content['data'].map((payout: object) => ({ ...payout, ...members }));
    } else if (content['object'] === 'payout') {
      Object.assign(content, members);
    }
    return { status, body: JSON.stringify(content) };
  };
}

function parsed(body: string): Record<string, unknown> {
  return JSON.parse(body) as Record<string, unknown>;
}

function firstPayout(content: Record<string, unknown>): Record<string, unknown> | undefined {
  return Array.isArray(content['data']) ? (content['data'][0] as Record<string, unknown>) : content;
}
