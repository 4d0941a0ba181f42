import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResultClass } from '../../src/domain/provider-outcome.js';
import type {
  AttemptContext,
  CanonicalPayment,
  LookupAnswer,
  LookupRefs,
  PaymentProvider,
  ProviderResult,
} from '../../src/providers/payment-provider.js';

/**
 * What a call can meet at a provider. `_before`: nothing was executed; `_after`: the money moved
 * and only the answer suffered.
 */
export type Trouble =
  | 'reset_before'
  | 'reset_after'
  | 'silence'
  | 'server_error_before'
  | 'server_error_after'
  | 'stored_server_error_after'
  | 'gateway_page_after'
  | 'empty_after'
  | 'broken_body_after'
  | 'cut_body_after'
  | 'unknown_status_after'
  | 'other_amount_after'
  | 'redirect'
  | 'throttled'
  | 'unauthenticated'
  | 'forbidden'
  | 'declined'
  | 'declined_for_funds'
  | 'pending'
  | 'pending_then_failed'
  | 'slow'
  | 'executed_late'
  | 'denies_existence'
  | 'lookup_error';

/** A provider to be put through the suite, and the judge beside it. */
export interface ProviderRig {
  readonly provider: PaymentProvider;
  /** The same provider with a base URL where nobody listens. */
  readonly unreachable: PaymentProvider;
  /** The same provider with a credential that is unknown there. */
  readonly stranger: PaymentProvider;
  /** The payment's next call of that kind meets this. @throws when the rig cannot arrange it. */
  arrange(paymentId: string, call: 'create' | 'move' | 'lookup', trouble: Trouble): Promise<void>;
  /** Movements of money for a payment, by the provider's own books. */
  charges(paymentId: string): Promise<number>;
  untilCharged(paymentId: string): Promise<unknown>;
  /** Requests about a payment that reached the provider, whatever became of them. */
  requests(paymentId: string): Promise<number>;
  untilRequested(paymentId: string): Promise<unknown>;
  close(): Promise<void>;
}

/** A deadline that no test waits for, unless it wants to. */
const DEADLINE_MS = 10_000;
const SHORT_DEADLINE_MS = 500;

/**
 * The suite that every adapter passes: each class of result is reachable and right, one key moves
 * money once, and what was not sent left no byte.
 */
export function providerConformance(title: string, open: () => Promise<ProviderRig>): void {
  describe(title, () => {
    let rig: ProviderRig;
    beforeAll(async () => {
      rig = await open();
    });
    afterAll(() => rig.close());
    const world = (): ProviderRig => rig;
    describeResults(world);
    describeOneKey(world);
    describeNotSent(world);
    describeLookups(world);
  });
}

function newPayment(changes: Partial<CanonicalPayment> = {}): CanonicalPayment {
  return {
    paymentId: `pay_${randomUUID().replaceAll('-', '')}`,
    generation: 1,
    providerKey: randomUUID(),
    amountMinor: 1_250n,
    currency: 'EUR',
    destination: 'acct_destination',
    reference: null,
    description: null,
    ...changes,
  };
}

function attemptOf(payment: CanonicalPayment, changes: Partial<AttemptContext> = {}): AttemptContext {
  const { paymentId, generation, providerKey } = payment;
  return {
    paymentId,
    generation,
    attempt: 1,
    providerKey,
    commitTry: 1,
    deadlineMs: DEADLINE_MS,
    mayWrite: () => true,
    ...changes,
  };
}

function refsOf(payment: CanonicalPayment, changes: Partial<LookupRefs> = {}): LookupRefs {
  const { paymentId, generation, providerKey } = payment;
  return {
    providerRef: null,
    providerKey,
    paymentId,
    generation,
    sentSince: new Date(),
    by: 'any',
    deadlineMs: DEADLINE_MS,
    expected: payment,
    ...changes,
  };
}

