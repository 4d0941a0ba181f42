import type { Payout } from './payout-book.js';
import { intentView, transferView } from './stripe/stripe-view.js';

/** What the provider says to one request. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** The stored first answer of the key, said again. */
  readonly replayed: boolean;
}

/** A payout as the protocol shows it. `amount` is whole minor units, `created` epoch seconds. */
export function payoutView(payout: Payout): Record<string, unknown> {
  if (payout.form === 'transfer') return transferView(payout);
  if (payout.form === 'payment_intent') return intentView(payout);
  const { returned } = payout;
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
    // The status stays `succeeded`: it did succeed, and then the money came back.
    returned:
      returned?.at == null
        ? null
        : {
            id: returned.id,
            code: returned.code,
            amount: returned.amount,
            created: Math.floor(returned.at / 1000),
          },
  };
}

export function payoutAnswer(payout: Payout): Answer {
  return { status: 200, body: JSON.stringify(payoutView(payout)), replayed: false };
}

/** @param more the list goes on after these. */
export function listAnswer(payouts: readonly Payout[], more = false): Answer {
  const list = { object: 'list', data: payouts.map(payoutView), has_more: more };
  return { status: 200, body: JSON.stringify(list), replayed: false };
}

/** An error in the provider's form; `code` is what a client may rely on, `message` is for people. */
export function errorAnswer(status: number, code: string, message: string): Answer {
  const type = status >= 500 ? 'api_error' : status === 402 ? 'payout_error' : 'invalid_request_error';
  return { status, body: JSON.stringify({ error: { type, code, message } }), replayed: false };
}

export function notFoundAnswer(): Answer {
  return errorAnswer(404, 'payout_not_found', 'No such payout.');
}
