import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Bucket } from '../../src/reconciliation/settlement-line.js';
import type { ErrorKind, InjectedError } from '../../src/simulator/settlement/settlement-error.js';
import { generateSettlement as simulate } from '../../src/simulator/settlement/settlement-generator.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  answerCounts,
  DISCREPANCIES,
  generateSettlement,
  type Answer,
  type Generated,
} from '../support/settlement-generator.js';
import { bulkPayments, importRig, insertTruth, type ImportRig } from '../support/settlement-world.js';

const ROWS = 20_000;
const INJECTED = 500;
const DAY_MS = 86_400_000;

let db: TestDatabase;
let rig: ImportRig;
beforeEach(async () => {
  db = await createTestDatabase();
  rig = importRig(db);
});
afterEach(async () => {
  rig.close();
  await db.drop();
});

const key = (answer: Answer): string => `${answer.row ?? '-'} ${answer.bucket} ${answer.paymentId ?? '-'}`;

/** Every row of trouble that is stored, also beyond what a report names. */
async function found(): Promise<readonly string[]> {
  const rows = await db.query<{ row: number | null; bucket: Answer['bucket']; paymentId: string | null }>(
    `SELECT row_no AS row, bucket, payment_id AS "paymentId" FROM settlement_row
      WHERE bucket NOT IN ('matched', 'other')
     UNION ALL SELECT row_no, bucket, NULL FROM settlement_fault
     UNION ALL SELECT NULL, 'missing_at_provider', payment_id FROM settlement_missing`,
  );
  return rows.map(key).sort();
}

describe('a file of 20,000 rows with 500 injected discrepancies', () => {
  it('is judged without a miss and without a false alarm, and settles what is open', async () => {
    const [tenant, lane] = [await seedTenant(db.database), await seedLane(db.database)];
    const now = Date.now();
    const payments = await bulkPayments(db, {
      tenant,
      lane,
      mix: [
        ['succeeded', ROWS - 300],
        ['unknown', 100],
        ['submitted', 80],
        ['needs_review', 20],
        ['failed', 50],
        ['cancelled', 50],
      ],
      startedAtMs: now - 12 * DAY_MS,
    });
    const generated: Generated = generateSettlement({
      seed: 20_270_301,
      payments,
      discrepancies: INJECTED,
      cutOffMs: now - DAY_MS,
    });
    expect(generated.rows).toBeGreaterThan(ROWS - 500);
    const { report, followedUp } = await rig.import(generated.csv);

    const answers = generated.answers.map(key).sort();
    expect(await found()).toEqual(answers);
    const { matched, other, ...trouble } = report.counts;
    const { matched: _matched, other: _other, ...expected } = answerCounts(generated.answers);
    expect(trouble).toEqual(expected);
    expect(other).toBe(2);
    expect(matched).toBe(
      generated.rows - 2 - generated.answers.filter((answer) => answer.row !== null).length,
    );
    expect(followedUp).toMatchObject({ settled: 200, waiting: 0, failed: 0 });
    expect(followedUp.returned).toBe(INJECTED / DISCREPANCIES.length);
    const open = await db.query(
      `SELECT id FROM payment WHERE state IN ('unknown', 'submitted', 'needs_review')`,
    );
    expect(open).toEqual([]);

    const counts = await db.query<{ bucket: string; rows: bigint }>(
      `SELECT bucket, rows FROM settlement_count`,
    );
    const counted = Object.fromEntries(counts.map(({ bucket, rows }) => [bucket, Number(rows)]));
    expect(counted).toEqual(Object.fromEntries(Object.entries(report.counts).filter(([, n]) => n > 0)));
  });
});

const BUCKET_OF: Readonly<Record<ErrorKind, Bucket>> = {
  missing_row: 'missing_at_provider',
  amount_differs: 'amount_differs',
  currency_differs: 'currency_differs',
  fee_differs: 'fee_differs',
  duplicate_row: 'duplicate',
  unexpected_row: 'unexpected_at_provider',
  sign_flip: 'sign_flipped',
  returned_after_success: 'returned',
  late: 'late',
};

describe("a file of the simulator's generator, which shares no code with the product", () => {
  it.each(['csv', 'camt053'] as const)('in %s is judged as its answer sheet says', async (format) => {
    const [tenant, lane] = [await seedTenant(db.database), await seedLane(db.database)];
    const from = Date.now() - 40 * DAY_MS;
    const file = rig.write('');
    const made = await simulate({ rows: 4_000, errors: 400, seed: 'settlement', file, format, from });
    const truth = readFileSync(made.paymentsFile, 'utf8').trim().split('\n').slice(1);
    await insertTruth(
      db,
      truth.map((text) => {
        const [reference = '', providerRef = '', amountMinor = '', currency = '', at = ''] = text.split(',');
        return { id: reference.split('/')[0] ?? '', providerRef, amountMinor, currency, at };
      }),
      { tenant, lane, provider: 'simulated' },
    );
    const { report } = await rig.service.importFile({ path: file, provider: 'simulated', format });

    const sheet = readFileSync(made.answersFile, 'utf8')
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as InjectedError)
      // A statement books the fee as an entry of its own, which no payment can be compared with.
      .filter(({ error }) => format === 'csv' || error !== 'fee_differs');
    const answers = sheet.map(({ error, reference, txn_id }) =>
      error === 'missing_row'
        ? `${BUCKET_OF[error]} ${reference.split('/')[0]}`
        : `${BUCKET_OF[error]} ${txn_id}`,
    );
    // A row that stands twice in a statement brings its fee's entry twice.
    const trouble = report.trouble.filter((row) => row.txnId?.endsWith('_fee') !== true);
    const told = trouble.map((row) => `${row.bucket} ${row.txnId ?? row.paymentId}`);
    expect(report.troubleLeftOut).toBe(0);
    expect(told.sort()).toEqual(answers.sort());
  });
});
