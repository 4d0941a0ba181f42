import type { LedgerRecord, Payout, PayoutBook, PendingEnd } from './payout-book.js';
import type { VirtualClock } from './virtual-clock.js';

/** What becomes of a payout after its request: pending ones end, paid ones may come back. */
export class PayoutEnds {
  /** Lookups that saw a pending payout, while its end waits for a number of them. */
  private lookups = new Map<string, number>();

  constructor(
    private readonly book: PayoutBook,
    private readonly record: (record: LedgerRecord) => void,
    private readonly clock: Pick<VirtualClock, 'now' | 'at'>,
  ) {}

  /** Sees to it that the payout ends or comes back at its time, also when nobody looks at it. */
  watch(payout: Payout): void {
    const dueAt = nextChangeOf(payout);
    if (dueAt === null) return;
    this.clock.at(payout.id, dueAt, () => this.watch(this.current(this.book.required(payout.id))));
  }

  /** The payout as it is now: one whose pending time is over has ended, one due to return has. */
  current(payout: Payout): Payout {
    const now = this.clock.now();
    let found = payout;
    const endsAt = found.end?.atMs ?? null;
    if (found.end && endsAt !== null && now >= endsAt) found = this.end(found, found.end);
    const { returned } = found;
    if (returned?.at === null && now >= returned.dueAt && found.status === 'succeeded') {
      this.record({ type: 'returned', id: found.id, returned: { ...returned, at: returned.dueAt } });
      found = this.book.required(found.id);
    }
    return found;
  }

  /** The payout as a lookup sees it, which counts as one. */
  lookedAt(payout: Payout): Payout {
    const now = this.current(payout);
    const limit = now.end?.afterLookups ?? null;
    if (!now.end || limit === null) return now;
    const count = this.lookups.get(now.id) ?? 0;
    if (count >= limit) return this.end(now, now.end);
    this.lookups.set(now.id, count + 1);
    return now;
  }

  /** Forgets what is not in the ledger: the counts of lookups. */
  clear(): void {
    this.lookups.clear();
  }

  private end(payout: Payout, { status, failureCode }: PendingEnd): Payout {
    this.lookups.delete(payout.id);
    this.record({ type: 'ended', id: payout.id, status, failureCode });
    return this.book.required(payout.id);
  }
}

/** Virtual time of the next change by time alone; null: there is none, or lookups decide. */
function nextChangeOf({ status, end, returned }: Payout): number | null {
  if (end) return end.atMs;
  return status === 'succeeded' && returned?.at === null ? returned.dueAt : null;
}
