import { USUAL_SWITCHES } from './account.js';
import type { AccountSwitches } from './account.js';
import { controlCommands } from './control-commands.js';
import { ControlPort } from './control-port.js';
import { FaultPlan } from './fault-plan.js';
import { LedgerFile } from './ledger-file.js';
import { LedgerReport } from './ledger-report.js';
import { PayoutBook } from './payout-book.js';
import type { LedgerRecord } from './payout-book.js';
import { PayoutEnds } from './payout-ends.js';
import { PayoutLookups } from './payout-lookups.js';
import { PayoutProtocol } from './payout-protocol.js';
import { ProviderPort } from './provider-port.js';
import { RequestLog } from './request-log.js';
import type { SimulatorSettings } from './settings.js';
import { settlementCommands } from './settlement/settlement-commands.js';
import { VirtualClock } from './virtual-clock.js';
import { createWallClock } from './wall-clock.js';
import { webhookCommands } from './webhooks/webhook-commands.js';
import type { WebhookEndpoint } from './webhooks/webhook-endpoint.js';
import { WebhookSender } from './webhooks/webhook-sender.js';

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
  for (const entry of records) book.apply(entry as LedgerRecord);
  const clock = new VirtualClock(now, () => book.clockOffsetMs);
  const record = (entry: LedgerRecord): void => {
    book.apply(entry);
    file.append(entry);
    if (entry.type === 'executed' && entry.payout) ends.watch(book.required(entry.payout.id));
    if (entry.type === 'ended') ends.watch(book.required(entry.id));
    webhooks.tell(entry);
  };
  const ends = new PayoutEnds(book, record, clock);
  const switchesOf = (account: string): AccountSwitches => ({
    ...USUAL_SWITCHES,
    keyLifeMs: settings.keyLifeMs,
    ...settings.switches.get(account),
    ...book.switchesOf(account),
  });
  const protocol = new PayoutProtocol(book, ends, record, clock.now, switchesOf);
  const lookups = new PayoutLookups(book, ends, clock.now);
  const plan = new FaultPlan(clock.now);
  const log = new RequestLog(REQUESTS_KEPT);
  const whenWritten = (callback: () => void): void => file.whenWritten(callback);
  const endpointOf = (account: string): WebhookEndpoint | null => {
    const set = book.endpointOf(account);
    return set === undefined ? (settings.webhooks.get(account) ?? null) : set;
  };
  const webhooks = new WebhookSender({
    book,
    plan,
    endpointOf,
    whenWritten,
    retryDelaysMs: settings.webhookRetryDelaysMs,
    now,
    virtualNow: clock.now,
  });
  const provider = new ProviderPort({
    accounts: settings.accounts,
    book,
    protocol,
    lookups,
    plan,
    log,
    switchesOf,
    whenWritten,
    beforeAnswer: (reference, callback) => webhooks.beforeAnswer(reference, callback),
    now,
    virtualNow: clock.now,
    kill: () => process.kill(process.pid, 'SIGKILL'),
  });
  for (const payout of book.allPayouts()) ends.watch(payout);
  const port = await provider.open(settings.host, settings.port);

  const reset = (): void => {
    provider.dropUnfinished();
    webhooks.clear();
    protocol.clear();
    ends.clear();
    clock.clear();
    plan.clear();
    log.clear();
    record({ type: 'reset' });
  };
  const listen = async (open: boolean): Promise<void> => {
    if (!open) provider.close();
    else if (!provider.isOpen) await provider.open(settings.host, port);
  };
  const accountNames = new Set([...settings.accounts.values()].map(({ account }) => account));
  const commands = controlCommands({
    book,
    report: new LedgerReport(book, (payout) => ends.current(payout)),
    plan,
    log,
    provider,
    clock,
    accountNames,
    switchesOf,
    record,
    whenWritten,
    reset,
    listen,
  });
  const more = [
    ...webhookCommands({ webhooks, endpointOf, accountNames, record, whenWritten }),
    ...settlementCommands(book, (payout) => ends.current(payout), accountNames),
  ];
  const control = new ControlPort(settings.controlToken, new Map([...commands, ...more]));
  const controlPort = await control.open(settings.host, settings.controlPort);
  return {
    port,
    controlPort,
    stop: () => {
      provider.dropUnfinished();
      provider.close();
      control.close();
      webhooks.clear();
      clock.clear();
      file.close();
    },
  };
}
