import { assertNever } from '../domain/assert.js';
import type { PaymentState } from '../domain/payment-state.js';
import type { ProviderStatus } from '../domain/provider-outcome.js';
import { REASONS_FOR_PEOPLE_ALONE } from './review-reasons.js';

/** Where news of the provider comes from. */
export type NewsSource = 'lookup' | 'webhook';

/**
 * What the provider's word about an object that is our instruction asks for.
 * move: by this rule. agrees: nothing is new. waits: our own call is still under way, or the word
 * decides nothing; come again. with_people: a case is open that only people close. contradicts: a
 * final state, or one in which nothing can have been sent, and the provider says otherwise.
 */
export type NewsStep =
  | {
      readonly kind: 'move';
      readonly rule: 'T8' | 'T9' | 'T14' | 'T17' | 'T20';
      readonly to: 'submitted' | 'succeeded' | 'failed';
    }
  | { readonly kind: 'agrees' | 'waits' | 'with_people' | 'contradicts' };

const move = (rule: 'T8' | 'T9' | 'T14' | 'T17' | 'T20', to: 'submitted' | 'succeeded' | 'failed'): NewsStep => ({
  kind: 'move',
  rule,
  to,
}); // prettier-ignore
const AGREES: NewsStep = { kind: 'agrees' };
const WAITS: NewsStep = { kind: 'waits' };
const CONTRADICTS: NewsStep = { kind: 'contradicts' };

/**
 * The one table from a state and the provider's word to what follows (T8, T9, T14, T17, T20). It
 * never leads backwards: old news of an object that has gone on agrees. `inert` moves nothing,
 * since an object of two phases that was not released is no payment.
 * @param isCurrent true for a lookup that began when the payment was in this state already: it says
 * how things stand now. An event may be old, and so may a lookup that another move overtook.
 * @param caseReason of the open review case; null: none is open.
 */
export function stepFor(
  state: PaymentState,
  status: ProviderStatus,
  isCurrent: boolean,
  caseReason: string | null,
): NewsStep {
  switch (state) {
    case 'scheduled':
    case 'held':
    case 'cancelled':
    case 'expired':
      return status === 'inert' ? AGREES : CONTRADICTS;
    case 'submitting':
      if (status === 'pending') return move('T8', 'submitted');
      // A refusal is the call's own to tell: an earlier attempt may still be under way.
      return status === 'succeeded' ? move('T9', 'succeeded') : WAITS;
    case 'unknown':
      if (status === 'inert') return WAITS;
      return move('T14', status === 'pending' ? 'submitted' : status);
    case 'submitted':
      if (status === 'inert' || status === 'pending') return AGREES;
      return move('T17', status);
    case 'needs_review':
      if (caseReason !== null && REASONS_FOR_PEOPLE_ALONE.includes(caseReason))
        return { kind: 'with_people' };
      return status === 'succeeded' || status === 'failed' ? move('T20', status) : AGREES;
    case 'succeeded':
      return status === 'failed' ? CONTRADICTS : AGREES;
    case 'failed':
      // A failed object was pending once, and news of then may come only now.
      if (status === 'pending') return isCurrent ? CONTRADICTS : AGREES;
      return status === 'succeeded' ? CONTRADICTS : AGREES;
    case 'returned':
      return AGREES;
    default:
      return assertNever(state);
  }
}
