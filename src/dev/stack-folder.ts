import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { StackError, systemCode } from './stack-error.js';
import { identify, isAlive, ProcessIdentity } from './process/process-identity.js';

const NEEDED_BYTES = 500_000_000;
const isRoot = process.getuid?.() === 0;

/** Paths inside the local folder. Removing the folder while the stack is down forgets everything. */
export interface StackFolder {
  readonly path: string;
  readonly logs: string;
  readonly pids: string;
  readonly stackFile: string;
  readonly lockFile: string;
  readonly keysFile: string;
  readonly apiKeysFile: string;
  /** Copies of the anchors, outside the database. */
  readonly anchors: string;
  /** Private key of the stack's own issuer of tokens, and the key set that the API reads. */
  readonly issuerKeyFile: string;
  readonly issuerKeySetFile: string;
  /** Secrets that sign the simulator's events, as the API reads them. */
  readonly webhookSecretsFile: string;
  readonly postgresFile: string;
  readonly postgresData: string;
  readonly temporalDatabase: string;
  readonly simulatorLedger: string;
}

/**
 * Creates the folder and its sub-folders; twice changes nothing.
 * @throws StackError when it cannot be written or its disk is nearly full.
 */
export function openStackFolder(path: string): StackFolder {
  const folder: StackFolder = {
    path,
    logs: join(path, 'logs'),
    pids: join(path, 'pids'),
    stackFile: join(path, 'stack.json'),
    lockFile: join(path, 'stack.lock'),
    keysFile: join(path, 'keys.json'),
    apiKeysFile: join(path, 'api-keys.json'),
    anchors: join(path, 'anchors'),
    issuerKeyFile: join(path, 'issuer-key.json'),
    issuerKeySetFile: join(path, 'issuer-key-set.json'),
    webhookSecretsFile: join(path, 'webhook-secrets.json'),
    postgresFile: join(path, 'postgres.json'),
    postgresData: join(path, 'postgres'),
    temporalDatabase: join(path, 'temporal.sqlite'),
    simulatorLedger: join(path, 'simulator-ledger.jsonl'),
  };
  // Root starts Postgres as another user, who must be able to pass through.
  const mode = isRoot ? 0o711 : 0o700;
  try {
    for (const each of [path, folder.logs, folder.pids]) mkdirSync(each, { recursive: true, mode });
  } catch (error) {
    throw new StackError(
      `${path} cannot be written (${systemCode(error)}). PAYMENTS_LOCAL_DIR moves the folder.`,
    );
  }
  requireDisk(path);
  return folder;
}

/** @throws StackError when fewer bytes than needed (500 MB) are free where `path` lies. */
export function requireDisk(path: string, neededBytes = NEEDED_BYTES): void {
  const disk = statfsSync(path);
  const free = disk.bavail * disk.bsize;
  if (free >= neededBytes) return;
  const mb = (bytes: number) => `${Math.floor(bytes / 1e6)} MB`;
  throw new StackError(`${path} has ${mb(free)} of disk left; the local stack needs ${mb(neededBytes)}.`);
}

/** Replaces a file in one step, readable by its owner alone: readers see the old or the new content. */
export function writePrivately(file: string, content: unknown): void {
  const draft = `${file}.${randomBytes(4).toString('hex')}`;
  writeFileSync(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(draft, file);
}

/** @returns the parsed content, or null when the file does not exist. */
export function readJsonFile(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new StackError(`${file} is damaged. Remove ${dirname(file)} to begin anew.`);
  }
}

/** Notes a child, so that a start after a kill finds it. Call it right after the spawn. */
export function recordChild(folder: StackFolder, name: string, pid: number): void {
  const identity = identify(pid);
  if (identity) writePrivately(join(folder.pids, `${name}.json`), identity);
}

export function forgetChild(folder: StackFolder, name: string): void {
  rmSync(join(folder.pids, `${name}.json`), { force: true });
}

export interface RecordedChild {
  readonly name: string;
  readonly identity: ProcessIdentity;
}

/** Children on record that still live, and nobody else: number and start time must both match. */
export function livingChildren(folder: StackFolder): RecordedChild[] {
  return readdirSync(folder.pids)
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => {
      const identity = ProcessIdentity.safeParse(readJsonFile(join(folder.pids, file)));
      if (!identity.success || !isAlive(identity.data)) return [];
      return [{ name: file.slice(0, -'.json'.length), identity: identity.data }];
    });
}
