import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';

/** Handed on to another worker at once, or to this one under a new lease. */
const HAND_ON_MS = 20;

/**
 * Translates what the services throw into what Temporal retries. Messages are codes: payloads and
 * failures are shown in clear. Everything is retryable: the gate and the claim make repeats safe,
 * and a fault of the code alarms instead of ending a payment.
 */
export function toFailure(error: unknown): ApplicationFailure {
  const name = error instanceof Error ? error.constructor.name : 'Unknown';
  switch (name) {
    case 'ArmedAborted':
      return failure((error as { reason?: string }).reason ?? 'aborted', HAND_ON_MS);
    case 'StorageUnavailable':
      return failure('storage_unavailable');
    case 'OutcomeUnknown':
      return failure('storage_outcome_unknown');
    case 'LockTimeout':
      return failure('storage_lock_timeout');
    case 'UnknownPayment':
      return failure('unknown_payment');
    default:
      return failure('internal');
  }
}

/** Nothing is decided yet: Temporal asks again after `afterMs`. Not an error of anybody. */
export function askAgain(afterMs: number): ApplicationFailure {
  return failure('undecided', afterMs);
}

function failure(code: string, nextRetryDelay?: number): ApplicationFailure {
  const created = ApplicationFailure.create({
    message: code,
    type: code,
    nonRetryable: false,
    ...(nextRetryDelay === undefined ? {} : { nextRetryDelay, category: ApplicationFailureCategory.BENIGN }),
  });
  // It would name this file and the folders of this machine, with every retry; the log has the fault's own.
  created.stack = '';
  return created;
}
