import type { Database } from '../persistence/database.js';
import type { FollowUpService, FollowedUp } from './follow-up.service.js';
import { rejudgeLine } from './follow-up.store.js';
import { judgeLine } from './judge-line.js';
import { unexpectedLines, wakeOverdue } from './rejudge.store.js';
import { BOOKING_LAG_MS, readReference } from './settlement-line.js';
import { countBuckets, knowLines } from './settlement-row.store.js';
import { paymentOf } from './store-portion.js';

/** Lines judged again in one statement. */
const LINES_AT_ONCE = 500;
/** Portions of one run: past that the next hour goes on. */
const PORTIONS = 200;
/** Inquiries are asked when they are due; what is overdue by this much may have lost its workflow too. */
const OVERDUE_MS = 10 * 60_000;
const MOST_WOKEN = 500;

/** What one scheduled run did. Numbers only: they are shown in clear. */
export interface Reconciled extends FollowedUp {
  /** Unexpected lines whose payment is known by now. */
  readonly rejudged: number;
}

/** The scheduled part of reconciliation: what waits, what became clear, what nobody asked after. */
export class ReconciliationService {
  constructor(
    private readonly database: Database,
    private readonly followUps: FollowUpService,
  ) {}

  /**
   * Judges unexpected lines again, whose payment may be known by now (a restored copy that clients
   * filled up again), then does what stored lines wait for.
   * @throws faults of storage: call again. Twice: the second finds nothing to do.
   */
  async followUpSettlement(): Promise<Reconciled> {
    const rejudged = await this.rejudge();
    return { rejudged, ...(await this.followUps.run()) };
  }

  /**
   * Wakes open outcomes whose inquiry is overdue. @returns how many, at most 500.
   * @throws faults of storage: call again. Twice: those that wait to be woken are left out.
   */
  async wakeOverdue(): Promise<{ readonly woken: number }> {
    return { woken: await wakeOverdue(this.database, OVERDUE_MS, MOST_WOKEN) };
  }

  private async rejudge(): Promise<number> {
    let after = { provider: '', txnId: '' };
    let rejudged = 0;
    for (let portion = 0; portion < PORTIONS; portion++) {
      const lines = await unexpectedLines(this.database, after, LINES_AT_ONCE);
      for (const [provider, own] of Map.groupBy(lines, (line) => line.provider)) {
        rejudged += await this.rejudgeOf(provider, own);
      }
      const last = lines.at(-1);
      if (last === undefined || lines.length < LINES_AT_ONCE) break;
      after = last;
    }
    return rejudged;
  }

  private async rejudgeOf(
    provider: string,
    stored: Awaited<ReturnType<typeof unexpectedLines>>,
  ): Promise<number> {
    const lines = stored.map((line) => ({ ...line, ...readReference(line.reference) }));
    return this.database.transaction(async (tx) => {
      const known = await knowLines(tx, provider, lines, true);
      const counts = new Map<string, number>();
      let rejudged = 0;
      for (const [i, line] of lines.entries()) {
        const knowledge = known[i];
        if (knowledge?.paymentId == null) continue;
        const payment = paymentOf(knowledge, new Set());
        const judgement = judgeLine(
          line,
          { provider, bySource: knowledge.bySource, payment },
          BOOKING_LAG_MS,
        );
        await rejudgeLine(tx, { provider, txnId: line.txnId }, judgement);
        counts.set(judgement.bucket, (counts.get(judgement.bucket) ?? 0) + 1);
        rejudged++;
      }
      await countBuckets(tx, provider, counts);
      return rejudged;
    });
  }
}
