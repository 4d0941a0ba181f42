import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { arrayLiteral } from '../../src/persistence/array-literal.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(() => db.drop());

async function through(type: 'text' | 'bigint', literal: string): Promise<unknown> {
  const [row] = await db.query<{ values: unknown }>(`SELECT $1::${type}[] AS values`, [literal]);
  return row?.values;
}

describe('an array literal', () => {
  it('brings every text and every null through Postgres as it is', async () => {
    const values = ['', 'NULL', 'null', 'Null', null, 'a', '"', '\\', '\\"', '{}', '{', ',', ' ', ' a ', '\n', '\t', 'é', '😀',
      "'", '$1', '--', 'NULLS', '-1', '2026-12-01T00:00:00Z', '/*']; // prettier-ignore
    expect(await through('text', arrayLiteral(values))).toEqual(values);
    expect(await through('text', arrayLiteral([]))).toEqual([]);
  });

  it('brings through whatever text there is', async () => {
    const text = fc.string({ unit: 'binary' }).filter((each) => !each.includes('\0') && each.isWellFormed());
    const property = fc.asyncProperty(fc.array(fc.option(text), { maxLength: 20 }), async (values) => {
      expect(await through('text', arrayLiteral(values))).toEqual(values);
    });
    await fc.assert(property, { numRuns: 300 });
  });

  it('brings integers through without loss', async () => {
    const values = [0n, -1n, 9_223_372_036_854_775_807n, -9_223_372_036_854_775_808n, null];
    const stored = (await through('bigint', arrayLiteral(values))) as (string | null)[];
    expect(stored.map((each) => (each === null ? null : BigInt(each)))).toEqual(values);
    expect(await through('bigint', arrayLiteral([7]))).toEqual(['7']);
  });
});
