import { inspect } from 'node:util';
import { ApplicationFailureCategory } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { askAgain, toFailure } from '../../../activities/failure-mapping.js';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../../../src/persistence/database-errors.js';
import { ArmedAborted } from '../../../src/submission/armed-payments.js';
import { UnknownPayment } from '../../../src/submission/begin-submission.service.js';

/** An error of this class, whatever its constructor wants. */
function of<T extends Error>(type: { readonly prototype: T }): T {
  const error = Object.create(type.prototype) as T;
  error.message = 'destination GB29NWBK60161331926819';
  return error;
}

describe('what the services throw becomes a code', () => {
  it.each([
    ['storage_unavailable', of(StorageUnavailable)],
    ['storage_outcome_unknown', of(OutcomeUnknown)],
    ['storage_lock_timeout', of(LockTimeout)],
    ['unknown_payment', new UnknownPayment('pay_1')],
    ['draining', new ArmedAborted('draining')],
    ['lease_lost', new ArmedAborted('lease_lost')],
    ['internal', new TypeError('GB29NWBK60161331926819 of undefined')],
    ['internal', 'a thrown text with GB29NWBK60161331926819'],
    ['internal', undefined],
  ])('%s, retried, without the message, cause or stack of the fault', (code, thrown) => {
    const failure = toFailure(thrown);
    expect(failure).toMatchObject({ message: code, type: code, nonRetryable: false, stack: '' });
    expect(failure.cause).toBeUndefined();
    expect(failure.details ?? []).toEqual([]);
    expect(inspect(failure, { depth: null })).not.toContain('GB29');
  });

  it('a pair that its worker gives up is handed on within a blink, and is no error', () => {
    const failure = toFailure(new ArmedAborted('draining'));
    expect(failure.nextRetryDelay).toBe(20);
    expect(failure.category).toBe(ApplicationFailureCategory.BENIGN);
  });

  it('a fault keeps the interval of its policy, and is an error', () => {
    const failure = toFailure(of(StorageUnavailable));
    expect(failure.nextRetryDelay).toBeUndefined();
    expect(failure.category).not.toBe(ApplicationFailureCategory.BENIGN);
  });
});

it('an undecided inquiry is retried after its own time, and is no error', () => {
  expect(askAgain(840_000)).toMatchObject({
    message: 'undecided',
    nonRetryable: false,
    nextRetryDelay: 840_000,
    category: ApplicationFailureCategory.BENIGN,
    stack: '',
  });
});
