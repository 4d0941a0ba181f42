import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  answerCounts,
  DISCREPANCIES,
  generateSettlement,
  type Answer,
  type Generated,
} from '../support/settlement-generator.js';
import { bulkPayments, importRig, type ImportRig } from '../support/settlement-world.js';

const ROWS = 20_000;
const INJECTED = 500;
const DAY_MS = 86_400_000;

let db: TestDatabase;
let rig: ImportRig;
beforeAll(async () => {
  db = await createTestDatabase();
  rig = importRig(db);
});
afterAll(async () => {
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
