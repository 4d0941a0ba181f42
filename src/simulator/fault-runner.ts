import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  BAD_GATEWAY_HTML,
  BAD_GATEWAY_JSON,
  EMPTY,
  NOT_FOUND_JSON,
  always,
  anothersObject,
  brokenJson,
  changed,
  echoedInError,
  firstObject,
  lostRows,
  staleStatus,
  twoHits,
} from './answer-disguise.js';
import type { Disguise } from './answer-disguise.js';
import type { CallFaultKind, Fault } from './fault.js';
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
  /** Carries it out, as often as it is called. @param lagMs only for lookups: how far behind they are. */
  readonly execute: (variant: Variant, lagMs: number) => Answer;
  /** Marks the key busy; null when another request holds it. */
  readonly hold: () => (() => void) | null;
  /** The answer of a lookup that finds nothing. */
  readonly absent: Answer;
  /** How the client's dialect says it, the last step before the wire. */
  readonly dialect: (answer: Answer) => Answer;
}

/** What the runner needs of the server. */
export interface FaultStage {
  /** Answers once the ledger is written. */
  readonly answer: (work: Work, answer: Answer, disguise?: Disguise) => void;
  /** Cuts the connection with a reset once the ledger is written. */
  readonly reset: (work: Work) => void;
  /** Sends half of the answer, then cuts. */
  readonly truncate: (work: Work, answer: Answer) => void;
  /** Calls back after so many milliseconds of the wall clock, unless the simulator is reset or stopped. */
  readonly later: (delayMs: number, callback: () => void) => void;
  /** Leaves the request unanswered; calls back when the client has gone. */
  readonly abandon: (work: Work, gone: () => void) => void;
  /** Ends the whole process without a word, once the ledger is written. */
  readonly kill: () => void;
  /** The virtual clock, epoch milliseconds. */
  readonly virtualNow: () => number;
}

/** Carries out one request with its fault. */
export function runWithFault(stage: FaultStage, work: Work, fault: Fault): void {
  work.seen.fault = fault.kind;
  const run: Run = {
    stage,
    work,
    fault,
    execute: (variant = {}, lagMs = 0) => work.execute({ ...PLAIN_EXECUTION, ...variant }, lagMs),
  };
  const carryOut = FAULTS[fault.kind as CallFaultKind];
  carryOut(run);
}

interface Run {
  readonly stage: FaultStage;
  readonly work: Work;
  readonly fault: Fault;
  readonly execute: (variant?: Partial<Variant>, lagMs?: number) => Answer;
}
type CarryOut = (run: Run) => void;

const SERVER_ERROR = errorAnswer(500, 'internal_error', 'Something went wrong on our side.');

/** Executes nothing and gives this answer. */
const refusing =
  (answer: Answer): CarryOut =>
  ({ stage, work }) =>
    stage.answer(work, answer);
/** Executes nothing and says this, whatever the dialect. */
const saying =
  (disguise: Disguise): CarryOut =>
  ({ stage, work }) =>
    stage.answer(work, EMPTY, disguise);
/** Executes honestly, then shows the answer in another form. */
const disguised =
  (disguise?: Disguise): CarryOut =>
  ({ stage, work, execute }) =>
    stage.answer(work, execute(), disguise);
const declining =
  (declineCode: string): CarryOut =>
  ({ stage, work, execute }) =>
    stage.answer(work, execute({ declineCode }));

