import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openStackFolder, readJsonFile, requireDisk } from '../../../src/dev/stack-folder.js';
import { temporaryFolder } from './temporary-folder.js';

describe('folder of a local stack', () => {
  it('is made whole, and again without a change', () => {
    const path = join(temporaryFolder(), 'a', 'b');
    const folder = openStackFolder(path);
    expect(openStackFolder(path)).toEqual(folder);
    // Others may pass through at most (root's Postgres is another user), never list or read.
    for (const each of [path, folder.logs, folder.pids]) expect(statSync(each).mode & 0o066).toBe(0);
  });

  it('that cannot be written is refused with the variable that moves it', () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    expect(() => openStackFolder(join(file, 'stack'))).toThrow(/cannot be written.*PAYMENTS_LOCAL_DIR/);
  });

  it('on a disk that is nearly full is refused with both figures', () => {
    const folder = temporaryFolder();
    requireDisk(folder, 1);
    expect(() => requireDisk(folder, 1e18)).toThrow(/has \d+ MB of disk left; .* needs 1000000000000 MB/);
  });

  it('reads an absent file as nothing', () => {
    expect(readJsonFile(join(temporaryFolder(), 'none.json'))).toBeNull();
  });
});
