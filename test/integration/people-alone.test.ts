import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ProviderNews } from '../../src/payments/provider-news.service.js';
import { openCase, settleInReview } from '../../src/payments/review-moves.js';
import { REASONS_FOR_PEOPLE_ALONE } from '../../src/payments/review-reasons.js';
import { settleByLine } from '../../src/payments/settlement-moves.js';
import { settleByLookup } from '../../src/submission/inquiry.store.js';
import { readOpenOutcome } from '../../src/submission/open-outcome.store.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { addEvidence, openGeneration, paymentIn } from '../support/payment-states.js';
import { resultOf } from '../support/results.js';

/** In review for a reason that only people close, by whatever way plain news comes. */

let db: TestDatabase;
let tenant: string;
let lane: string;
beforeAll(async () => {
  db = await createTestDatabase();
  tenant = await seedTenant(db.database);
  lane = await seedLane(db.database);
});
afterAll(() => db.drop());

/** In review; its case has this reason. */
async function reviewed(reason: string): Promise<string> {
  const id = await paymentIn('needs_review', db.database, { tenant, lane });
  await db.query(`UPDATE review_case SET reason = $2 WHERE payment_id = $1`, [id, reason]);
  return id;
}

const HIT = { ...resultOf('accepted'), status: 'succeeded' } as const;

/** Every way by which the provider's plain word reaches a payment in review. */
const WAYS = {
  lookup: async (id: string) => {
    const payment = await readOpenOutcome(db.database, id);
    if (!payment) throw new Error(`no payment ${id}`);
    await settleByLookup(
      db.database,
      payment,
      { kind: 'found', result: HIT },
      'succeeded',
      'worker:test',
      30_000,
    );
  },
  webhook: async (id: string) => {
    const news = new ProviderNews(db.database, 30_000);
    const refs = { provider: 'simulated', account: 'test', paymentId: id };
    const target = await news.find({ ...refs, providerKey: null, generation: null, providerRef: null });
    if (!target) throw new Error(`nothing fits ${id}`);
    await news.record(target, { source: 'webhook', actor: 'webhook:test', result: HIT });
  },
  settlement: (id: string) =>
    db.database.transaction((tx) =>
      settleByLine(tx, {
        ...{ paymentId: id, provider: 'simulated', generation: 1, providerRef: null },
        ...{ amountMinor: 1_999n, currency: 'EUR', kind: 'matched', code: null },
      }),
    ),
  gate: async (id: string) => {
    await addEvidence(db.database, id, {
      ...{ source: 'lookup', kind: 'found', status: 'succeeded', amount: 1_999n, currency: 'EUR' },
    });
    await settleInReview(db.database, {
      ...{ paymentId: id, to: 'succeeded', source: 'lookup', code: 'found' },
      ...{ providerRef: null, actor: 'test', nextActionInMs: null },
    });
  },
} as const satisfies Record<string, (id: string) => Promise<unknown>>;
const EACH_WAY = Object.entries(WAYS);

async function standing(id: string): Promise<readonly unknown[]> {
  return db.query(
    `SELECT p.state, p.version, c.reason FROM payment p
       LEFT JOIN review_case c ON c.payment_id = p.id AND c.closed_at IS NULL WHERE p.id = $1`,
    [id],
  );
}

const evidenceCount = async (id: string): Promise<number> =>
  (await db.query(`SELECT 1 FROM evidence WHERE payment_id = $1`, [id])).length;

describe.each(EACH_WAY)('a plain success by %s', (_way, tell) => {
  it.each(REASONS_FOR_PEOPLE_ALONE)(
    'leaves a case of %s to people, and is filed for them',
    async (reason) => {
      const id = await reviewed(reason);
      const [before, known] = [await standing(id), await evidenceCount(id)];
      await tell(id);
      expect(await standing(id)).toEqual(before);
      expect(await evidenceCount(id)).toBe(known + 1);
    },
  );

  it.each([
    ['lookup', 'found_other'],
    ['lookup', 'found_many'],
    ['answer', 'key_mismatch'],
    ['late_answer', 'key_mismatch'],
    ['settlement', 'amount_differs'],
    ['settlement', 'currency_differs'],
  ] as const)(
    'decides nothing where %s told of %s, whatever the case was opened for',
    async (source, kind) => {
      const id = await reviewed('inquiry_exhausted');
      await addEvidence(db.database, id, { source, kind });
      const before = await standing(id);
      await tell(id);
      expect(await standing(id)).toEqual(before);
    },
  );

  it('settles a payment that nobody could find out about, and closes its case (T20)', async () => {
    const id = await reviewed('inquiry_exhausted');
    await tell(id);
    expect(await standing(id)).toMatchObject([{ state: 'succeeded', reason: null }]);
  });
});

it('T20 takes no evidence of an earlier generation', async () => {
  const id = await reviewed('inquiry_exhausted');
  await openGeneration(db.database, id, 2);
  const before = await standing(id);
  await WAYS.gate(id);
  expect(await standing(id)).toEqual(before);
});

describe('the reason of an open case', () => {
  it('is raised to one for people alone, and the case stays one', async () => {
    const id = await reviewed('inquiry_exhausted');
    expect(await openCase(db.database, { paymentId: id, reason: 'settlement_differs' })).toBe(false);
    expect(await standing(id)).toMatchObject([{ reason: 'settlement_differs' }]);
    expect(await db.query(`SELECT 1 FROM review_case WHERE payment_id = $1`, [id])).toHaveLength(1);
  });

  it('is never lowered, and the first of two grave ones stays', async () => {
    const id = await reviewed('found_many');
    for (const reason of ['operator', 'contradiction'])
      await openCase(db.database, { paymentId: id, reason });
    expect(await standing(id)).toMatchObject([{ reason: 'found_many' }]);
  });
});
