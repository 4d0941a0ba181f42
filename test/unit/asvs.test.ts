import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const VERDICTS = ['holds', 'by design', 'operator', 'no such part'];

/** Sections of levels 1 and 2 in version 5.0 and how many requirements of them these levels have. */
const SECTIONS: Readonly<Record<string, number>> = {
  '1.1': 2, '1.2': 9, '1.3': 11, '1.4': 3, '1.5': 2, '2.1': 3, '2.2': 3, '2.3': 4, '2.4': 1, '3.2': 2, '3.3': 4,
  '3.4': 6, '3.5': 5, '3.7': 2, '4.1': 3, '4.2': 1, '4.3': 2, '4.4': 4, '5.1': 1, '5.2': 3, '5.3': 2, '5.4': 3,
  '6.1': 3, '6.2': 12, '6.3': 4, '6.4': 4, '6.5': 5, '6.6': 3, '6.8': 4, '7.1': 3, '7.2': 4, '7.3': 2, '7.4': 5,
  '7.5': 2, '7.6': 2, '8.1': 2, '8.2': 3, '8.3': 1, '8.4': 1, '9.1': 3, '9.2': 4, '10.1': 2, '10.2': 2, '10.3': 4,
  '10.4': 11, '10.5': 5, '10.6': 2, '10.7': 3, '11.1': 2, '11.2': 3, '11.3': 3, '11.4': 4, '11.5': 1, '11.6': 1,
  '12.1': 3, '12.2': 2, '12.3': 4, '13.1': 1, '13.2': 5, '13.3': 2, '13.4': 5, '14.1': 2, '14.2': 4, '14.3': 3,
  '15.1': 3, '15.2': 3, '15.3': 7, '16.1': 1, '16.2': 5, '16.3': 4, '16.4': 3, '16.5': 3, '17.1': 1, '17.2': 4,
  '17.3': 2,
}; // prettier-ignore

interface Row {
  readonly items: readonly string[];
  readonly verdict: string;
  readonly reason: string;
  readonly tests: readonly string[];
}

const rows: readonly Row[] = readFileSync(resolve(root, 'docs/asvs.md'), 'utf8')
  .split('\n')
  .flatMap((line) => {
    const m = /^\| (\d[\d., ]*?) +\| ([a-z ]+?) +\| (.+?) +\|$/.exec(line);
    if (m === null) return [];
    const reason = m[3] ?? '';
    const tests = [...reason.matchAll(/`(test\/[^`]+)`/g)].map((found) => found[1] ?? '');
    return [{ items: (m[1] ?? '').split(', '), verdict: m[2] ?? '', reason, tests }];
  });

describe('the page on OWASP ASVS', () => {
  it('answers each requirement of levels 1 and 2 once', () => {
    const asked = Object.entries(SECTIONS).flatMap(([section, count]) =>
      Array.from({ length: count }, (_, i) => `${section}.${i + 1}`),
    );
    expect(asked).toHaveLength(253);
    expect(rows.flatMap((row) => row.items).sort()).toEqual([...asked].sort());
  });

  it('knows four answers, and gives a test wherever it says that something holds', () => {
    expect(rows.filter((row) => !VERDICTS.includes(row.verdict))).toEqual([]);
    expect(rows.filter((row) => row.verdict === 'holds' && row.tests.length === 0)).toEqual([]);
    expect(rows.filter((row) => row.reason.trim() === '')).toEqual([]);
  });

  it('names tests that exist', () => {
    const named = [...new Set(rows.flatMap((row) => row.tests))];
    expect(named.filter((file) => !existsSync(resolve(root, file)))).toEqual([]);
  });
});
