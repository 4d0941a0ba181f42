import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LedgerFile } from '../../../src/simulator/ledger-file.js';

describe('the ledger file', () => {
  let folder: string;
  let path: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-'));
    path = join(folder, 'new', 'ledger.jsonl');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('calls back only after the lines of the turn are in the file', async () => {
    const { file } = LedgerFile.open(path);
    file.append({ n: 1 });
    file.append({ n: 2 });
    expect(readFileSync(path, 'utf8')).toBe('');
    const seen = await new Promise<string>((resolve) =>
      file.whenWritten(() => resolve(readFileSync(path, 'utf8'))),
    );
    expect(seen).toBe('{"n":1}\n{"n":2}\n');
  });

  it('calls back at once when nothing waits', () => {
    const { file } = LedgerFile.open(path);
    let called = false;
    file.whenWritten(() => (called = true));
    expect(called).toBe(true);
  });

  it('reads back what it wrote, and goes on behind it', () => {
    const first = LedgerFile.open(path).file;
    first.append({ text: 'ä\n' });
    first.close();
    const second = LedgerFile.open(path);
    expect(second.records).toEqual([{ text: 'ä\n' }]);
    second.file.append({ n: 2 });
    second.file.close();
    expect(LedgerFile.open(path).records).toEqual([{ text: 'ä\n' }, { n: 2 }]);
  });

  it('cuts off a last line that a kill left unfinished', () => {
    LedgerFile.open(path).file.close();
    writeFileSync(path, '{"n":1}\n{"n":');
    const { file, records } = LedgerFile.open(path);
    expect(records).toEqual([{ n: 1 }]);
    file.append({ n: 2 });
    file.close();
    expect(readFileSync(path, 'utf8')).toBe('{"n":1}\n{"n":2}\n');
  });

  it('refuses a damaged line with its number', () => {
    LedgerFile.open(path).file.close();
    appendFileSync(path, '{"n":1}\nnonsense\n{"n":3}\n');
    expect(() => LedgerFile.open(path)).toThrow(/^Line 2 of the simulator's ledger is not JSON/);
  });
});
