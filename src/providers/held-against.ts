import type { LookupAnswer } from './payment-provider.js';

/** What was instructed, and in two phases the one object that may be released; null where none is known. */
export interface Instructed {
  readonly amount: bigint;
  readonly currency: string;
  readonly commitTarget: string | null;
}

/**
 * Rule 9 of the submission protocol. A hit with another amount, currency, destination or object than
 * instructed is not ours, whatever the adapter made of it; one whose money cannot be compared tells nothing.
 * @param destination in clear. @returns any other answer as it is. Pure.
 */
export function heldAgainst(instructed: Instructed, destination: string, answer: LookupAnswer): LookupAnswer {
  if (answer.kind !== 'found') return answer;
  const { result } = answer;
  const { observed } = result;
  if (observed.amountMinor === null || observed.currency === null) {
    return { kind: 'cannot_tell', code: 'money_not_shown' };
  }
  const isOther =
    observed.amountMinor !== instructed.amount ||
    observed.currency !== instructed.currency ||
    (observed.destination !== null && observed.destination !== destination) ||
    (instructed.commitTarget !== null && result.providerRef !== instructed.commitTarget);
  return isOther ? { kind: 'found_other', result } : answer;
}
