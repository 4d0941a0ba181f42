import { ControlPort, refusal } from './control-port.js';
import type { ControlAnswer, ControlCommand } from './control-port.js';
import { PlanRefused, isRecord } from './fault.js';
import { FaultPlan } from './fault-plan.js';
import { LedgerFile } from './ledger-file.js';
import { LedgerReport } from './ledger-report.js';
import { PayoutBook, paymentIdOf } from './payout-book.js';
import type { LedgerRecord } from './payout-book.js';
import { PayoutProtocol } from './payout-protocol.js';
import { ProviderPort } from './provider-port.js';
import { RequestLog } from './request-log.js';
import type { SimulatorSettings } from './settings.js';
import { createWallClock } from './wall-clock.js';

/** Requests that `/requests` still knows. */
const REQUESTS_KEPT = 200_000;

export interface RunningSimulator {
  readonly port: number;
  readonly controlPort: number;
  /** Writes what waits and closes both ports; unanswered requests are cut. Once. */
  stop(): void;
}

/**
 * Starts the provider simulator: reads its ledger, then opens both ports.
 * @throws Error when a port is taken or the ledger is damaged.
 */
export async function startSimulator(settings: SimulatorSettings): Promise<RunningSimulator> {
  const now = createWallClock();
  const { file, records } = LedgerFile.open(settings.ledgerFile);
  const book = new PayoutBook();
  for (const record of records) book.apply(record as LedgerRecord);
  const record = (entry: LedgerRecord): void => {
    book.apply(entry);
    file.append(entry);
  };
  const protocol = new PayoutProtocol(book, record, now, settings.keyLifeMs);
  const plan = new FaultPlan();
  const log = new RequestLog(REQUESTS_KEPT);
  const whenWritten = (callback: () => void): void => file.whenWritten(callback);
  const provider = new ProviderPort({
    accounts: settings.accounts,
    book,
    protocol,
    plan,
    log,
    whenWritten,
    now,
  });
  const port = await provider.open(settings.host, settings.port);

  const reset = (): void => {
    provider.dropUnfinished();
    protocol.clear();
    plan.clear();
    log.clear();
    record({ type: 'reset' });
  };
  const report = new LedgerReport(book, (payout) => protocol.current(payout));
  const listen = async (open: boolean): Promise<void> => {
    if (!open) provider.close();
    else if (!provider.isOpen) await provider.open(settings.host, port);
  };
  const commands = controlCommands({ report, plan, log, provider, record, whenWritten, reset, listen });
  const control = new ControlPort(settings.controlToken, commands);
  const controlPort = await control.open(settings.host, settings.controlPort);
  return {
    port,
    controlPort,
    stop: () => {
      provider.dropUnfinished();
      provider.close();
      control.close();
      file.close();
    },
  };
}

interface ControlParts {
  readonly report: LedgerReport;
  readonly plan: FaultPlan;
  readonly log: RequestLog;
  readonly provider: ProviderPort;
  readonly record: (record: LedgerRecord) => void;
  readonly whenWritten: (callback: () => void) => void;
  readonly reset: () => void;
  readonly listen: (open: boolean) => Promise<void>;
}

function controlCommands(parts: ControlParts): ReadonlyMap<string, ControlCommand> {
  const { report, plan, log, provider, record, whenWritten, reset, listen } = parts;
  const done: ControlAnswer = { status: 200, content: { done: true } };
  const written = (): Promise<ControlAnswer> => new Promise((resolve) => whenWritten(() => resolve(done)));
  return new Map<string, ControlCommand>([
    [
      'GET /effects',
      (query) => {
        const reference = query.get('reference');
        return {
          status: 200,
          content: reference === null ? report.all() : report.ofPayment(paymentIdOf(reference)),
        };
      },
    ],
    ['GET /early', () => ({ status: 200, content: report.early() })],
    [
      'GET /requests',
      (query) => ({ status: 200, content: { total: log.total, requests: log.list(query.get('reference')) } }),
    ],
    ['POST /plan', (_query, body) => changePlan(plan, body) ?? done],
    [
      'POST /expect',
      (_query, body) => {
        const times = readTimes(body);
        if (!times)
          return refusal(400, 'Give an object: payment id to an ISO time, or to epoch milliseconds.');
        record({ type: 'expected', times });
        return written();
      },
    ],
    [
      'POST /listen',
      async (_query, body) => {
        const open = isRecord(body) ? body['open'] : undefined;
        if (typeof open !== 'boolean') return refusal(400, 'Give {"open": true} or {"open": false}.');
        await listen(open);
        return done;
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
        return done;
      },
    ],
    [
      'POST /reset',
      () => {
        reset();
        return written();
      },
    ],
  ]);
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
