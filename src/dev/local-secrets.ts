import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from './process/command.js';
import { StackError } from './stack-error.js';
import { parseApiKeys, type ApiKeys } from './stack-file.js';
import { readJsonFile, writePrivately, type StackFolder } from './stack-folder.js';

const KEY_BYTES = 32;
const SEED_WITHIN_MS = 60_000;

/**
 * Writes the key file on the first start: random keys, marked as development keys, which production
 * mode refuses. Later starts keep it: the rows in the database need these keys. A file of a release
 * without anchors gets keys for them.
 */
export function ensureKeysFile(folder: StackFolder): void {
  const keys = () => ({ 'local-1': randomBytes(KEY_BYTES).toString('base64') });
  const keySet = () => ({ active: 'local-1', keys: keys() });
  const anchor = { active: ['local-1'], keys: keys() };
  const stored = readJsonFile(folder.keysFile);
  if (stored !== null) {
    if (typeof stored !== 'object' || 'anchor' in stored) return;
    return writePrivately(folder.keysFile, { ...stored, anchor });
  }
  writePrivately(folder.keysFile, {
    development: true,
    encryption: keySet(),
    digest: keySet(),
    pepper: keySet(),
    cursor: keySet(),
    anchor,
  });
}

export interface OpsOptions {
  /** Folder of the checkout. */
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly limitMs: number;
}

/**
 * Runs one command of the operations program to its end and answers what it printed.
 * @throws StackError with its last lines when it fails.
 */
export async function runOps(args: readonly string[], options: OpsOptions): Promise<string> {
  const program = join(options.root, 'dist', 'src', 'main-ops.js');
  if (!existsSync(program)) throw new StackError(`${program} is missing. Run \`npm run build\`.`);
  const result = await runCommand(process.execPath, [program, ...args], {
    cwd: options.root,
    env: options.env,
    signal: options.signal,
    limitMs: options.limitMs,
  });
  return result.stdout;
}

/**
 * The API keys of the seeded tenants. The first start seeds and keeps the answer; later starts read
 * it: the database holds only digests, so the keys cannot be had again.
 */
export async function ensureApiKeys(
  folder: StackFolder,
  options: Omit<OpsOptions, 'limitMs'>,
): Promise<ApiKeys> {
  const stored = readJsonFile(folder.apiKeysFile);
  if (stored !== null) return parseApiKeys(stored);
  const printed = await runOps(['seed-local', '--json'], { ...options, limitMs: SEED_WITHIN_MS });
  const keys = readSeedAnswer(printed);
  writePrivately(folder.apiKeysFile, keys);
  return keys;
}

/** @throws StackError when the seed command did not print `{"api_keys": {…}}` as its last line. */
function readSeedAnswer(printed: string): ApiKeys {
  try {
    const last = printed.trim().split('\n').at(-1) ?? '';
    return parseApiKeys((JSON.parse(last) as { api_keys?: unknown }).api_keys);
  } catch {
    throw new StackError('`seed-local --json` did not print the API keys in the expected form.');
  }
}
