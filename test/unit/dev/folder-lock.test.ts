import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lockFolder } from '../../../src/dev/folder-lock.js';
import { identify } from '../../../src/dev/process/process-identity.js';
import { temporaryFolder } from './temporary-folder.js';

const lockIn = (folder: string) => join(folder, 'stack.lock');

describe('lock of a stack folder', () => {
  it('names the living process that holds it', () => {
    const lock = lockIn(temporaryFolder());
    const release = lockFolder(lock);
    expect(() => lockFolder(lock)).toThrow(`(process ${process.pid})`);
    release();
    lockFolder(lock)();
  });

  it('takes over from a process that ended and leaves no other file behind', () => {
    const folder = temporaryFolder();
    writeFileSync(lockIn(folder), JSON.stringify({ pid: 2 ** 22 + 1, startedAt: 'long ago' }));
    lockFolder(lockIn(folder));
    expect(JSON.parse(readFileSync(lockIn(folder), 'utf8'))).toEqual(identify(process.pid));
    expect(readdirSync(folder)).toEqual(['stack.lock']);
  });

  it('takes over when a stranger has got the number of the holder', () => {
    const lock = lockIn(temporaryFolder());
    writeFileSync(lock, JSON.stringify({ pid: process.pid, startedAt: 'another start' }));
    lockFolder(lock)();
  });

  it('takes over a file that holds nothing usable', () => {
    const lock = lockIn(temporaryFolder());
    writeFileSync(lock, '');
    lockFolder(lock)();
  });
});
