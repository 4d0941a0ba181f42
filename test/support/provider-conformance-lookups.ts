import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type {
  CanonicalPayment,
  LookupAnswer,
  LookupRefs,
  ProviderDescriptor,
} from '../../src/providers/payment-provider.js';
import { SHORT_DEADLINE_MS, codeOf, newPayment, pay, refsOf } from './provider-conformance-rig.js';
import type { ProviderRig, Trouble } from './provider-conformance-rig.js';

/** Promised by lookup.by and lookup.consistency strong. */
export function describeLookups(rig: () => ProviderRig, descriptor: ProviderDescriptor): void {
  const scans = descriptor.lookup.by.includes('list_scan');

  it('UO-02: nothing was sent: absent, and it is said which way told so', async () => {
    expect(await rig().provider.lookup(refsOf(newPayment()))).toEqual({ kind: 'absent', by: ['reference'] });
    if (!scans) return;
    expect(await rig().provider.lookup(refsOf(newPayment(), { by: 'list_scan' }))).toEqual({
      kind: 'absent',
      by: ['list_scan'],
    });
  });

  it('a payment is found by every way that is declared, equal to the instruction', async () => {
    const payment = newPayment();
    const { providerRef } = await pay(rig().provider, payment);
    const ways: Partial<LookupRefs>[] = [{}, { providerRef }, { by: 'reference' }];
    if (scans) ways.push({ by: 'list_scan' }, { by: 'list_scan', providerRef });
    for (const refs of ways.map((way) => refsOf(payment, way))) {
      expect(await rig().provider.lookup(refs)).toMatchObject({
        kind: 'found',
        result: { class: 'accepted', status: 'succeeded', providerRef, observed: { amountMinor: 1_250n } },
      });
    }
  });

  it('another generation of the payment is another payment', async () => {
    const payment = newPayment();
    const { providerRef } = await pay(rig().provider, payment);
    expect(await rig().provider.lookup(refsOf({ ...payment, generation: 2 }))).toEqual({
      kind: 'absent',
      by: ['reference'],
    });
    const byId = await rig().provider.lookup(refsOf({ ...payment, generation: 2 }, { providerRef }));
    expect(byId.kind).toBe('found_other');
  });

  it.each<[string, Partial<CanonicalPayment>]>([
    ['amount', { amountMinor: 1_251n }],
    ['currency', { currency: 'USD' }],
    ['destination', { destination: 'acct_other' }],
  ])('AM-01: a hit with another %s is found_other', async (_title, other) => {
    const payment = newPayment();
    const { providerRef } = await pay(rig().provider, payment);
    for (const ref of [null, providerRef]) {
      const refs = refsOf({ ...payment, ...other }, { providerRef: ref });
      const answer = await rig().provider.lookup(refs);
      expect(answer).toMatchObject({ kind: 'found_other', result: { observed: { amountMinor: 1_250n } } });
    }
  });

  it('two movements are found_many', async () => {
    const payment = newPayment();
    await pay(rig().provider, payment);
    await pay(rig().provider, { ...payment, providerKey: randomUUID() });
    for (const by of scans ? (['any', 'list_scan'] as const) : (['any'] as const)) {
      expect(await rig().provider.lookup(refsOf(payment, { by }))).toEqual({ kind: 'found_many', count: 2 });
    }
  });

  it.each<[Trouble, LookupAnswer['kind']]>([
    ['lookup_error', 'cannot_tell'],
    ['forbidden', 'cannot_tell'],
    ['throttled', 'cannot_tell'],
    ['reset_after', 'cannot_tell'],
    ['broken_body_after', 'cannot_tell'],
    ['gateway_page_after', 'cannot_tell'],
    ['unknown_status_after', 'cannot_tell'],
    ['other_amount_after', 'found_other'],
    ['denies_existence', 'absent'],
  ])(
    'UO-02: a lookup that meets %s answers %s, and the next one finds the payment',
    async (trouble, kind) => {
      const payment = newPayment();
      const { providerRef } = await pay(rig().provider, payment);
      for (const ref of [null, providerRef]) {
        await rig().arrange(payment.paymentId, 'lookup', trouble);
        const refs = refsOf(payment, { providerRef: ref });
        expect((await rig().provider.lookup(refs)).kind).toBe(kind);
        expect((await rig().provider.lookup(refs)).kind).toBe('found');
      }
    },
  );

  it('nobody there, an unknown credential or silence: cannot tell', async () => {
    const payment = newPayment();
    expect((await rig().unreachable.lookup(refsOf(payment))).kind).toBe('cannot_tell');
    expect((await rig().stranger.lookup(refsOf(payment))).kind).toBe('cannot_tell');
    await rig().arrange(payment.paymentId, 'lookup', 'silence');
    const refs = refsOf(payment, { deadlineMs: SHORT_DEADLINE_MS });
    expect(await rig().provider.lookup(refs)).toEqual({ kind: 'cannot_tell', code: 'deadline' });
  });

  it('PR-01: a payment on its way is seen as pending, and then its end', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'pending_then_failed');
    expect(await pay(rig().provider, payment)).toMatchObject({ class: 'accepted', status: 'pending' });
    const statuses: unknown[] = [];
    for (let i = 0; i < 2; i += 1) statuses.push(await rig().provider.lookup(refsOf(payment)));
    expect(statuses).toMatchObject([
      { kind: 'found', result: { class: 'accepted', status: 'pending' } },
      { kind: 'found', result: { class: 'rejected', status: 'failed' } },
    ]);
  });

  it('UO-02: a request that is executed after its deadline is absent first, and found later', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'executed_late');
    const lost = pay(rig().provider, payment, { deadlineMs: SHORT_DEADLINE_MS });
    await rig().untilRequested(payment.paymentId);
    const early = await rig().provider.lookup(refsOf(payment));
    expect(early.kind === 'absent' || codeOf(early) === 'requires_commit').toBe(true);
    expect((await lost).class).toBe('ambiguous');
    await rig().untilCharged(payment.paymentId);
    expect(codeOf(await rig().provider.lookup(refsOf(payment)))).toBe('succeeded');
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });
}

/** Promised by lookup.by empty and lookup.consistency none. */
export function describeNoLookup(rig: () => ProviderRig): void {
  it('a payment that was made cannot be asked for, by no way, and nobody is asked', async () => {
    const payment = newPayment();
    const { providerRef } = await pay(rig().provider, payment);
    const before = await rig().requests(payment.paymentId);
    for (const by of ['any', 'reference', 'list_scan'] as const) {
      const answer = await rig().provider.lookup(refsOf(payment, { by, providerRef }));
      expect(answer).toEqual({ kind: 'cannot_tell', code: 'no_lookup' });
    }
    expect(await rig().requests(payment.paymentId)).toBe(before);
  });
}
