import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readKeysFile } from '../../../src/config/config.js';
import { ensureApiKeys, ensureKeysFile } from '../../../src/dev/local-secrets.js';
import { openStackFolder } from '../../../src/dev/stack-folder.js';
import { temporaryFolder } from './temporary-folder.js';

const API_KEYS = { client: 'ps_1', client_readonly: 'ps_2', other_tenant: 'ps_3' };

/** A checkout whose operations program runs `script` and counts its runs in a file. */
function checkout(script: string): { root: string; runs: () => number } {
  const root = temporaryFolder();
  const counter = join(root, 'runs');
  mkdirSync(join(root, 'dist', 'src'), { recursive: true });
  writeFileSync(counter, '');
  writeFileSync(
    join(root, 'dist', 'src', 'main-ops.js'),
    `require('node:fs').appendFileSync(${JSON.stringify(counter)}, 'x');\n${script}`,
  );
  return { root, runs: () => readFileSync(counter, 'utf8').length };
}

const options = (root: string) => ({ root, env: process.env, signal: new AbortController().signal });

describe('key file of a local stack', () => {
  it('is accepted in development, refused in production and private', () => {
    const folder = openStackFolder(temporaryFolder());
    ensureKeysFile(folder);
    expect(statSync(folder.keysFile).mode & 0o777).toBe(0o600);
    const keys = readKeysFile(folder.keysFile, 'development');
    const sets = [keys.encryption, keys.digest, keys.pepper, keys.cursor, keys.anchor];
    const all = sets.flatMap((set) => Object.values(set?.keys ?? {}));
    expect(new Set(all).size).toBe(5);
    expect(() => readKeysFile(folder.keysFile, 'production')).toThrow('development');
  });

  it('stays the same on a second start: the rows need its keys', () => {
    const folder = openStackFolder(temporaryFolder());
    ensureKeysFile(folder);
    const before = readFileSync(folder.keysFile, 'utf8');
    ensureKeysFile(folder);
    expect(readFileSync(folder.keysFile, 'utf8')).toBe(before);
  });

  it('of a release without anchors gets keys for them and keeps the others', () => {
    const folder = openStackFolder(temporaryFolder());
    ensureKeysFile(folder);
    const { anchor, ...before } = JSON.parse(readFileSync(folder.keysFile, 'utf8')) as { anchor: object };
    expect(anchor).toBeDefined();
    writeFileSync(folder.keysFile, JSON.stringify(before));
    ensureKeysFile(folder);
    expect(readKeysFile(folder.keysFile, 'development')).toMatchObject(before);
    expect(readKeysFile(folder.keysFile, 'development').anchor?.active).toEqual(['local-1']);
    expect(statSync(folder.keysFile).mode & 0o777).toBe(0o600);
  });
});

describe('API keys of a local stack', () => {
  it('are seeded once and kept, readable by their owner alone', async () => {
    const folder = openStackFolder(temporaryFolder());
    const answer = JSON.stringify(JSON.stringify({ api_keys: API_KEYS }));
    const { root, runs } = checkout(`console.log('seeding'); console.log(${answer});`);
    expect(await ensureApiKeys(folder, options(root))).toEqual(API_KEYS);
    expect(await ensureApiKeys(folder, options(root))).toEqual(API_KEYS);
    expect(runs()).toBe(1);
    expect(statSync(folder.apiKeysFile).mode & 0o777).toBe(0o600);
  });

  it('are not kept when the seed fails, and the failure shows what it said', async () => {
    const folder = openStackFolder(temporaryFolder());
    const { root, runs } = checkout(`console.error('the schema is missing'); process.exit(3);`);
    await expect(ensureApiKeys(folder, options(root))).rejects.toThrow('the schema is missing');
    await expect(ensureApiKeys(folder, options(root))).rejects.toThrow('exit code 3');
    expect(runs()).toBe(2);
  });

  it('are refused when one of them is missing from the answer', async () => {
    const folder = openStackFolder(temporaryFolder());
    const { root } = checkout(`console.log('{"api_keys":{"client":"ps_1"}}');`);
    await expect(ensureApiKeys(folder, options(root))).rejects.toThrow('expected form');
  });

  it('cannot be made before the build', async () => {
    const folder = openStackFolder(temporaryFolder());
    await expect(ensureApiKeys(folder, options(temporaryFolder()))).rejects.toThrow('npm run build');
  });
});
