import { describe, expect, it } from 'vitest';
import { progressLine } from '../../../src/ops/reconcile.js';
import { payments } from '../../support/command-line.js';

describe('the progress of an import', () => {
  it('is a bar by bytes with rows and their pace while the file is read', () => {
    const line = progressLine({ phase: 'read', bytes: 500, rows: 40_000 }, 1_000, 2);
    expect(line).toBe('Reading [###############---------------] 50 %  40,000 rows, 20,000/s');
    expect(progressLine({ phase: 'identify', bytes: 0, rows: 0 }, 1_000, 0)).toContain(
      '[------------------------------] 0 %',
    );
  });

  it('never goes beyond its end, and an empty file is a full bar', () => {
    expect(progressLine({ phase: 'read', bytes: 2_000, rows: 1 }, 1_000, 1)).toContain('100 %');
    expect(progressLine({ phase: 'identify', bytes: 0, rows: 0 }, 0, 0)).toContain('100 %');
  });

  it('counts what is done after the file', () => {
    expect(progressLine({ phase: 'settle', bytes: 0, rows: 1_200 }, 1, 1)).toBe('Settling by lines: 1,200');
    expect(progressLine({ phase: 'missing', bytes: 0, rows: 3 }, 1, 1)).toContain(': 3');
  });
});

describe('payments reconcile', () => {
  it.each([
    ['without a file', ['reconcile'], /--file/],
    ['with a format that nobody reads', ['reconcile', '--file', 'x', '--format', 'mt940'], /csv, camt053/],
    ['without a database', ['reconcile', '--file', 'x'], /PAYMENTS_DATABASE_URL/],
  ])('%s is wrong usage: exit code 2', async (_, args, sentence) => {
    const ran = await payments(args);
    expect(ran.exitCode).toBe(2);
    expect(ran.err).toMatch(sentence);
  });

  it('that cannot reach Postgres, or find its file, could not reconcile: exit code 2, never clean', async () => {
    const env = { PAYMENTS_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
    const gone = await payments(['reconcile', '--file', 'none.csv', '--json'], env);
    expect([gone.exitCode, gone.json().error.message]).toEqual([2, 'The file cannot be read (ENOENT).']);
    const away = await payments(['reconcile', '--file', import.meta.filename], env);
    expect(away.exitCode).toBe(2);
    expect(away.err).toContain('Postgres could not be asked');
  });
});
