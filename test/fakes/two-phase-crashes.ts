import { expect, it } from 'vitest';
import type { CanonicalPayment } from '../../src/providers/payment-provider.js';
import type { StripePaymentIntents } from '../../src/providers/stripe/stripe.adapter.js';
import type { Fate, Relay } from './relay.js';
import { allCharges, chargesOf, newPayment } from './stand-in.js';
import { TwoPhaseWorker } from './two-phase-worker.js';

/** A stand-in that ignores keys, and the adapter that meets it through the relay. */
export interface TwoPhaseWorld {
  readonly url: string;
  readonly relay: Relay;
  readonly provider: StripePaymentIntents;
  /** A destination that succeeds. */
  readonly destination: string;
}

/**
 * The calls of a quiet life are create, read, commit. Each row is what the calls meet, from the first.
 * `created`: objects that come of it, orphans among them.
 */
const CRASHES: readonly [string, readonly Fate[], number][] = [
  ['nowhere', [], 1],
  ['before the create arrives', ['lose_request'], 1],
  ['after the create, before its answer', ['lose_answer'], 2],
  ['three times after the create', ['lose_answer', 'lose_answer', 'lose_answer'], 4],
  ['before the commit arrives', ['pass', 'pass', 'lose_request'], 1],
  ['after the commit, before its answer', ['pass', 'pass', 'lose_answer'], 1],
  ['after create and after commit', ['lose_answer', 'pass', 'pass', 'lose_answer'], 2],
  [
    'after the commit, and the reads that follow are lost',
    ['pass', 'pass', 'lose_answer', 'lose_answer', 'lose_request'],
    1,
  ],
];

/** The claims that hold although nobody remembers a key. */
export function twoPhaseCrashes(world: () => TwoPhaseWorld): void {
  it('the premise: this stand-in ignores keys, so one key twice makes two objects', async () => {
    const { provider } = world();
    const payment = newPayment(world().destination);
    const ids = await Promise.all([create(provider, payment), create(provider, payment)]);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(await chargesOf(world().url, id)).toBe(0);
  });

  it.each(CRASHES)('DC-01, CR-01: a crash %s leaves one charge', async (_name, fates, created) => {
    const { provider, relay, url, destination } = world();
    const payment = newPayment(destination);
    const before = relay.forwarded.length;
    const chargesBefore = await allCharges(url);
    relay.meet(...fates);
    const result = await new TwoPhaseWorker(provider, payment).run();
    expect(result).toMatchObject({ class: 'accepted', status: 'succeeded' });
    const creates = relay.forwarded.slice(before).filter((path) => path === '/v1/payment_intents');
    expect(creates).toHaveLength(created);
    expect(await chargesOf(url, result.providerRef)).toBe(1);
    // Orphans of the create are charged by nobody.
    expect(await allCharges(url)).toBe(chargesBefore + 1);
  });

  it('DC-06: two workers that commit one object at once charge it once', async () => {
    const { provider, url, destination } = world();
    const payment = newPayment(destination);
    const id = await create(provider, payment);
    const attempt = { ...payment, attempt: 2, commitTry: 1, deadlineMs: 5_000, mayWrite: () => true };
    const commit = (): ReturnType<typeof provider.commit> =>
      provider.commit(provider.prepare(payment), id, attempt);
    const results = await Promise.all([commit(), commit()]);
    // The second is told that the object is in no state for that: it reads it, or knows nothing.
    const [first, second] = results.map(({ class: resultClass }) => resultClass).sort();
    expect(first).toBe('accepted');
    expect(['accepted', 'ambiguous']).toContain(second);
    expect(await chargesOf(url, id)).toBe(1);
  });

  it('an object that was stopped cannot be committed any more, and is read as stopped', async () => {
    const { provider, url, destination } = world();
    const payment = newPayment(destination);
    const id = await create(provider, payment);
    const attempt = { ...payment, attempt: 2, commitTry: 1, deadlineMs: 5_000, mayWrite: () => true };
    expect(await provider.cancel(id, attempt)).toMatchObject({ class: 'accepted', code: 'cancelled' });
    const late = await provider.commit(provider.prepare(payment), id, attempt);
    expect(['rejected', 'ambiguous']).toContain(late.class);
    const refs = {
      ...payment,
      providerRef: id,
      sentSince: null,
      by: 'any' as const,
      deadlineMs: 5_000,
      expected: payment,
    };
    expect(await provider.lookup(refs)).toMatchObject({
      kind: 'found',
      result: { class: 'rejected', code: 'cancelled' },
    });
    expect(await chargesOf(url, id)).toBe(0);
  });
}

async function create(provider: StripePaymentIntents, payment: CanonicalPayment): Promise<string> {
  const attempt = { ...payment, attempt: 1, commitTry: 1, deadlineMs: 5_000, mayWrite: () => true };
  const result = await provider.submit(provider.prepare(payment), attempt);
  expect(result).toMatchObject({ class: 'accepted', status: 'inert' });
  return result.providerRef ?? '';
}
