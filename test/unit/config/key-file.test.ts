import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { KeyFile, type KeySet } from '../../../src/config/key-file.js';
import { KeyRing } from '../../../src/encryption/key-ring.js';
import { newKeySet } from '../../support/ciphers.js';
import { until } from '../../support/until.js';

const folder = mkdtempSync(join(tmpdir(), 'payments-key-file-'));
const path = join(folder, 'keys.json');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As a mounted secret is replaced: another file takes the place of this one. */
function write(encryption: KeySet, digest: KeySet = newKeySet('d1')): void {
  const file = { encryption, digest, pepper: newKeySet('p1'), cursor: newKeySet('c1') };
  writeFileSync(`${path}.new`, JSON.stringify(file));
  renameSync(`${path}.new`, path);
}

const first = newKeySet('k1');
const both: KeySet = { active: 'k2', keys: { ...first.keys, ...newKeySet('k2').keys } };
const open = (): KeyFile => new KeyFile(path, 'development');

beforeEach(() => {
  write(first);
});

describe('the key file of a running process', () => {
  it('is followed by whoever holds one of its sets', () => {
    const file = open();
    const ring = new KeyRing(file.keys.encryption);
    expect(ring.active.id).toBe('k1');
    write(both);
    file.read();
    expect(ring.active.id).toBe('k2');
    expect(ring.find('k1').id).toBe('k1');
  });

  it('is noticed by polling, once for each change', async () => {
    const file = open();
    let changes = 0;
    const stop = file.watch({ changed: () => changes++, refused: () => undefined });
    write(both);
    await until('the change', () => file.keys.encryption.active, (active) => active === 'k2'); // prettier-ignore
    file.read();
    stop();
    expect(changes).toBe(1);
  });

  it('that does not pass its checks changes nothing and is told once', () => {
    const file = open();
    const refused: unknown[] = [];
    const stop = file.watch({ changed: () => expect.unreachable(), refused: (error) => refused.push(error) });
    write({ active: 'k9', keys: first.keys });
    file.read();
    file.read();
    rmSync(path);
    file.read();
    stop();
    expect(refused.map(String)).toEqual([
      expect.stringContaining('lacks its active key'),
      expect.stringContaining('cannot be read'),
    ]);
    expect(file.keys.encryption).toMatchObject(first);
  });

  it('is read at once for a key id that it lacks, however lately it was read', () => {
    const file = open();
    const ring = new KeyRing(file.keys.encryption);
    expect(() => ring.find('k2')).toThrow('no key of the id');
    file.read();
    write(both);
    expect(ring.find('k2').id).toBe('k2');
    rmSync(path);
    expect(() => ring.find('k3')).toThrow('no key of the id');
    expect(ring.active.id).toBe('k2');
    write({ active: 'k3', keys: { ...both.keys, ...newKeySet('k3').keys } });
    expect(ring.find('k3').id).toBe('k3');
  });

  it('that nobody changed is not read again, however often rows name a key that it lacks', () => {
    const file = open();
    const ring = new KeyRing(file.keys.encryption);
    const read = vi.spyOn(file, 'read');
    for (let row = 0; row < 100; row++) expect(() => ring.find('k2')).toThrow('no key of the id');
    expect(read).not.toHaveBeenCalled();
    write(both);
    for (let row = 0; row < 100; row++) expect(ring.find('k2').id).toBe('k2');
    expect(read).toHaveBeenCalledTimes(1);
  });
});
