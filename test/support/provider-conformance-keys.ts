import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { SHORT_DEADLINE_MS, newPayment, pay } from './provider-conformance-rig.js';
import type { ProviderRig } from './provider-conformance-rig.js';

/** Promised by idempotency.mode key or object_state, scope account, errors stored. */
export function describeOneKey(rig: () => ProviderRig): void {
  it('DC-01: the same key after a lost answer is a replay: one movement', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'reset_after');
    expect((await pay(rig().provider, payment)).class).toBe('ambiguous');
    const again = await pay(rig().provider, payment, { attempt: 2 });
    expect(again).toMatchObject({ class: 'accepted', status: 'succeeded', replayed: true });
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('DC-03: ten parallel and five later calls under one key move the money once', async () => {
    const payment = newPayment();
    const calls = Array.from({ length: 10 }, () => pay(rig().provider, payment));
    const results = await Promise.all(calls);
    for (let i = 0; i < 5; i += 1) results.push(await pay(rig().provider, payment));
    const ids = new Set(results.filter((r) => r.class === 'accepted').map((r) => r.providerRef));
    expect(ids.size).toBe(1);
    for (const { class: resultClass } of results) expect(['accepted', 'in_flight']).toContain(resultClass);
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('another key pays again: the books of the provider show it', async () => {
    const payment = newPayment();
    await pay(rig().provider, payment);
    await pay(rig().provider, { ...payment, providerKey: randomUUID() });
    expect(await rig().charges(payment.paymentId)).toBe(2);
  });

  it('a refusal is stored: the same key gets it again, marked', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'declined');
    expect(await pay(rig().provider, payment)).toMatchObject({ class: 'rejected', replayed: false });
    expect(await pay(rig().provider, payment)).toMatchObject({ class: 'rejected', replayed: true });
    expect(await rig().charges(payment.paymentId)).toBe(0);
  });

  it('a stored error stays ambiguous and is marked', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'stored_server_error_after');
    expect(await pay(rig().provider, payment)).toMatchObject({ class: 'ambiguous', replayed: false });
    const again = await pay(rig().provider, payment);
    expect(again).toMatchObject({ class: 'ambiguous', replayed: true, code: 'stored_error' });
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('the same key with other parameters is a mismatch and moves nothing', async () => {
    const payment = newPayment();
    await pay(rig().provider, payment);
    const other = await pay(rig().provider, { ...payment, amountMinor: 9n });
    expect(other.class).toBe('key_mismatch');
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('DC-01: a key that is busy is in flight', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'slow');
    const slow = pay(rig().provider, payment);
    await rig().untilCharged(payment.paymentId);
    expect((await pay(rig().provider, payment)).class).toBe('in_flight');
    expect((await slow).class).toBe('accepted');
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('DC-01: a request that is executed after its deadline, sent again under its key, pays once', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'executed_late');
    const lost = await pay(rig().provider, payment, { deadlineMs: SHORT_DEADLINE_MS });
    expect(lost.class).toBe('ambiguous');
    await rig().untilCharged(payment.paymentId);
    expect(await pay(rig().provider, payment)).toMatchObject({ class: 'accepted', replayed: true });
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('every call that moves something carries the key of the generation', async () => {
    const payment = newPayment();
    await pay(rig().provider, payment);
    const keys = await rig().keysSeen(payment.paymentId);
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) expect(key?.split(':')[0]).toBe(payment.providerKey);
  });
}

/** Promised by idempotency.mode none: nothing protects from a repeat, and nothing pretends to. */
export function describeNoKey(rig: () => ProviderRig): void {
  it('a repeat pays again, and the books show it', async () => {
    const payment = newPayment();
    for (const _ of [1, 2]) {
      expect(await pay(rig().provider, payment)).toMatchObject({ class: 'accepted', replayed: false });
    }
    expect(await rig().charges(payment.paymentId)).toBe(2);
  });

  it('no key is sent: nobody can take it for a protection', async () => {
    const payment = newPayment();
    await pay(rig().provider, payment);
    expect(await rig().keysSeen(payment.paymentId)).toEqual([null]);
  });
}
