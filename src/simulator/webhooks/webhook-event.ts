import { randomBytes } from 'node:crypto';
import { payoutView } from '../payout-answer.js';
import { refundView } from '../stripe/stripe-view.js';
import type { LedgerRecord, Payout, PayoutForm, PayoutStatus } from '../payout-book.js';

/** One piece of news about a payout, as a client gets it. */
export interface ProviderEvent {
  readonly id: string;
  readonly object: 'event';
  readonly api_version: 'v1';
  readonly type: string;
  readonly account: string;
  /** Whole epoch seconds of the virtual clock. */
  readonly created: number;
  readonly livemode: false;
  readonly data: { readonly object: Readonly<Record<string, unknown>> };
  /** The key of the request that made the payout. */
  readonly request: { readonly idempotency_key: string | null };
}

type News = 'pending' | 'succeeded' | 'failed' | 'returned';

const TYPES: Readonly<Record<PayoutForm, Readonly<Record<News, string>>>> = Object.freeze({
  payout: {
    pending: 'payout.pending',
    succeeded: 'payout.succeeded',
    failed: 'payout.failed',
    returned: 'payout.returned',
  },
  transfer: {
    pending: 'transfer.created',
    succeeded: 'transfer.created',
    failed: 'transfer.updated',
    returned: 'transfer.reversed',
  },
  payment_intent: {
    pending: 'payment_intent.processing',
    succeeded: 'payment_intent.succeeded',
    failed: 'payment_intent.payment_failed',
    returned: 'refund.created',
  },
});

/** What a record of the ledger is news of; null: nothing that clients are told. */
export function newsOf(record: LedgerRecord): { readonly payoutId: string; readonly news: News } | null {
  if (record.type === 'executed') {
    const { payout, charge } = record;
    return payout && charge ? newsOfStatus(payout.id, payout.status) : null;
  }
  if (record.type === 'ended') return newsOfStatus(record.id, record.status);
  const isBack = record.type === 'returned' && record.returned.at !== null;
  return isBack ? { payoutId: record.id, news: 'returned' } : null;
}

function newsOfStatus(payoutId: string, status: PayoutStatus): ReturnType<typeof newsOf> {
  const told = status === 'pending' || status === 'succeeded' || status === 'failed';
  return told ? { payoutId, news: status } : null;
}

/** @param nowMs the virtual clock. Twice: two events with ids of their own. */
export function eventOf(payout: Payout, news: News, nowMs: number): ProviderEvent {
  // A PaymentIntent that was paid stays as it is; the refund is an object of its own.
  const isRefund = payout.form === 'payment_intent' && news === 'returned';
  return {
    id: newEventId(),
    object: 'event',
    api_version: 'v1',
    type: TYPES[payout.form][news],
    account: payout.account,
    created: Math.floor(nowMs / 1000),
    livemode: false,
    data: { object: isRefund ? refundView(payout) : payoutView(payout) },
    request: { idempotency_key: payout.key },
  };
}

export function newEventId(): string {
  return `evt_${randomBytes(12).toString('hex')}`;
}
