import { contradictionsTotal, transitionsTotal } from '../metrics/metrics.js';
import type { OutboxNudge } from '../outbox/outbox-nudge.js';
import type { Database, Sql } from '../persistence/database.js';
import { move } from './gate.js';
import {
  fileReturn,
  findReturn,
  insertReturn,
  lockForReturn,
  returnedSoFar,
  type ReturnHead,
  type ReturnRow,
} from './payment-returns.store.js';
import { openCase } from './review-moves.js';

/** Money that came back, as the provider told it. */
export interface RecordReturn extends ReturnRow {
  /** Minor units, above zero. */
  readonly amountMinor: bigint;
  /** The provider's own name for the return: it is counted once. */
  readonly returnId: string;
}

export type ReturnResult =
  /** T21: the payment is `returned` now. */
  | { readonly kind: 'returned' }
  /** A further return of a payment that is `returned`: recorded, nothing moved. */
  | { readonly kind: 'added' }
  /** This very return is recorded already. */
  | { readonly kind: 'repeated' }
  /** Its success is not recorded yet: nothing was stored but the evidence. Come back with it later. */
  | { readonly kind: 'too_early'; readonly state: string }
  /** It cannot be true beside what is recorded: people have a case, no state was rewritten. */
  | { readonly kind: 'contradiction' }
  | { readonly kind: 'missing' };

type Verdict = Exclude<ReturnResult, { kind: 'missing' }>;

/** Records money that came back after a success (T21). */
export class PaymentReturns {
  constructor(
    private readonly db: Database,
    private readonly outbox: OutboxNudge,
  ) {}

  /**
   * One return: its row, its evidence and the move in one transaction. The name of a return is unique
   * at its provider, and all returns of a payment together are at most what was paid; more, another
   * currency, or a return of what never succeeded is a contradiction: evidence and a case.
   * @throws StorageUnavailable; OutcomeUnknown: call again. Twice: `repeated`.
   */
  async recordReturn(news: RecordReturn): Promise<ReturnResult> {
    const result = await this.db.transaction(async (tx): Promise<ReturnResult> => {
      const head = await lockForReturn(tx, news.paymentId);
      if (!head) return { kind: 'missing' };
      return judge(tx, head, news);
    });
    if (result.kind === 'returned') {
      transitionsTotal.add({ from: 'succeeded', to: 'returned', cause: 'record-return' });
      this.outbox.nudge();
    }
    if (result.kind === 'contradiction') {
      contradictionsTotal.add({ source: news.source });
    }
    return result;
  }
}

async function judge(tx: Sql, head: ReturnHead, news: RecordReturn): Promise<Verdict> {
  const known = await findReturn(tx, head.provider, news.returnId);
  if (known) {
    const isSame =
      known.payment_id === news.paymentId &&
      known.amount === news.amountMinor &&
      known.currency === news.currency;
    return isSame ? { kind: 'repeated' } : contradict(tx, news);
  }
  switch (head.state) {
    case 'submitting':
    case 'submitted':
    case 'unknown':
    case 'needs_review':
      await fileReturn(tx, news);
      return { kind: 'too_early', state: head.state };
    case 'scheduled':
    case 'held':
    case 'cancelled':
    case 'expired':
    case 'failed':
      return contradict(tx, news);
    case 'succeeded':
    case 'returned':
      return record(tx, head, news);
  }
}

async function record(tx: Sql, head: ReturnHead, news: RecordReturn): Promise<Verdict> {
  const total = (await returnedSoFar(tx, news.paymentId)) + news.amountMinor;
  if (news.amountMinor <= 0n || news.currency !== head.currency || total > head.amount) {
    return contradict(tx, news);
  }
  await fileReturn(tx, news);
  // Another payment of the provider took this name between our look and now.
  if (!(await insertReturn(tx, news))) return contradict(tx, news);
  if (head.state === 'returned') return { kind: 'added' };
  const moved = await move(tx, {
    rule: 'T21',
    tenant: null,
    paymentId: news.paymentId,
    actor: news.source,
    detail: { code: news.code, amount_minor: news.amountMinor.toString() },
    announce: null,
  });
  if (moved.kind !== 'moved') throw new Error(`payment ${news.paymentId} is locked, yet T21 did not move it`);
  return { kind: 'returned' };
}

async function contradict(tx: Sql, news: RecordReturn): Promise<Verdict> {
  await fileReturn(tx, news);
  await openCase(tx, { paymentId: news.paymentId, reason: 'contradiction' });
  return { kind: 'contradiction' };
}
