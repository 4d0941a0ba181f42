import { LookupBudget } from '../lanes/lookup-budget.js';
import type { Database } from '../persistence/database.js';
import { monotonicMs } from '../platform/clock.js';
import { Repeating } from '../platform/repeating.js';
import { readInquiryOutlook, takeDueInquiries, type InquiryOutlook } from './due-inquiries.store.js';
import type { InquireService } from './inquire.service.js';
import type { InquiryNotes } from './inquiry-notes.js';
import type { OpenOutcome } from './open-outcome.store.js';
import type { SubmissionEvents } from './submission-events.js';
import type { WorkerLease } from './worker-lease.js';

/** What becomes due meanwhile is at least 5 s away, or comes from a sweep that has waited itself. */
const LOOK_MS = 1_000;
/** Rigs divide the ladder and this, down to here. */
const SHORTEST_LOOK_MS = 20;
/** Something is due, and no lane has room or the rows are held. */
const BUSY_MS = 100;
/** Above an inquiry with all the lookups of a proof: 25 s and two rounds of 11 s. */
const CLAIM_MS = 60_000;
/** After a fault of storage, and no sooner than the ladder's first step. */
const AGAIN_MS = 5_000;

export interface DueInquiriesParts {
  readonly database: Database;
  readonly lease: WorkerLease;
  readonly inquiry: Pick<InquireService, 'inquireTaken'>;
  readonly notes: InquiryNotes;
  readonly events: Pick<SubmissionEvents, 'fault'>;
  readonly ladderDivisor: number;
}

/**
 * Asks about every payment whose outcome is open when its inquiry is due: a loop in every worker; a payment
 * is taken by one. It needs Postgres and the provider alone, so it goes on while Temporal is away.
 */
export class DueInquiries {
  private readonly loop: Repeating;
  private readonly budget = new LookupBudget();
  /** Inquiries under way, by lane: a provider that hangs holds only its own. */
  private readonly underWay = new Map<string, Set<Promise<void>>>();

  constructor(private readonly parts: DueInquiriesParts) {
    this.loop = new Repeating({
      step: () => this.step(),
      everyMs: Math.max(SHORTEST_LOOK_MS, LOOK_MS / parts.ladderDivisor),
      onFault: (error) => parts.events.fault('inquire', error),
    });
  }

  /** Begins to ask. Twice: nothing. */
  start(): void {
    this.loop.start();
  }

  /** Takes nothing new and waits for what is under way. Twice: nothing. */
  async stop(): Promise<void> {
    await this.loop.stop();
    await Promise.all([...this.underWay.values()].flatMap((lane) => [...lane]));
  }

  /** @returns ms until the next look; undefined: the usual time. */
  private async step(): Promise<number | undefined> {
    const { database, lease, ladderDivisor } = this.parts;
    if (!lease.isHeldBy(lease.id)) return undefined;
    const outlook = await readInquiryOutlook(database);
    const longestMs = Math.max(SHORTEST_LOOK_MS, LOOK_MS / ladderDivisor);
    if (outlook.dueInMs === null || outlook.dueInMs > longestMs) return longestMs;
    if (outlook.dueInMs > 0) return Math.max(1, outlook.dueInMs);
    const places = this.places(outlook);
    if (places.length === 0) return BUSY_MS;
    const taken = await takeDueInquiries(database, lease.id, places, CLAIM_MS);
    for (const payment of taken) this.ask(payment);
    return taken.length > 0 ? SHORTEST_LOOK_MS : BUSY_MS;
  }

  private places({ lanes, workers }: InquiryOutlook): { lane: string; places: number }[] {
    const now = monotonicMs();
    return lanes.flatMap(({ lane, rate, cap }) => {
      const free = cap - (this.underWay.get(lane)?.size ?? 0);
      const places = Math.min(free, this.budget.available(lane, { ratePerSecond: rate, workers }, now));
      return places > 0 ? [{ lane, places }] : [];
    });
  }

  private ask(payment: OpenOutcome): void {
    const own = this.underWay.get(payment.lane) ?? new Set();
    this.underWay.set(payment.lane, own);
    this.budget.spend(payment.lane);
    const done: Promise<void> = this.one(payment).finally(() => own.delete(done));
    own.add(done);
  }

  /** Never throws: what could not be done now is due again, at the latest when its claim ends. */
  private async one(payment: OpenOutcome): Promise<void> {
    const { inquiry, notes, events } = this.parts;
    try {
      await inquiry.inquireTaken(payment);
    } catch (error) {
      events.fault('inquire', error);
      await notes.plan(payment, AGAIN_MS).catch((again: unknown) => events.fault('inquire', again));
    }
  }
}
