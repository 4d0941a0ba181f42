import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { runCommand } from '../../src/dev/process/command.js';
import { StackError } from '../../src/dev/stack-error.js';
import { requireDisk } from '../../src/dev/stack-folder.js';

/** The full server and the tool that makes its tables; both are built from one Go module. */
export interface TemporalServerPrograms {
  readonly version: string;
  readonly server: string;
  readonly sqlTool: string;
}

const VERSION = '1.32.1';
const MODULE = 'go.temporal.io/server';
const PROGRAMS = ['cmd/server', 'cmd/tools/sql'] as const;
/** What the module's own go.mod asks for. */
const GO_VERSION = '1.26';
/** Where Go's own installer puts it, for shells that do not have it on their PATH. */
const USUAL_GO = '/usr/local/go/bin';
const BUILD_WITHIN_MS = 45 * 60_000;
const TELL_EVERY_MS = 15_000;

export interface BuildContext {
  readonly env: NodeJS.ProcessEnv;
  /** Programs are kept here, shared with the local stack's downloads. */
  readonly cache: string;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/**
 * Builds the full Temporal server once; there is no package of it for this platform. Minutes of work
 * the first time, nothing later.
 * @throws StackError when there is no Go or the build fails; nothing half built stays.
 */
export async function buildTemporalServer(context: BuildContext): Promise<TemporalServerPrograms> {
  const folder = join(context.cache, `temporal-server-${VERSION}-${process.platform}-${process.arch}`);
  const programs = { version: VERSION, server: join(folder, 'server'), sqlTool: join(folder, 'sql') };
  if (existsSync(folder)) return programs;
  mkdirSync(context.cache, { recursive: true });
  requireDisk(context.cache);
  const go = await findGo(context);
  const draft = mkdtempSync(join(context.cache, 'build-'));
  try {
    context.say(`building the Temporal server ${VERSION} with ${go}, once: this takes minutes`);
    await install(go, draft, context);
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return programs;
}

async function install(go: string, into: string, context: BuildContext): Promise<void> {
  let packages = 0;
  const startedAt = performance.now();
  const tell = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    context.say(`  ${packages} packages compiled after ${seconds} s`);
  }, TELL_EVERY_MS);
  try {
    await runCommand(go, ['install', '-v', ...PROGRAMS.map((path) => `${MODULE}/${path}@v${VERSION}`)], {
      cwd: into,
      env: { ...context.env, GOBIN: into },
      limitMs: BUILD_WITHIN_MS,
      signal: context.signal,
      onOutput: (text) => (packages += text.split('\n').length - 1),
    });
  } finally {
    clearInterval(tell);
  }
}

async function findGo(context: BuildContext): Promise<string> {
  const folders = [...(context.env['PATH'] ?? '').split(delimiter), USUAL_GO].filter(Boolean);
  const go = folders.map((folder) => join(folder, 'go')).find((file) => existsSync(file));
  const wanted = `The full Temporal server is built with Go ${GO_VERSION} or newer`;
  if (go === undefined)
    throw new StackError(`${wanted}, and there is no go on the PATH. --temporal dev needs none.`);
  const { stdout } = await runCommand(go, ['env', 'GOVERSION'], { env: context.env, limitMs: 30_000 });
  const [, major = 0, minor = 0] = (/^go(\d+)\.(\d+)/.exec(stdout) ?? []).map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = GO_VERSION.split('.').map(Number);
  if (major === wantedMajor && minor >= wantedMinor) return go;
  throw new StackError(`${wanted}; ${go} is ${stdout.trim()}.`);
}
