import type { Payout } from './payout-book.js';

/** What the provider says to one request. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** The stored first answer of the key, said again. */
  readonly replayed: boolean;
}

/** A payout as the protocol shows it. `amount` is whole minor units, `created` epoch seconds. */
export function payoutView(payout: Payout): Record<string, unknown> {
  return {
    id: payout.id,
    object: 'payout',
    livemode: false,
    amount: payout.amount,
    currency: payout.currency,
    destination: payout.destination,
    reference: payout.reference,
    description: payout.description,
    client_reference: payout.clientReference,
    status: payout.status,
    failure_code: payout.failureCode,
    created: Math.floor(payout.createdAt / 1000),
  };
}

export function payoutAnswer(payout: Payout): Answer {
  return { status: 200, body: JSON.stringify(payoutView(payout)), replayed: false };
}

/** One page holds all payouts of a reference up to this many; `has_more` says that there are others. */
const PAGE_SIZE = 100;

export function listAnswer(payouts: readonly Payout[]): Answer {
  const page = payouts.slice(0, PAGE_SIZE).map(payoutView);
  const list = { object: 'list', data: page, has_more: payouts.length > PAGE_SIZE };
  return { status: 200, body: JSON.stringify(list), replayed: false };
}

/** An error in the provider's form; `code` is what a client may rely on, `message` is for people. */
export function errorAnswer(status: number, code: string, message: string): Answer {
  const type = status >= 500 ? 'api_error' : status === 402 ? 'payout_error' : 'invalid_request_error';
  return { status, body: JSON.stringify({ error: { type, code, message } }), replayed: false };
}
