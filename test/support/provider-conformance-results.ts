import { expect, it } from 'vitest';
import type { ResultClass } from '../../src/domain/provider-outcome.js';
import { PrepareRefused } from '../../src/providers/payment-provider.js';
import type { ProviderDescriptor } from '../../src/providers/payment-provider.js';
import { SHORT_DEADLINE_MS, attemptOf, newPayment, pay } from './provider-conformance-rig.js';
import type { ProviderRig, Trouble } from './provider-conformance-rig.js';

/** Whatever a provider promises: each class of result is reachable and right. */
export function describeResults(rig: () => ProviderRig, descriptor: ProviderDescriptor): void {
  it('a payment is accepted, with the id and the money of our instruction', async () => {
    const payment = newPayment();
    const result = await pay(rig().provider, payment);
    expect(result).toMatchObject({
      class: 'accepted',
      status: 'succeeded',
      replayed: false,
      bytesSent: true,
      observed: { amountMinor: 1_250n, currency: 'EUR', destination: 'acct_destination' },
    });
    expect(result.providerRef).not.toBeNull();
    expect(result.requestId).not.toBeNull();
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('AM-01: amount: the smallest and the largest arrive exactly, and none beyond is prepared', async () => {
    const { minMinor, maxMinor } = descriptor.amount;
    for (const amountMinor of [minMinor, maxMinor]) {
      const result = await pay(rig().provider, newPayment({ amountMinor, currency: 'JPY' }));
      expect(result).toMatchObject({ class: 'accepted', observed: { amountMinor, currency: 'JPY' } });
    }
    for (const amountMinor of [minMinor - 1n, maxMinor + 1n]) {
      expect(() => rig().provider.prepare(newPayment({ amountMinor }))).toThrow(PrepareRefused);
    }
  });

  it.each<[Trouble, ResultClass, number]>([
    ['reset_before', 'ambiguous', 0],
    ['reset_after', 'ambiguous', 1],
    ['server_error_before', 'ambiguous', 0],
    ['server_error_after', 'ambiguous', 1],
    ['gateway_page_after', 'ambiguous', 1],
    ['empty_after', 'ambiguous', 1],
    ['broken_body_after', 'ambiguous', 1],
    ['cut_body_after', 'ambiguous', 1],
    ['unknown_status_after', 'ambiguous', 1],
    ['redirect', 'ambiguous', 0],
    ['throttled', 'throttled', 0],
    ['unauthenticated', 'config', 0],
    ['forbidden', 'config', 0],
    ['declined', 'rejected', 0],
    ['declined_for_funds', 'rejected_funds', 0],
  ])('UO-01, UO-03: %s is %s', async (trouble, resultClass, charges) => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', trouble);
    const result = await pay(rig().provider, payment);
    expect(result).toMatchObject({ class: resultClass, bytesSent: true });
    expect(await rig().charges(payment.paymentId)).toBe(charges);
  });

  it('DC-01: silence until the deadline is ambiguous', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'silence');
    const attempt = { deadlineMs: SHORT_DEADLINE_MS };
    expect(await pay(rig().provider, payment, attempt)).toMatchObject({
      class: 'ambiguous',
      bytesSent: true,
    });
  });

  it('BK-02: what is throttled says how long to wait', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'throttled');
    expect((await pay(rig().provider, payment)).retryAfterMs).toBe(60_000);
  });

  it('PR-01: a payment on its way is accepted as pending, never as done', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'pending_then_failed');
    expect(await pay(rig().provider, payment)).toMatchObject({ class: 'accepted', status: 'pending' });
  });

  it('AM-01: another amount in the answer is never taken for ours', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'other_amount_after');
    const result = await pay(rig().provider, payment);
    expect(result.observed.amountMinor).not.toBe(payment.amountMinor);
    expect(result.class).toBe('key_mismatch');
  });

  it('an unknown credential is a matter of configuration', async () => {
    const payment = newPayment();
    expect((await pay(rig().stranger, payment)).class).toBe('config');
    expect(await rig().charges(payment.paymentId)).toBe(0);
  });
}

/** Whatever a provider promises: what is called not sent left no byte. */
export function describeNotSent(rig: () => ProviderRig): void {
  it('a refused port is not_sent', async () => {
    const result = await pay(rig().unreachable, newPayment());
    expect(result).toMatchObject({
      class: 'not_sent',
      code: 'connect_refused',
      bytesSent: false,
      httpStatus: null,
    });
  });

  it('a lost lease is not_sent, on a new connection and on one in use: no request arrives', async () => {
    const mayWrite = (): boolean => false;
    const cold = newPayment();
    expect(await pay(rig().provider, cold, { mayWrite })).toMatchObject({
      class: 'not_sent',
      code: 'lease_lost',
    });
    expect((await pay(rig().provider, newPayment())).class).toBe('accepted');
    const warm = newPayment();
    expect(await pay(rig().provider, warm, { mayWrite })).toMatchObject({
      class: 'not_sent',
      code: 'lease_lost',
    });
    for (const { paymentId } of [cold, warm]) expect(await rig().requests(paymentId)).toBe(0);
  });

  it('a prepared submission of another payment is not sent', async () => {
    const [payment, other] = [newPayment(), newPayment()];
    const result = await rig().provider.submit(rig().provider.prepare(payment), attemptOf(other));
    expect(result).toMatchObject({ class: 'not_sent', bytesSent: false });
    for (const { paymentId } of [payment, other]) expect(await rig().requests(paymentId)).toBe(0);
  });

  it('prepare is pure: the same payment gives the same submission, and nothing arrives', async () => {
    const payment = newPayment();
    expect(rig().provider.prepare(payment)).toEqual(rig().provider.prepare(payment));
    expect(await rig().requests(payment.paymentId)).toBe(0);
  });
}
