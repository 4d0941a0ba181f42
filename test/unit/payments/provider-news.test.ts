import { describe, expect, it } from 'vitest';
import { isFinal, isLegalEdge, PAYMENT_STATES, transition } from '../../../src/domain/payment-state.js';
import type { ProviderStatus } from '../../../src/domain/provider-outcome.js';
import { stepFor } from '../../../src/payments/provider-news.js';

const STATUSES: readonly ProviderStatus[] = ['inert', 'pending', 'succeeded', 'failed'];
const ALL = PAYMENT_STATES.flatMap((state) =>
  STATUSES.flatMap((status) => [true, false].map((isCurrent) => ({ state, status, isCurrent }))),
);

describe('what a provider says of a payment', () => {
  it('moves only along edges of the transition table, by the rule that has the edge', () => {
    for (const { state, status, isCurrent } of ALL) {
      const step = stepFor(state, status, isCurrent, null);
      if (step.kind !== 'move') continue;
      expect([state, status, isLegalEdge(state, step.to)]).toEqual([state, status, true]);
      expect(transition(step.rule).from).toContain(state);
      expect(transition(step.rule).to).toContain(step.to);
    }
  });

  it('never moves a payment that is final, or was never started', () => {
    for (const { state, status, isCurrent } of ALL) {
      if (!isFinal(state) && state !== 'scheduled' && state !== 'held') continue;
      expect([state, status, stepFor(state, status, isCurrent, null).kind]).not.toContain('move');
    }
  });

  it('moves nothing while the object is inert', () => {
    for (const state of PAYMENT_STATES) expect(stepFor(state, 'inert', true, null).kind).not.toBe('move');
  });

  it('never fails a payment whose call is under way (T10 is the call’s own)', () => {
    expect(stepFor('submitting', 'failed', true, null)).toEqual({ kind: 'waits' });
  });

  it.each([
    ['submitting', 'pending', 'T8', 'submitted'],
    ['submitting', 'succeeded', 'T9', 'succeeded'],
    ['unknown', 'pending', 'T14', 'submitted'],
    ['unknown', 'succeeded', 'T14', 'succeeded'],
    ['unknown', 'failed', 'T14', 'failed'],
    ['submitted', 'succeeded', 'T17', 'succeeded'],
    ['submitted', 'failed', 'T17', 'failed'],
    ['needs_review', 'succeeded', 'T20', 'succeeded'],
    ['needs_review', 'failed', 'T20', 'failed'],
  ] as const)('%s and %s: %s to %s', (state, status, rule, to) => {
    expect(stepFor(state, status, false, null)).toEqual({ kind: 'move', rule, to });
  });

  it('contradicts a final state only where it says otherwise', () => {
    const contradicted = ALL.filter(
      ({ state, status, isCurrent }) => stepFor(state, status, isCurrent, null).kind === 'contradicts',
    ).map(({ state, status, isCurrent }) => `${state} ${status} ${isCurrent ? 'now' : 'once'}`);
    const never = ['scheduled', 'held', 'cancelled', 'expired'].flatMap((state) =>
      ['pending', 'succeeded', 'failed'].flatMap((s) => [`${state} ${s} now`, `${state} ${s} once`]),
    );
    const ended = ['succeeded failed now', 'succeeded failed once', 'failed succeeded now', 'failed succeeded once'];
    expect(contradicted.sort()).toEqual([...never, ...ended, 'failed pending now'].sort());
  }); // prettier-ignore

  it('leaves to people what they have as a contradiction', () => {
    for (const reason of ['found_many', 'found_other', 'key_mismatch', 'contradiction', 'other_money']) {
      expect(stepFor('needs_review', 'succeeded', true, reason)).toEqual({ kind: 'with_people' });
    }
    expect(stepFor('needs_review', 'succeeded', true, 'inquiry_exhausted').kind).toBe('move');
  });
});
