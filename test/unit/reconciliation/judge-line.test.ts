import { describe, expect, it } from 'vitest';
import { PAYMENT_STATES } from '../../../src/domain/payment-state.js';
import { judgeLine, type LineFacts, type NamedPayment } from '../../../src/reconciliation/judge-line.js';
import type { SettlementLine } from '../../../src/reconciliation/settlement-line.js';

const ID = `pay_${'a'.repeat(32)}`;
const LAG_MS = 2 * 86_400_000;
const line: SettlementLine = {
  rowNo: 1, txnId: 't1', sourceId: 'po_1', reference: `${ID}/1`, paymentId: ID, generation: 1, kind: 'payment',
  grossMinor: -1_999n, feeMinor: 25n, netMinor: -2_024n, currency: 'EUR', bookedAt: '2027-03-01T09:00:00Z',
  availableAt: null, batch: null,
}; // prettier-ignore
const back: SettlementLine = {
  ...line, txnId: 't2', sourceId: 're_1', kind: 'return', grossMinor: 1_999n, feeMinor: 0n, netMinor: 1_999n,
}; // prettier-ignore
const payment: NamedPayment = {
  id: ID, provider: 'simulated', amount: 1_999n, currency: 'EUR', state: 'succeeded', providerRef: 'po_1',
  lastGeneration: 1, knowsGeneration: true, bookedAfterMs: 3_600_000, hasOtherLine: false, wasMissing: false,
}; // prettier-ignore

const judge = (
  changed: Partial<SettlementLine> = {},
  known: Partial<NamedPayment> | null = {},
  facts: Partial<LineFacts> = {},
) =>
  judgeLine(
    { ...line, ...changed },
    {
      provider: 'simulated',
      bySource: known === null ? null : ID,
      payment: known && { ...payment, ...known },
      ...facts,
    },
    LAG_MS,
  );
const verdict = (...args: Parameters<typeof judge>): string => {
  const { bucket, reason, followUp } = judge(...args);
  return [bucket, reason ?? '-', followUp ?? '-'].join(' ');
};

describe('a settlement line', () => {
  it.each([
    ['succeeded', 'matched - -'],
    ['returned', 'matched - -'],
    ['unknown', 'matched - settle'],
    ['submitted', 'matched - settle'],
    ['needs_review', 'matched - settle'],
    ['submitting', 'matched - settle'],
    ['failed', 'unexpected_at_provider after_failed contradict'],
    ['scheduled', 'unexpected_at_provider never_sent contradict'],
    ['held', 'unexpected_at_provider never_sent contradict'],
    ['cancelled', 'unexpected_at_provider never_sent contradict'],
    ['expired', 'unexpected_at_provider never_sent contradict'],
  ] as const)('that is equal to a payment in %s: %s', (state, expected) => {
    expect(verdict({}, { state })).toBe(expected);
  });

  it('has a verdict for every state', () => {
    for (const state of PAYMENT_STATES) expect(verdict({}, { state })).not.toBe('');
  });

  it.each([
    ['another currency', { currency: 'USD' }, 'currency_differs - contradict'],
    ['a cent more', { grossMinor: -2_000n, netMinor: -2_025n }, 'amount_differs - contradict'],
    ['a cent less', { grossMinor: -1_998n, netMinor: -2_023n }, 'amount_differs - contradict'],
    ['a net that is not gross less fee', { netMinor: -1_999n }, 'fee_differs - -'],
    ['a negative fee', { feeMinor: -25n, netMinor: -1_974n }, 'fee_differs - -'],
    ['money that comes in', { grossMinor: 1_999n, netMinor: 1_974n }, 'sign_flipped - -'],
    ['no money', { grossMinor: 0n, netMinor: -25n }, 'sign_flipped - -'],
  ] as const)('with %s never settles: %s', (_, changed, expected) => {
    expect(verdict(changed, { state: 'unknown' })).toBe(expected);
  });

  it.each([
    ['names no payment', {}, null, 'no_payment -'],
    ['names nothing', { reference: null, paymentId: null, generation: null }, null, 'no_reference -'],
    ['comes from another provider', {}, { provider: 'simulated_b' }, 'other_provider contradict'],
    ['was never sent', {}, { lastGeneration: null }, 'never_sent contradict'],
    [
      'names a generation that does not exist',
      { generation: 2 },
      { knowsGeneration: false },
      'unknown_generation contradict',
    ],
    ['names an older generation', {}, { lastGeneration: 2 }, 'other_generation contradict'],
    ['is another object than the one we know', { sourceId: 'po_2' }, {}, 'other_object contradict'],
    ['is the second of its payment', {}, { hasOtherLine: true }, 'second_line contradict'],
  ] as const)('that %s is unexpected: a possible double', (_, changed, known, expected) => {
    expect(verdict(changed, known)).toBe(`unexpected_at_provider ${expected}`);
  });

  it('whose object and reference name two payments is unexpected', () => {
    const other = `pay_${'b'.repeat(32)}`;
    expect(verdict({}, {}, { bySource: other })).toBe('unexpected_at_provider two_payments contradict');
  });

  it('without our reference matches by the object that we know', () => {
    const bare = { reference: null, paymentId: null, generation: null };
    expect(verdict(bare, { knowsGeneration: null })).toBe('matched - -');
  });

  it('is late after the booking lag, not at it, and when its payment was reported missing', () => {
    expect(verdict({}, { bookedAfterMs: LAG_MS })).toBe('matched - -');
    expect(verdict({}, { bookedAfterMs: LAG_MS + 1 })).toBe('late booked_late -');
    expect(verdict({}, { bookedAfterMs: LAG_MS + 1, state: 'unknown' })).toBe('late booked_late settle');
    expect(verdict({}, { wasMissing: true })).toBe('late was_missing -');
  });

  it('of a return asks for the return, whole or in part, and never for more than was paid', () => {
    expect(verdict(back)).toBe('returned - return');
    expect(verdict({ ...back, grossMinor: 1n, netMinor: 1n })).toBe('returned - return');
    expect(verdict({ ...back, grossMinor: 2_000n, netMinor: 2_000n })).toBe('amount_differs - contradict');
    expect(verdict({ ...back, currency: 'USD' })).toBe('currency_differs - contradict');
    expect(verdict({ ...back, grossMinor: -1_999n, netMinor: -1_999n })).toBe('sign_flipped - -');
    expect(verdict(back, { hasOtherLine: true, state: 'unknown' })).toBe('returned - return');
  });

  it('that is no payment is left alone, whatever it names', () => {
    expect(verdict({ kind: 'other' }, { state: 'unknown' })).toBe('other - -');
    expect(verdict({ kind: 'other' }, null)).toBe('other - -');
  });
});
