import { webhookProcessedTotal } from '../../metrics/metrics.js';
import type { Sql } from '../../persistence/database.js';
import { pause } from '../../platform/clock.js';
import type { PaymentProvider } from '../../providers/payment-provider.js';
import type { EventVerdict } from './process-event.service.js';
import { finishEvent, takeEvents, tryEventAgain, type TakenEvent } from './webhook-inbox.store.js';

/** Events of one provider that one worker processes at a time: they share its lane's room for lookups. */
const AT_ONCE = 8;
/** Each provider asks so often in each worker: an event may wait for a moment, an idle database should not. */
const POLL_MS = 500;
/** Above a lookup's 25 s and a transaction's 8 s: an event that is still worked on is not taken again. */
const TAKEN_FOR_MS = 60_000;
const AGAIN_FIRST_MS = 1_000;
const AGAIN_LONGEST_MS = 3_600_000;

export interface InboxParts {
  readonly sql: Sql;
  /** Their events are processed; those of other names wait, and grow old in the gauge. */
  readonly providers: readonly PaymentProvider[];
  readonly process: (provider: PaymentProvider, event: TakenEvent) => Promise<EventVerdict>;
  readonly fault: (operation: string, error: unknown) => void;
  readonly pollMs?: number;
}

/** How long an event waits after so many tries: 1 s doubling to an hour. */
export function waitAfterTries(tries: number): number {
  return Math.min(AGAIN_LONGEST_MS, AGAIN_FIRST_MS * 2 ** Math.min(30, Math.max(0, tries - 1)));
}

/**
 * Processes stored events, at least once, in every worker. Each provider has places of its own, and an
 * event that fails is given back for later: neither a poisoned event nor a slow provider delays others.
 */
export class WebhookInbox {
  private stopped = false;
  private readonly stopping: Promise<void>;
  private tellStopping: () => void = () => undefined;
  private loops: Promise<unknown> | null = null;

  constructor(private readonly parts: InboxParts) {
    this.stopping = new Promise((resolve) => (this.tellStopping = resolve));
  }

  /** Begins to take events. Twice: nothing. */
  start(): void {
    this.loops ??= Promise.all(this.parts.providers.map((provider) => this.run(provider)));
  }

  /** Takes nothing new and waits for what is under way. Twice: nothing. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.tellStopping();
    await this.loops;
  }

  private async run(provider: PaymentProvider): Promise<void> {
    const running = new Set<Promise<void>>();
    while (!this.stopped) {
      const free = AT_ONCE - running.size;
      const taken = await this.take(provider.name, free);
      for (const event of taken) {
        const done: Promise<void> = this.one(provider, event).finally(() => running.delete(done));
        running.add(done);
      }
      // All places are taken: the next one that comes free may find more at once.
      if (taken.length === free) await Promise.race([...running, this.stopping]);
      else await Promise.race([pause(this.parts.pollMs ?? POLL_MS), this.stopping]);
    }
    await Promise.all(running);
  }

  private async take(provider: string, limit: number): Promise<readonly TakenEvent[]> {
    try {
      return await takeEvents(this.parts.sql, provider, limit, TAKEN_FOR_MS);
    } catch (error) {
      this.parts.fault('webhook-take', error);
      return [];
    }
  }

  /** One try. Never throws: what cannot be written down now is taken again when its time is over. */
  private async one(provider: PaymentProvider, event: TakenEvent): Promise<void> {
    const { sql, process, fault } = this.parts;
    let result: EventVerdict['result'] | 'fault';
    let isDone = false;
    try {
      const verdict = await process(provider, event);
      isDone = verdict.kind === 'done';
      result = verdict.result;
    } catch (error) {
      fault('webhook-process', error);
      result = 'fault';
    }
    webhookProcessedTotal.add({ provider: provider.name, result });
    try {
      if (isDone) await finishEvent(sql, event.id, result);
      else await tryEventAgain(sql, event.id, result, waitAfterTries(event.tries));
    } catch (error) {
      fault('webhook-finish', error);
    }
  }
}
