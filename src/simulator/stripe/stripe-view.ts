import type { Payout } from '../payout-book.js';

/** A transfer as Stripe shows it. It has no status: it is there, and later perhaps reversed. */
export function transferView(payout: Payout): Record<string, unknown> {
  const { returned } = payout;
  const back = returned?.at == null ? null : returned;
  const reversal = back && {
    id: back.id.replace(/^ret_/, 'trr_'),
    object: 'transfer_reversal',
    amount: back.amount,
    currency: payout.currency.toLowerCase(),
    created: Math.floor((back.at ?? 0) / 1000),
    transfer: payout.id,
  };
  return {
    id: payout.id,
    object: 'transfer',
    amount: payout.amount,
    amount_reversed: back?.amount ?? 0,
    created: Math.floor(payout.createdAt / 1000),
    currency: payout.currency.toLowerCase(),
    description: payout.description,
    destination: payout.destination,
    livemode: false,
    metadata: payout.details?.['metadata'] ?? {},
    reversals: { object: 'list', data: reversal ? [reversal] : [], has_more: false },
    reversed: back?.amount === payout.amount,
    source_type: 'card',
    transfer_group: payout.details?.['transfer_group'] ?? null,
  };
}

/** A PaymentIntent as Stripe shows it. One that was declined has lost its payment method. */
export function intentView(payout: Payout): Record<string, unknown> {
  const { details, status } = payout;
  const method = details?.['payment_method'] ?? null;
  return {
    id: payout.id,
    object: 'payment_intent',
    amount: payout.amount,
    amount_received: status === 'succeeded' ? payout.amount : 0,
    canceled_at: status === 'cancelled' ? Math.floor(payout.createdAt / 1000) : null,
    confirmation_method: details?.['confirmation_method'] ?? 'automatic',
    created: Math.floor(payout.createdAt / 1000),
    currency: payout.currency.toLowerCase(),
    customer: details?.['customer'] ?? null,
    description: payout.description,
    last_payment_error: status === 'failed' ? cardError(payout.failureCode ?? 'card_declined') : null,
    livemode: false,
    metadata: details?.['metadata'] ?? {},
    payment_method: status === 'failed' ? null : method,
    payment_method_types: Object.values(details?.['payment_method_types'] ?? { 0: 'card' }),
    status: intentStatus(payout, method !== null),
  };
}

function intentStatus({ status }: Payout, hasMethod: boolean): string {
  switch (status) {
    case 'requires_commit':
      return hasMethod ? 'requires_confirmation' : 'requires_payment_method';
    case 'pending':
      return 'processing';
    case 'succeeded':
      return 'succeeded';
    case 'failed':
      return 'requires_payment_method';
    case 'cancelled':
      return 'canceled';
  }
}

/** How Stripe says that a card was refused; the reason of the issuer is its `decline_code`. */
export function cardError(code: string): Record<string, unknown> {
  return {
    type: 'card_error',
    code: 'card_declined',
    decline_code: code === 'card_declined' ? 'generic_decline' : code,
    message: 'Your card was declined.',
  };
}

/** The refund of a PaymentIntent whose money has come back. */
export function refundView({ id, currency, details, returned }: Payout): Record<string, unknown> {
  return {
    id: returned?.id.replace(/^ret_/, 're_') ?? null,
    object: 'refund',
    amount: returned?.amount ?? 0,
    created: Math.floor((returned?.at ?? 0) / 1000),
    currency: currency.toLowerCase(),
    metadata: details?.['metadata'] ?? {},
    payment_intent: id,
    reason: null,
    status: 'succeeded',
  };
}
