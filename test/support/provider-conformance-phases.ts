import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { CanonicalPayment, ProviderResult } from '../../src/providers/payment-provider.js';
import { attemptOf, newPayment, pay, refsOf } from './provider-conformance-rig.js';
import type { ProviderRig } from './provider-conformance-rig.js';

/** Promised by phases 1 and cancel never. */
export function describeOnePhase(rig: () => ProviderRig): void {
  it('there is nothing to commit and nothing to stop: no request arrives', async () => {
    const { provider } = rig();
    const payment = newPayment();
    const { providerRef } = await pay(provider, payment);
    const before = await rig().requests(payment.paymentId);
    const committed = await provider.commit(provider.prepare(payment), providerRef ?? '', attemptOf(payment));
    const stopped = await provider.cancel(providerRef ?? '', attemptOf(payment));
    expect([committed.class, stopped.class]).toEqual(['not_sent', 'not_sent']);
    expect(await rig().requests(payment.paymentId)).toBe(before);
  });
}

/** Promised by phases 2, idempotency.mode object_state and cancel before_commit. */
export function describeTwoPhases(rig: () => ProviderRig): void {
  const make = (payment: CanonicalPayment): Promise<ProviderResult> =>
    rig().provider.submit(rig().provider.prepare(payment), attemptOf(payment));
  const commit = (payment: CanonicalPayment, ref: string | null, commitTry = 1): Promise<ProviderResult> =>
    rig().provider.commit(rig().provider.prepare(payment), ref ?? '', attemptOf(payment, { commitTry }));

  it('creating moves nothing, and no second commit moves anything', async () => {
    const payment = newPayment();
    const made = await make(payment);
    expect(made).toMatchObject({ class: 'accepted', status: 'inert', code: 'requires_commit' });
    expect(await make(payment)).toMatchObject({ providerRef: made.providerRef, replayed: true });
    expect(await rig().provider.lookup(refsOf(payment))).toMatchObject({ result: { status: 'inert' } });
    expect(await rig().charges(payment.paymentId)).toBe(0);
    for (const providerKey of [payment.providerKey, payment.providerKey, randomUUID()]) {
      expect(await commit({ ...payment, providerKey }, made.providerRef)).toMatchObject({
        class: 'accepted',
        providerRef: made.providerRef,
        status: 'succeeded',
      });
    }
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('trouble with creating leaves the money where it is', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'create', 'reset_after');
    expect((await make(payment)).class).toBe('ambiguous');
    expect(await rig().charges(payment.paymentId)).toBe(0);
    expect((await pay(rig().provider, payment)).class).toBe('accepted');
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('AM-01: a commit compares the money itself', async () => {
    const payment = newPayment();
    const { providerRef } = await make(payment);
    const committed = await commit({ ...payment, amountMinor: 9n }, providerRef);
    expect(committed).toMatchObject({ class: 'key_mismatch', observed: { amountMinor: 1_250n } });
  });

  it('a stored error of the commit is passed by its second try while the object is open, and only once', async () => {
    const payment = newPayment();
    const { providerRef } = await make(payment);
    await rig().arrange(payment.paymentId, 'move', 'stored_server_error_before');
    expect((await commit(payment, providerRef)).class).toBe('ambiguous');
    expect(await commit(payment, providerRef)).toMatchObject({ code: 'stored_error', replayed: true });
    const refs = refsOf(payment, { providerRef });
    expect(await rig().provider.lookup(refs)).toMatchObject({ result: { status: 'inert' } });
    for (const _ of [1, 2]) {
      expect(await commit(payment, providerRef, 2)).toMatchObject({ class: 'accepted', status: 'succeeded' });
    }
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('what is stopped before its commit can never be committed', async () => {
    const payment = newPayment();
    const { providerRef } = await make(payment);
    for (const _ of [1, 2]) {
      expect(await rig().provider.cancel(providerRef ?? '', attemptOf(payment))).toMatchObject({
        class: 'accepted',
        status: 'failed',
        code: 'cancelled',
      });
    }
    expect(await commit(payment, providerRef)).toMatchObject({ class: 'rejected', code: 'cancelled' });
    expect(await rig().provider.lookup(refsOf(payment, { providerRef }))).toMatchObject({
      kind: 'found',
      result: { class: 'rejected', status: 'failed', code: 'cancelled' },
    });
    expect(await rig().charges(payment.paymentId)).toBe(0);
  });

  it('what is committed cannot be stopped any more, and stays where it is', async () => {
    const payment = newPayment();
    const { providerRef } = await pay(rig().provider, payment);
    expect(await rig().provider.cancel(providerRef ?? '', attemptOf(payment))).toMatchObject({
      class: 'rejected',
      code: 'already_released',
    });
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });
}
