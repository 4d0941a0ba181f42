import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PaymentReturns, type RecordReturn } from '../../src/payments/payment-returns.service.js';
import { PAYMENT_STATES, type PaymentState } from '../../src/domain/payment-state.js';
import { seedLane, seedTenant, unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { findBreaches } from '../support/invariants.js';
import { paymentIn } from '../support/payment-states.js';

let db: TestDatabase;
let returns: PaymentReturns;
let make: (state: PaymentState) => Promise<string>;
let nudges = 0;

beforeAll(async () => {
  db = await createTestDatabase();
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  make = (state) => paymentIn(state, db.database, { tenant, lane });
  returns = new PaymentReturns(db.database, { nudge: () => void nudges++ });
});
afterAll(() => db.drop());

/** All 1999 EUR came back. */
const back = (paymentId: string, changes: Partial<RecordReturn> = {}): RecordReturn => ({
  paymentId,
  returnId: unique('re'),
  amountMinor: 1_999n,
  currency: 'EUR',
  source: 'webhook',
  code: 'bounced',
  ...changes,
});

const rowsOf = async (id: string) => {
  const [row] = await db.query<{ state: string; version: number; returns: number; cases: number; evidence: number }>(
    `SELECT state, version, (SELECT count(*)::integer FROM payment_return WHERE payment_id = $1) AS returns,
        (SELECT count(*)::integer FROM review_case WHERE payment_id = $1 AND reason = 'contradiction') AS cases,
        (SELECT count(*)::integer FROM evidence WHERE payment_id = $1 AND kind = 'returned') AS evidence
       FROM payment WHERE id = $1`,
    [id],
  );
  if (!row) throw new Error('the payment is gone');
  return row;
}; // prettier-ignore

describe('a return (T21)', () => {
  it('of a success makes it returned, once, however often it is told (PR-01)', async () => {
    const id = await make('succeeded');
    const news = back(id);
    expect(await returns.recordReturn(news)).toEqual({ kind: 'returned' });
    expect(await returns.recordReturn(news)).toEqual({ kind: 'repeated' });
    expect(await rowsOf(id)).toEqual({ state: 'returned', version: 4, returns: 1, cases: 0, evidence: 1 });
    const [transition] = await db.query<{ cause: string; actor: string; detail: string }>(
      `SELECT cause, actor, detail FROM payment_transition WHERE payment_id = $1 AND seq = 4`,
      [id],
    );
    expect(transition).toMatchObject({ cause: 'record-return', actor: 'webhook' });
    expect(await findBreaches((text) => db.query(text))).toEqual([]);
  });

  it('is recorded once when webhook and file tell it at the same time, in 50 races', async () => {
    for (let round = 0; round < 50; round++) {
      const news = back(await make('succeeded'));
      const results = await Promise.all([
        returns.recordReturn(news),
        returns.recordReturn({ ...news, source: 'settlement' }),
      ]);
      expect(results.map((r) => r.kind).sort()).toEqual(['repeated', 'returned']);
    }
  });

  it('may be of a part; parts together are never more than what was paid', async () => {
    const id = await make('succeeded');
    expect(await returns.recordReturn(back(id, { amountMinor: 1_000n }))).toEqual({ kind: 'returned' });
    expect(await returns.recordReturn(back(id, { amountMinor: 999n }))).toEqual({ kind: 'added' });
    expect(await returns.recordReturn(back(id, { amountMinor: 1n }))).toEqual({ kind: 'contradiction' });
    expect(await rowsOf(id)).toMatchObject({ state: 'returned', version: 4, returns: 2, cases: 1 });
  });

  it.each([
    ['more than was paid', { amountMinor: 2_000n }],
    ['another currency', { currency: 'USD' }],
    ['nothing', { amountMinor: 0n }],
  ] as const)('of %s is a contradiction: people have a case, the payment stays', async (_what, changes) => {
    const id = await make('succeeded');
    expect(await returns.recordReturn(back(id, changes))).toEqual({ kind: 'contradiction' });
    expect(await rowsOf(id)).toMatchObject({ state: 'succeeded', version: 3, returns: 0, cases: 1 });
  });

  it('under a name that another payment has, or with another amount, is a contradiction', async () => {
    const [first, second] = [await make('succeeded'), await make('succeeded')];
    const news = back(first);
    await returns.recordReturn(news);
    expect(await returns.recordReturn({ ...news, paymentId: second })).toEqual({ kind: 'contradiction' });
    expect(await returns.recordReturn({ ...news, amountMinor: 5n })).toEqual({ kind: 'contradiction' });
    expect(await rowsOf(second)).toMatchObject({ state: 'succeeded', returns: 0, cases: 1 });
    expect(await rowsOf(first)).toMatchObject({ state: 'returned', returns: 1, cases: 1 });
  });

  it.each(PAYMENT_STATES.filter((state) => state !== 'succeeded' && state !== 'returned'))(
    'of a payment that is %s moves nothing',
    async (state) => {
      const id = await make(state);
      const before = await rowsOf(id);
      const isOpen = ['submitting', 'submitted', 'unknown', 'needs_review'].includes(state);
      const news = back(id);
      for (let i = 0; i < 2; i++) {
        expect(await returns.recordReturn(news)).toEqual(
          isOpen ? { kind: 'too_early', state } : { kind: 'contradiction' },
        );
      }
      expect(await rowsOf(id)).toEqual({ ...before, evidence: 1, cases: isOpen ? 0 : 1 });
    },
  );

  it('of a payment that is not there is missing', async () => {
    expect(await returns.recordReturn(back(`pay_${'a'.repeat(32)}`))).toEqual({ kind: 'missing' });
  });
});