/** All calls that a payment takes, and the result of the one that moves the money. */
async function pay(
  provider: PaymentProvider,
  payment: CanonicalPayment,
  changes: Partial<AttemptContext> = {},
): Promise<ProviderResult> {
  const attempt = attemptOf(payment, changes);
  const prepared = provider.prepare(payment);
  const made = await provider.submit(prepared, attempt);
  if (provider.capabilities().phases === 1 || made.class !== 'accepted' || made.providerRef === null)
    return made;
  return provider.commit(prepared, made.providerRef, attempt);
}

function describeResults(rig: () => ProviderRig): void {
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

  it.each([1n, 999_999_999_999n])(
    'AM-01: an amount of %d minor units arrives exactly',
    async (amountMinor) => {
      const result = await pay(rig().provider, newPayment({ amountMinor, currency: 'JPY' }));
      expect(result).toMatchObject({ class: 'accepted', observed: { amountMinor, currency: 'JPY' } });
    },
  );

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

  it('PR-01: a payment on its way is accepted as pending, and a lookup sees its end', async () => {
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

function describeOneKey(rig: () => ProviderRig): void {
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

  it('a stored error stays ambiguous and is marked: only a lookup can help', async () => {
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'move', 'stored_server_error_after');
    expect(await pay(rig().provider, payment)).toMatchObject({ class: 'ambiguous', replayed: false });
    const again = await pay(rig().provider, payment);
    expect(again).toMatchObject({ class: 'ambiguous', replayed: true, code: 'stored_error' });
    expect(await rig().provider.lookup(refsOf(payment))).toMatchObject({ kind: 'found' });
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
    expect(await pay(rig().provider, payment)).toMatchObject({ class: 'accepted', replayed: true });
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('in two phases: creating moves nothing, and no second commit moves anything', async (context) => {
    const { provider } = rig();
    if (provider.capabilities().phases === 1) return context.skip('the provider has one phase');
    const payment = newPayment();
    const prepared = provider.prepare(payment);
    const make = (): Promise<ProviderResult> => provider.submit(prepared, attemptOf(payment));
    const made = await make();
    expect(made).toMatchObject({ class: 'accepted', status: 'inert', code: 'requires_commit' });
    expect(await make()).toMatchObject({ providerRef: made.providerRef, replayed: true });
    expect(await provider.lookup(refsOf(payment))).toMatchObject({ result: { code: 'requires_commit' } });
    expect(await rig().charges(payment.paymentId)).toBe(0);
    for (const providerKey of [payment.providerKey, payment.providerKey, randomUUID()]) {
      const committed = await provider.commit(
        prepared,
        made.providerRef ?? '',
        attemptOf(payment, { providerKey }),
      );
      expect(committed).toMatchObject({
        class: 'accepted',
        providerRef: made.providerRef,
        status: 'succeeded',
      });
    }
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });

  it('in two phases: trouble with creating leaves the money where it is', async (context) => {
    const { provider } = rig();
    if (provider.capabilities().phases === 1) return context.skip('the provider has one phase');
    const payment = newPayment();
    await rig().arrange(payment.paymentId, 'create', 'reset_after');
    expect((await pay(provider, payment)).class).toBe('ambiguous');
    expect(await rig().charges(payment.paymentId)).toBe(0);
    expect((await pay(provider, payment)).class).toBe('accepted');
    expect(await rig().charges(payment.paymentId)).toBe(1);
  });
}

function describeNotSent(rig: () => ProviderRig): void {
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

function describeLookups(rig: () => ProviderRig): void {
  it('nothing was sent: absent', async () => {
    expect(await rig().provider.lookup(refsOf(newPayment()))).toEqual({ kind: 'absent', by: ['reference'] });
  });

  it('a payment is found by reference and by id, equal to the instruction', async () => {
    const payment = newPayment();
    const { providerRef } = await pay(rig().provider, payment);
    for (const refs of [refsOf(payment), refsOf(payment, { providerRef })]) {
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
    expect(await rig().provider.lookup(refsOf(payment))).toEqual({ kind: 'found_many', count: 2 });
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
}

function codeOf(answer: LookupAnswer): string {
  return answer.kind === 'found' ? answer.result.code : answer.kind;
}
