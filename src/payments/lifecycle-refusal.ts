import { assertNever } from '../domain/assert.js';
import { DomainError } from '../domain/domain-error.js';
import { isFinal, type PaymentState } from '../domain/payment-state.js';
import { shownOrNull } from './payment-view.js';
import type { PaymentRow } from './payment.store.js';

/** The commands of a client or operator on one payment, as named in their routes. */
export type Command = 'cancel' | 'reschedule' | 'hold' | 'release' | 'escalate';

/**
 * What a command means for a payment in a state that it does not move: the answer table, row by
 * row. `repeat`: done already, answered as the first time. `move`: the state allows it, so the
 * command lost for another reason and has to look again.
 */
export type Standing = 'move' | 'repeat' | DomainError;

type Head = Pick<PaymentRow, 'state' | 'version' | 'submission_started_at'>;

/** @param lastCauseWasRelease matters for `release` of a scheduled payment only. */
export function standing(command: Command, head: Head, lastCauseWasRelease: boolean): Standing {
  if (command === 'escalate') return escalateStanding(head);
  switch (head.state) {
    case 'scheduled':
      if (command !== 'release') return 'move';
      return lastCauseWasRelease ? 'repeat' : refusal('not_applicable', head);
    case 'held':
      if (command === 'hold') return 'repeat';
      // Rescheduling needs a release first: a held payment has no time that counts.
      return command === 'reschedule' ? refusal('not_applicable', head) : 'move';
    case 'submitting':
    case 'submitted':
    case 'unknown':
    case 'needs_review':
      return command === 'release' ? refusal('not_applicable', head) : submissionStarted(head);
    case 'cancelled':
    case 'expired':
      // Nothing was sent and nothing will be: that is what the caller of cancel wants to know.
      return command === 'cancel' ? 'repeat' : refusal('payment_final', head);
    case 'succeeded':
    case 'failed':
    case 'returned':
      return refusal('payment_final', head);
    default:
      return assertNever(head.state);
  }
}

/** People take over an open outcome that the provider already knows of, and nothing else. */
function escalateStanding(head: Head): Standing {
  if (head.state === 'submitted' || head.state === 'unknown') return 'move';
  return refusal(isFinal(head.state) ? 'payment_final' : 'not_applicable', head);
}

function refusal(code: 'not_applicable' | 'payment_final', head: Head): DomainError {
  return new DomainError(code, { state: head.state, version: head.version });
}

const NEXT: Partial<Record<PaymentState, string>> = {
  submitting: 'Follow the payment with GET until its state is final.',
  submitted: 'Follow the payment with GET until its state is final.',
  unknown:
    'Do not pay again: the provider is being asked. Follow the payment with GET until its state is final.',
  needs_review:
    'Do not pay again: people are deciding. Follow the payment with GET until its state is final.',
};

function submissionStarted(head: Head): DomainError {
  return new DomainError('submission_started', {
    state: head.state,
    version: head.version,
    extra: {
      submission_started_at: shownOrNull(head.submission_started_at),
      may_have_moved: true,
      ...(head.state === 'unknown' || head.state === 'needs_review' ? { outcome: 'unknown' } : {}),
      next_step: NEXT[head.state] ?? null,
    },
  });
}
