import { notFoundAnswer, listAnswer, payoutAnswer } from './payout-answer.js';
import type { Answer } from './payout-answer.js';
import type { Payout, PayoutBook, PayoutForm } from './payout-book.js';
import type { PayoutEnds } from './payout-ends.js';

/** What a list asks for; every member that is set must hold. */
export interface ListQuery {
  readonly form: PayoutForm;
  readonly reference: string | null;
  /** Members of the details that must have these texts, such as a transfer group. */
  readonly details: Readonly<Record<string, string>>;
  /** Whole epoch seconds of the virtual clock, both inclusive, as the objects show them. */
  readonly createdFrom: number | null;
  readonly createdTo: number | null;
  /** Objects that come after this one in the list. */
  readonly startingAfter: string | null;
  /** Objects on a page. */
  readonly limit: number;
  readonly newestFirst: boolean;
}

/** One lookup: whose, and how far behind the truth it is. */
export interface Look {
  readonly account: string;
  /** It sees the account as it was so many milliseconds of the virtual clock ago. */
  readonly lagMs: number;
}

/** The reading half of the provider. */
export class PayoutLookups {
  constructor(
    private readonly book: PayoutBook,
    private readonly ends: PayoutEnds,
    private readonly now: () => number,
  ) {}

  read(look: Look, form: PayoutForm, id: string): Answer {
    const payout = this.book.payout(look.account, id);
    const seen = payout?.form === form ? this.seen(payout, look.lagMs) : null;
    return seen ? payoutAnswer(seen) : notFoundAnswer();
  }

  /** @param hidden payouts that a fault keeps out of a scan. */
  list(look: Look, query: ListQuery, hidden: (payout: Payout) => boolean): Answer {
    const candidates =
      query.reference === null
        ? [...this.book.payoutsIn(look.account)]
        : [...this.book.payoutsOf(look.account, query.reference)];
    let matching = candidates.filter((payout) => matches(payout, query) && !hidden(payout));
    if (query.newestFirst) matching.reverse();
    if (query.startingAfter !== null) {
      const at = matching.findIndex(({ id }) => id === query.startingAfter);
      matching = at < 0 ? [] : matching.slice(at + 1);
    }
    const page: Payout[] = [];
    let more = false;
    for (const payout of matching) {
      more = page.length === query.limit;
      if (more) break;
      const seen = this.seen(payout, look.lagMs);
      if (seen) page.push(seen);
    }
    return listAnswer(page, more);
  }

  /** Lagging: nothing of a payout younger than the lag, and an inert one where it was moved since. */
  private seen(payout: Payout, lagMs: number): Payout | null {
    const found = this.ends.lookedAt(payout);
    if (lagMs === 0) return found;
    const horizon = this.now() - lagMs;
    if (found.createdAt > horizon) return null;
    const movedSince = found.movedAt !== null && found.movedAt > horizon;
    return movedSince ? { ...found, status: 'requires_commit', failureCode: null, returned: null } : found;
  }
}

function matches(payout: Payout, query: ListQuery): boolean {
  const created = Math.floor(payout.createdAt / 1000);
  if (payout.form !== query.form) return false;
  if (query.createdFrom !== null && created < query.createdFrom) return false;
  if (query.createdTo !== null && created > query.createdTo) return false;
  return Object.entries(query.details).every(([name, text]) => payout.details?.[name] === text);
}