const FAULTS: Readonly<Record<CallFaultKind, CarryOut>> = {
  none: disguised(),
  hang: ({ stage, work }) => hang(stage, work),
  hang_after: ({ stage, work, execute }) => {
    execute();
    stage.abandon(work, () => undefined);
  },
  slow: answerLate,
  late_commit: commitLate,
  reset_before: ({ stage, work }) => stage.reset(work),
  reset_after: ({ stage, work, execute }) => {
    execute();
    stage.reset(work);
  },
  truncate_after: ({ stage, work, execute }) => stage.truncate(work, execute()),
  kill_before: ({ stage }) => stage.kill(),
  kill_after: ({ stage, execute }) => {
    execute();
    stage.kill();
  },

  decline: declining('card_declined'),
  decline_funds: declining('insufficient_funds'),
  pending_then_final: (run) =>
    run.stage.answer(run.work, run.execute({ pending: pendingEnd(run), returns: laterReturn(run) })),
  return_after: ({ stage, work, fault, execute }) => {
    const { afterMs, returnCode: code, returnAmount: amount } = fault;
    stage.answer(work, execute({ returns: { afterMs: afterMs ?? 0, code, amount } }));
  },
  double: ({ stage, work, fault, execute }) => stage.answer(work, execute({ executions: fault.copies })),

  http_500_before: ({ stage, work, fault, execute }) => {
    const error = serverError(fault);
    const stored = { storedInstead: error, nothingExecuted: true };
    stage.answer(work, fault.stored ? execute(stored) : error);
  },
  http_500_after: ({ stage, work, fault, execute }) => {
    const error = serverError(fault);
    const answer = execute(fault.stored ? { storedInstead: error } : {});
    stage.answer(work, { ...error, replayed: answer.replayed && answer.body === error.body });
  },
  http_502_html_before: saying(always(BAD_GATEWAY_HTML)),
  http_502_html_after: disguised(always(BAD_GATEWAY_HTML)),
  http_502_json_before: saying(always(BAD_GATEWAY_JSON)),
  http_502_json_after: disguised(always(BAD_GATEWAY_JSON)),
  http_404_json_before: saying(always(NOT_FOUND_JSON)),
  http_404_json_after: disguised(always(NOT_FOUND_JSON)),
  empty_200_before: saying(always(EMPTY)),
  empty_200_after: disguised(always(EMPTY)),
  broken_json_after: disguised(brokenJson),
  http_401: refusing(errorAnswer(401, 'invalid_api_key', 'Unknown API key.')),
  http_403: refusing(errorAnswer(403, 'permission_denied', 'This key may not do that.')),
  http_409_in_use: refusing(
    errorAnswer(409, 'idempotency_key_in_use', 'A request with this key is still running.'),
  ),
  http_400_key_reused: refusing(
    errorAnswer(400, 'idempotency_key_reused', 'This key was used with other parameters.'),
  ),
  http_429: ({ stage, work, fault }) =>
    stage.answer(
      work,
      errorAnswer(429, 'rate_limited', 'Too many requests.'),
      withHeaders(retryAfter(fault)),
    ),
  redirect_307: ({ stage, work }) => stage.answer(work, EMPTY, redirectTo(work)),

  echo_error_after: disguised(echoedInError),
  unknown_status_after: disguised(changed({ status: 'reticulating' })),
  other_currency_after: disguised(changed(({ currency }) => ({ currency: otherCurrency(currency) }))),
  other_destination_after: disguised(changed({ destination: 'acct_of_somebody_else' })),
  other_object_after: disguised(anothersObject),
  other_amount_after: answerOtherAmount,

  lookup_absent: ({ stage, work }) => stage.answer(work, work.absent),
  lookup_500: refusing(SERVER_ERROR),
  lookup_lag: ({ stage, work, fault, execute }) => stage.answer(work, execute({}, fault.afterMs ?? 0)),
  lookup_stale: disguised(staleStatus),
  lookup_lost_rows: disguised(lostRows),
  lookup_two_hits: disguised(twoHits),
};

function hang(stage: FaultStage, work: Work): void {
  const release = work.hold();
  stage.abandon(work, () => release?.());
}

function answerLate({ stage, work, fault, execute }: Run): void {
  const answer = execute();
  const release = work.hold();
  stage.later(fault.afterMs ?? 0, () => {
    release?.();
    stage.answer(work, answer);
  });
}

/** The request outlives its client: it is executed late, whether anybody still listens or not. */
function commitLate({ stage, work, fault, execute }: Run): void {
  const release = work.hold();
  stage.abandon(work, () => undefined);
  if (!release) return;
  stage.later(fault.afterMs ?? 0, () => {
    release();
    execute();
  });
}

function answerOtherAmount({ stage, work, fault, execute }: Run): void {
  if (fault.booked) return stage.answer(work, execute({ amount: fault.amount }));
  const answer = execute();
  const shown = fault.amount ?? Number(firstObject(answer)?.['amount'] ?? 0) + 1;
  stage.answer(work, answer, changed({ amount: shown }));
}

function serverError({ httpStatus }: Fault): Answer {
  return { ...SERVER_ERROR, status: httpStatus };
}

function pendingEnd({ stage, fault }: Run): Variant['pending'] {
  return {
    status: fault.final,
    failureCode: fault.final === 'failed' ? fault.failureCode : null,
    atMs: fault.afterMs === null ? null : stage.virtualNow() + fault.afterMs,
    afterLookups: fault.lookups,
  };
}

function laterReturn({ fault }: Run): Variant['returns'] {
  const { returnAfterMs: afterMs, returnCode: code, returnAmount: amount } = fault;
  return afterMs === null ? null : { afterMs, code, amount };
}

function retryAfter({ retryAfter: text, retryAfterDateMs }: Fault): Readonly<Record<string, string>> {
  if (retryAfterDateMs !== null) {
    return { 'retry-after': new Date(Date.now() + retryAfterDateMs).toUTCString() };
  }
  return text === null ? {} : { 'retry-after': text };
}

function withHeaders(headers: Readonly<Record<string, string>>): Disguise {
  return (answer) => ({ ...answer, headers });
}

function redirectTo({ request }: Work): Disguise {
  const location = `http://${request.headers.host}${request.url}`;
  return always({ status: 307, body: '', headers: { location } });
}

function otherCurrency(currency: unknown): string {
  const lower = currency === String(currency).toLowerCase();
  const other = String(currency).toUpperCase() === 'USD' ? 'EUR' : 'USD';
  return lower ? other.toLowerCase() : other;
}
