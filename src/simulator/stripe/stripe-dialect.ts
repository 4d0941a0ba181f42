import { isRecord } from '../fault.js';
import type { Answer } from '../payout-answer.js';
import type { PayoutForm } from '../payout-book.js';
import { cardError } from './stripe-view.js';

/** What an error of the simulator is called at Stripe (docs.stripe.com/api/errors, /error-codes). */
interface StripeError {
  readonly status: number;
  readonly error: Readonly<Record<string, unknown>>;
}

/** Says an answer as Stripe would. Objects and lists are in Stripe's form already. */
export function stripeDialect(form: PayoutForm): (answer: Answer) => Answer {
  return (answer) => {
    const content: unknown = answer.body === '' ? null : JSON.parse(answer.body);
    const error = isRecord(content) && isRecord(content['error']) ? content['error'] : null;
    if (!error) return answer;
    const said = stripeError(form, answer.status, String(error['code']), String(error['message']));
    return { ...answer, status: said.status, body: JSON.stringify({ error: said.error }) };
  };
}

function stripeError(form: PayoutForm, status: number, code: string, message: string): StripeError {
  const invalid = (more: Readonly<Record<string, unknown>>, as = status): StripeError => ({
    status: as,
    error: { type: 'invalid_request_error', message, ...more },
  });
  switch (code) {
    case 'payout_not_found':
      return invalid({
        code: 'resource_missing',
        param: form === 'transfer' ? 'id' : 'intent',
        message: `No such ${form === 'transfer' ? 'transfer' : 'payment_intent'}.`,
      });
    case 'unknown_path':
      return invalid({ message: 'Unrecognized request URL.' });
    case 'invalid_api_key':
      return invalid({ message: 'Invalid API Key provided.' });
    case 'permission_denied':
      return invalid({ message: 'The provided key does not have access to this account.' });
    case 'rate_limited':
      return invalid({ code: 'rate_limit', message: 'Request rate limit exceeded.' });
    case 'idempotency_key_reused':
      return {
        status,
        error: {
          type: 'idempotency_error',
          message:
            'Keys for idempotent requests can only be used with the same parameters they were first used with.',
        },
      };
    case 'idempotency_key_in_use':
      return {
        status,
        error: {
          type: 'idempotency_error',
          code: 'idempotency_key_in_use',
          message: 'There is currently another in-progress request using this idempotency key.',
        },
      };
    case 'card_declined':
    case 'insufficient_funds':
      if (form === 'payment_intent') return { status, error: cardError(code) };
      // A transfer has no card: it is refused for the balance, or because the account may not.
      return invalid(
        { code: code === 'card_declined' ? 'transfers_not_allowed' : 'balance_insufficient' },
        400,
      );
    case 'internal_error':
      return { status, error: { type: 'api_error', message } };
    default:
      return invalid({ code });
  }
}
