import type { StripeMovement } from './stripe.object.js';
import { AUTHENTICATION_REQUIRED, asksForCustomer, cardRefusal } from './stripe.refusals.js';
import { ambiguous } from './stripe.verdict.js';
import type { CallKind, Expected, Verdict } from './stripe.verdict.js';

/** An object in Stripe's form: is it ours, and what became of it? */
export function judgeMovement(movement: StripeMovement, expected: Expected, call: CallKind): Verdict {
  // Another mode is another world: nothing in it says anything about this payment.
  if (movement.livemode !== expected.livemode) return ambiguous('other_mode');
  const verdict = judgeState(movement, call);
  const difference = differenceOf(movement, expected, verdict);
  return difference ? { class: 'key_mismatch', status: null, code: difference } : verdict;
}

function differenceOf(movement: StripeMovement, expected: Expected, verdict: Verdict): string | null {
  const { money, paymentId, generation, providerKey, providerRef, resource } = expected;
  if (providerRef !== null && movement.id !== providerRef) return 'other_object';
  if (movement.paymentId !== paymentId || movement.generation !== generation) return 'other_reference';
  if (movement.providerKey !== providerKey) return 'other_key';
  if (resource === 'transfer' && movement.transferGroup !== paymentId) return 'other_reference';
  if (money === null) return null;
  if (movement.amountMinor !== money.amountMinor) return 'other_amount';
  if (movement.currency !== money.currency) return 'other_currency';
  // Stripe takes the method off a PaymentIntent that was declined.
  const mayLackMethod = verdict.status === 'failed' && movement.destination === null;
  return movement.destination === money.destination || mayLackMethod ? null : 'other_destination';
}

/** What became of it, compared with no instruction. */
export function judgeState(movement: StripeMovement, call: CallKind): Verdict {
  if (movement.resource === 'transfer') {
    if (call !== 'move' && call !== 'read') return ambiguous('unexpected_status');
    return { class: 'accepted', status: 'succeeded', code: movement.state };
  }
  return judgeIntent(movement, call);
}

/** The life of a PaymentIntent (docs.stripe.com/payments/paymentintents/lifecycle). */
function judgeIntent({ state, isWhole, refusal }: StripeMovement, call: CallKind): Verdict {
  switch (state) {
    case 'requires_confirmation':
      if (call !== 'create' && call !== 'read') break;
      return { class: 'accepted', status: 'inert', code: state };
    case 'canceled':
      if (call === 'cancel') return { class: 'accepted', status: 'failed', code: 'cancelled' };
      if (call !== 'read') break;
      return { class: 'rejected', status: 'failed', code: 'cancelled' };
    case 'requires_payment_method':
      if ((call !== 'read' && call !== 'commit') || !refusal) break;
      return judgeDeclinedIntent(refusal);
    case 'processing':
      if (call === 'create' || call === 'cancel') break;
      return { class: 'accepted', status: 'pending', code: state };
    case 'succeeded':
      if (call === 'create' || call === 'cancel') break;
      if (!isWhole) return ambiguous('partly_received');
      return { class: 'accepted', status: 'succeeded', code: state };
    case 'requires_action':
    case 'requires_capture':
      return ambiguous(state);
    default:
      return ambiguous('unknown_status');
  }
  return ambiguous(call === 'create' ? 'committed_itself' : 'unexpected_status');
}

/**
 * The object itself says that its one confirmation failed and that its method is gone, whatever the
 * reason: no charge can come of it any more but by a new method under our secret key.
 */
function judgeDeclinedIntent({ code, declineCode }: NonNullable<StripeMovement['refusal']>): Verdict {
  if (asksForCustomer(code, declineCode))
    return { class: 'rejected', status: 'failed', code: AUTHENTICATION_REQUIRED };
  const refusal = cardRefusal(code, declineCode) ?? { class: 'rejected' as const, code: 'declined' };
  return { ...refusal, status: 'failed' };
}
