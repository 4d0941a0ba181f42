import { createHash, randomBytes } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/** What `Worker.create` and `Worker.runReplayHistories` take. */
export interface WorkflowBundle {
  readonly code: string;
}

/** Replaces text of one workflow source; `find` must be there exactly once. */
export interface SourceChange {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const KEPT = join(ROOT, 'node_modules/.cache/workflow-bundles');
/** Workflow code and the only folder of `src` that it may import. */
const SOURCES = ['workflows', 'src/domain'];

/**
 * The bundle of today's workflow code, or of a copy with one change. Bundling takes seconds, so the
 * result is kept under the hash of every source and of the SDK's version: each test file of a run
 * loads the same bytes. Twice, also in two processes at once: the same bundle.
 * @throws Error when the change does not fit the source.
 */
export async function workflowBundle(change?: SourceChange): Promise<WorkflowBundle> {
  const sources = readSources();
  if (change) apply(sources, change);
  const kept = join(KEPT, `${hashOf(sources)}.js`);
  const known = readIfThere(kept);
  if (known !== null) return { code: known };
  const { code } = change ? await bundleCopy(sources) : await bundleFolder(ROOT);
  mkdirSync(KEPT, { recursive: true });
  const draft = `${kept}.${randomBytes(4).toString('hex')}`;
  writeFileSync(draft, code);
  renameSync(draft, kept);
  return { code };
}

function readSources(): Map<string, string> {
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  );
  return new Map(files.sort().map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
}

function apply(sources: Map<string, string>, { file, find, replace }: SourceChange): void {
  const parts = sources.get(file)?.split(find) ?? [];
  if (parts.length !== 2) {
    throw new Error(
      `${file} holds the text to change ${Math.max(0, parts.length - 1)} times, not once: ${find}`,
    );
  }
  sources.set(file, parts.join(replace));
}

function hashOf(sources: ReadonlyMap<string, string>): string {
  const sdk = createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string };
  const hash = createHash('sha256').update(sdk.version);
  for (const [file, text] of sources) hash.update(`\0${file}\0${text}`);
  return hash.digest('hex').slice(0, 32);
}

/** The copy lives outside the checkout and borrows its packages. */
async function bundleCopy(sources: ReadonlyMap<string, string>): Promise<WorkflowBundle> {
  const folder = mkdtempSync(join(tmpdir(), 'payments-workflows-'));
  try {
    for (const [file, text] of sources) {
      const path = join(folder, file);
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, text);
    }
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    return await bundleFolder(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function bundleFolder(root: string): Promise<WorkflowBundle> {
  return bundleWorkflowCode({
    workflowsPath: join(root, 'workflows/index.ts'),
    logger: new DefaultLogger('WARN'),
  });
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return null;
  }
}
