// Stripe's stand-ins that nobody here wrote: how each is installed (exact version, hashes), started as a
// process of its own on loopback, and what it can and cannot show.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const at = (...parts) => path.join(root, 'test', 'fakes', ...parts);
const cache = () =>
  path.join(process.env.PAYMENTS_CACHE_DIR ?? path.join(os.homedir(), '.cache', 'payments'), 'stripe-fakes');

/** An install hangs sometimes; after this it is killed. */
const INSTALL_LIMIT_MS = 5 * 60 * 1000;
const limited = { timeout: INSTALL_LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 16 * 1024 * 1024 };

const STRIPE_MOCK = 'github.com/stripe/stripe-mock';
const STRIPE_MOCK_VERSION = 'v0.203.0';
const STRIPE_MOCK_SUM = 'h1:EzW7nb/fphqcAkgVRHAaC88OaAZo6SBWSl54cflDTio=';

/**
 * @typedef {{
 *   name: string, version: string, licence: string, from: string,
 *   install(folder: string): Promise<void>,
 *   command(folder: string, port: number): { program: string, args: string[], env?: Record<string, string> },
 *   shows: string, cannotShow: string }} Fake
 */

/** @type {readonly Fake[]} */
export const FAKES = [
  {
    name: 'stripe-stateful-mock',
    version: '0.0.16',
    licence: 'MIT',
    from: 'npm',
    install: (folder) => installByNpm('stripe-stateful-mock', folder),
    command: (folder, port) => ({
      program: process.execPath,
      args: [at('launch', 'stripe-stateful-mock.cjs'), folder, String(port)],
    }),
    shows: 'our keys: replay marked as such, 400 for other parameters, a stored 402 and a stored 500.',
    cannotShow:
      'transfers and PaymentIntents (it has charges only), the end of a key’s life, two requests at once.',
  },
  {
    name: 'emulate',
    version: '0.12.2',
    licence: 'Apache-2.0',
    from: 'npm',
    install: (folder) => installByNpm('emulate', folder),
    command: (folder, port) => ({
      program: process.execPath,
      args: [at('launch', 'emulate.mjs'), folder, String(port)],
    }),
    shows:
      'one charge through crashes between create and confirm where keys are ignored; 404 without `error`.',
    cannotShow: 'keys, declines, transfers, statuses other than open, succeeded and cancelled.',
  },
  {
    name: 'localstripe',
    version: '1.15.10',
    licence: 'GPL-3.0, never part of this repository',
    from: 'PyPI',
    install: installByPip,
    command: (folder, port) => ({
      program: python(),
      args: [at('launch', 'serve_localstripe.py'), folder, String(port)],
      env: { PYTHONPATH: path.join(folder, 'site'), PYTHONDONTWRITEBYTECODE: '1' },
    }),
    shows: 'the same, with declines and a customer who must authenticate.',
    cannotShow:
      'keys, transfers, metadata filters; it does not know `confirmation_method` and `off_session`, which the ' +
      'relay before it takes out.',
  },
  {
    name: 'stripe-mock',
    version: STRIPE_MOCK_VERSION.slice(1),
    licence: 'MIT',
    from: 'the Go module proxy',
    install: installByGo,
    command: (folder, port) => ({
      program: path.join(folder, 'stripe-mock'),
      args: ['-http-addr', `127.0.0.1:${port}`],
    }),
    shows: 'that Stripe’s own schema accepts the parameters of our transfers and PaymentIntents.',
    cannotShow: 'anything that depends on state: it answers with fixtures and remembers nothing.',
  },
];

/** @returns {Promise<string>} the folder with the installed fake. @throws Error with one sentence. */
export async function installed({ name, version, install }) {
  const folder = path.join(cache(), `${name}-${version}`);
  const stamp = path.join(folder, '.installed');
  if (fs.existsSync(stamp)) return folder;
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  try {
    await install(folder);
  } catch (error) {
    fs.rmSync(folder, { recursive: true, force: true });
    throw new Error(`it could not be installed: ${lastLine(error)}`, { cause: error });
  }
  fs.writeFileSync(stamp, version);
  return folder;
}

/** From a lock file with a hash of every package; no script of any of them runs. */
async function installByNpm(name, folder) {
  for (const file of ['package.json', 'package-lock.json']) {
    fs.copyFileSync(at('installs', name, file), path.join(folder, file));
  }
  const npm = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', npm, { ...limited, cwd: folder });
}

/** Two steps: localstripe is source only, and what builds it has a hash too. */
async function installByPip(folder) {
  const requirements = at('installs', 'localstripe', 'requirements.txt');
  const build = path.join(folder, 'build.txt');
  const blocks = fs.readFileSync(requirements, 'utf8').split(/\n(?=[a-z])/);
  fs.writeFileSync(build, blocks.find((block) => block.startsWith('setuptools==')) ?? '');
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-warn-script-location'];
  const strict = ['--require-hashes', '--no-deps'];
  const tools = path.join(folder, 'tools');
  await run(python(), [...pip, ...strict, '--only-binary=:all:', '--target', tools, '-r', build], limited);
  const site = path.join(folder, 'site');
  const args = [...pip, ...strict, '--no-build-isolation', '--target', site, '-r', requirements];
  await run(python(), args, { ...limited, env: { ...process.env, PYTHONPATH: tools } });
}

/** The module's own hash is compared before anything of it is built. */
async function installByGo(folder) {
  const target = `${STRIPE_MOCK}@${STRIPE_MOCK_VERSION}`;
  const env = { ...process.env, GOBIN: folder, GOFLAGS: '-mod=mod', CGO_ENABLED: '0' };
  const { stdout } = await run('go', ['mod', 'download', '-json', target], {
    ...limited,
    env,
    cwd: os.tmpdir(),
  });
  const { Sum } = JSON.parse(stdout);
  if (Sum !== STRIPE_MOCK_SUM) throw new Error(`the module has the hash ${Sum}, not the one that is pinned.`);
  await run('go', ['install', target], { ...limited, env, cwd: os.tmpdir() });
}

function python() {
  return process.env.PYTHON ?? 'python3';
}

function lastLine(error) {
  if (error.code === 'ENOENT') return `${error.path ?? 'the program'} is not on this machine.`;
  if (error.killed) return `it took longer than ${INSTALL_LIMIT_MS / 60_000} minutes.`;
  const lines = `${error.stderr ?? ''}`.trim() || `${error.message}`;
  return lines.split('\n').at(-1) ?? '';
}
