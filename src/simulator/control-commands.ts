import { readSwitches } from './account.js';
import type { AccountSwitches } from './account.js';
import { DONE, answerOf, refusal } from './control-port.js';
import type { ControlAnswer, ControlCommand } from './control-port.js';
import { PlanRefused, isRecord } from './fault.js';
import type { FaultPlan } from './fault-plan.js';
import type { LedgerReport } from './ledger-report.js';
import { paymentIdOf } from './payout-book.js';
import type { LedgerRecord, PayoutBook } from './payout-book.js';
import type { ProviderPort } from './provider-port.js';
import type { RequestLog } from './request-log.js';
import type { VirtualClock } from './virtual-clock.js';

export interface ControlParts {
  readonly book: PayoutBook;
  readonly report: LedgerReport;
  readonly plan: FaultPlan;
  readonly log: RequestLog;
  readonly provider: ProviderPort;
  readonly clock: VirtualClock;
  /** Every account that a bearer key stands for. */
  readonly accountNames: ReadonlySet<string>;
  readonly switchesOf: (account: string) => AccountSwitches;
  readonly record: (record: LedgerRecord) => void;
  readonly whenWritten: (callback: () => void) => void;
  readonly reset: () => void;
  readonly listen: (open: boolean) => Promise<void>;
}

/** What the control port can do, by method and path. */
export function controlCommands(parts: ControlParts): ReadonlyMap<string, ControlCommand> {
  return new Map<string, ControlCommand>([...judging(parts), ...disturbing(parts), ...settingUp(parts)]);
}

/** Reads the ledger and the requests, and registers what to judge them by. */
function judging({ report, log, record, whenWritten }: ControlParts): [string, ControlCommand][] {
  return [
    [
      'GET /effects',
      (query) => {
        const reference = query.get('reference');
        return answerOf(reference === null ? report.all() : report.ofPayment(paymentIdOf(reference)));
      },
    ],
    ['GET /early', () => answerOf(report.early())],
    ['GET /requests', (query) => answerOf({ total: log.total, requests: log.list(query.get('reference')) })],
    [
      'POST /expect',
      (_query, body) => {
        const times = readTimes(body);
        if (!times)
          return refusal(400, 'Give an object: payment id to an ISO time, or to epoch milliseconds.');
        record({ type: 'expected', times });
        return written(whenWritten, DONE);
      },
    ],
  ];
}

/** Faults, the listening socket, and the way back to the beginning. */
function disturbing({
  plan,
  provider,
  listen,
  reset,
  whenWritten,
}: ControlParts): [string, ControlCommand][] {
  return [
    ['POST /plan', (_query, body) => changePlan(plan, body) ?? DONE],
    [
      'POST /listen',
      async (_query, body) => {
        const open = isRecord(body) ? body['open'] : undefined;
        if (typeof open !== 'boolean') return refusal(400, 'Give {"open": true} or {"open": false}.');
        await listen(open);
        return DONE;
      },
    ],
    [
      'POST /refuse',
      (_query, body) => {
        const count = isRecord(body) ? body['connections'] : undefined;
        if (!Number.isSafeInteger(count) || (count as number) < 0) {
          return refusal(400, 'Give {"connections": n}: how many new connections are reset at once.');
        }
        provider.refuseConnections(count as number);
        return DONE;
      },
    ],
    [
      'POST /reset',
      () => {
        reset();
        return written(whenWritten, DONE);
      },
    ],
  ];
}

/** The virtual clock and the switches of accounts. */
function settingUp(parts: ControlParts): [string, ControlCommand][] {
  const { book, clock, accountNames, switchesOf, record, whenWritten } = parts;
  const time = (): ControlAnswer =>
    answerOf({ now: new Date(clock.now()).toISOString(), offset_ms: book.clockOffsetMs });
  return [
    ['GET /clock', time],
    [
      'POST /clock',
      (_query, body) => {
        const advanceMs = isRecord(body) ? body['advance_ms'] : undefined;
        if (!Number.isSafeInteger(advanceMs) || (advanceMs as number) < 0) {
          return refusal(400, 'Give {"advance_ms": n}: whole milliseconds, and never back.');
        }
        record({ type: 'advanced', offsetMs: book.clockOffsetMs + (advanceMs as number) });
        clock.moved();
        return written(whenWritten, time());
      },
    ],
    [
      'GET /accounts',
      () => answerOf(Object.fromEntries([...accountNames].map((name) => [name, switchesOf(name)]))),
    ],
    [
      'POST /accounts',
      (_query, body) => {
        const { account, ...given } = isRecord(body) ? body : { account: undefined };
        if (typeof account !== 'string' || !accountNames.has(account)) {
          return refusal(400, `Give an account and its switches. Accounts: ${[...accountNames].join(', ')}.`);
        }
        const read = readSwitches(given);
        if ('wrong' in read) return refusal(400, read.wrong);
        record({ type: 'switched', account, switches: read.switches });
        return written(whenWritten, answerOf(switchesOf(account)));
      },
    ],
  ];
}

function written(whenWritten: ControlParts['whenWritten'], answer: ControlAnswer): Promise<ControlAnswer> {
  return new Promise((resolve) => whenWritten(() => resolve(answer)));
}

function changePlan(plan: FaultPlan, body: unknown): ControlAnswer | null {
  try {
    plan.change(body);
    return null;
  } catch (error) {
    if (error instanceof PlanRefused) return refusal(400, error.message);
    throw error;
  }
}

function readTimes(body: unknown): Readonly<Record<string, number>> | null {
  if (!isRecord(body)) return null;
  const times: Record<string, number> = {};
  for (const [reference, time] of Object.entries(body)) {
    const at = typeof time === 'number' ? time : typeof time === 'string' ? Date.parse(time) : NaN;
    if (!Number.isFinite(at)) return null;
    times[paymentIdOf(reference)] = at;
  }
  return times;
}
