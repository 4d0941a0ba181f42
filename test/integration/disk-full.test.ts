import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, validCreate, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { makeTemplate } from '../support/postgres.setup.js';
import { startOwnPostgres, type OwnPostgres } from '../support/own-postgres.js';

/** Room for an empty server and a little more. */
const DISK = '192m';
const NOTES = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`note-${i}`, 'x'.repeat(200)]));
const NO_RIGHTS =
  'Skipped: a disk that can be filled is a mount of its own (tmpfs), and this user may not mount. Run as root to include it.';

/** A small disk, or null where nobody lets us mount one. */
function mountDisk(): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'payments-small-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK},mode=0755`, 'tmpfs', folder], { stdio: 'ignore' });
    return folder;
  } catch {
    rmSync(folder, { recursive: true, force: true });
    return null;
  }
} // prettier-ignore

function unmount(folder: string): void {
  execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
  rmSync(folder, { recursive: true, force: true });
}

const disk = process.platform === 'linux' ? mountDisk() : null;
if (disk === null) console.warn(NO_RIGHTS);
const onExit = (): void => unmount(disk ?? '');
if (disk !== null) process.once('exit', onExit);

/** Takes every byte that is left, as a log that nobody rotates would. */
class Ballast {
  private readonly file: string;

  constructor(folder: string) {
    this.file = join(folder, 'ballast');
  }

  fill(): void {
    const file = openSync(this.file, 'a');
    try {
      for (const bytes of [1 << 20, 1 << 12]) while (this.wrote(file, Buffer.alloc(bytes)));
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(this.file, { force: true });
  }

  private wrote(file: number, chunk: Buffer): boolean {
    try {
      return writeSync(file, chunk) === chunk.length;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
      throw error;
    }
  }
}

describe.skipIf(disk === null)('a disk without space', () => {
  let own: OwnPostgres;
  let ballast: Ballast;
  let db: TestDatabase;
  let api: TestApi;
  let client: Client;
  /** Keys whose create was acknowledged, with the id. */
  const accepted = new Map<string, string>();
  /** Statuses of all creates. */
  const seen = new Set<number>();

  beforeAll(async () => {
    ballast = new Ballast(disk ?? '');
    own = await startOwnPostgres({
      dataIn: disk ?? '',
      settings: { max_wal_size: '32MB', min_wal_size: '32MB', wal_recycle: 'off' },
    });
    await makeTemplate(own.url(''));
    db = await createTestDatabase('template', own.url(''));
    api = await startTestApi({ database: db.database });
    client = await api.client();
  });
  afterAll(async () => {
    try {
      await api.close();
      await db.drop();
    } finally {
      await own.remove();
      // Whatever failed before: a mount outlives the run that made it.
      if (disk !== null) unmount(disk);
      process.removeListener('exit', onExit);
    }
  });

  async function create(key: string): Promise<ApiAnswer> {
    const answer = await client.post('/v1/payments', {
      headers: { 'idempotency-key': key },
      // Large enough that the free places in the tables' last pages are soon used up.
      body: validCreate({ metadata: NOTES }),
    });
    seen.add(answer.status);
    if (answer.status < 300) accepted.set(key, answer.body.id as string);
    return answer;
  }

  /** Creates until one is refused. */
  async function createUntilRefused(): Promise<ApiAnswer> {
    for (let i = 0; i < 5_000; i++) {
      const answer = await create(unique('full'));
      if (answer.status >= 300) return answer;
    }
    throw new Error('the disk was never full');
  }

  async function expectAllKept(): Promise<void> {
    const rows = await db.query('SELECT id FROM payment WHERE id = ANY ($1)', [[...accepted.values()]]);
    expect(rows.length).toBe(accepted.size);
  }

  it('for tables: creates are 503, reads go on, and with space again the same key is 201', async () => {
    expect((await create('before')).status).toBe(201);
    ballast.fill();
    const refused = await createUntilRefused();
    expect([refused.status, refused.body.code]).toEqual([503, 'storage_unavailable']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    const again = await create('while-full');
    expect(again.status).toBe(503);
    expect((await client.get(`/v1/payments/${accepted.get('before')}`)).status).toBe(200);
    // One statement was refused, not the server: nothing was restarted, no connection given up.
    expect(own.events).toEqual([]);
    ballast.free();
    expect((await create('while-full')).status).toBe(201);
    await expectAllKept();
  });

  it('for the log: Postgres ends itself, the API answers 503 and lives, and with space all is well', async () => {
    expect((await create('before-the-panic')).status).toBe(201);
    ballast.fill();
    const admin = new pg.Client({ connectionString: db.url });
    admin.on('error', () => undefined);
    await admin.connect();
    // Each switch needs another segment of the log, which there is no place for.
    const switching = (async () => {
      for (let i = 0; i < 50; i++) {
        await admin.query(`SELECT pg_logical_emit_message(true, 'fill', repeat('x', 1000))`);
        await admin.query('SELECT pg_switch_wal()');
      }
    })();
    await expect(switching).rejects.toThrow();
    await admin.end().catch(() => undefined);
    for (let i = 0; i < 5; i++) {
      const answer = await create(`during-${i}`);
      if (answer.status !== 503) expect(answer.status, answer.text).toBe(201);
    }
    expect((await create('while-down')).status).toBe(503);
    ballast.free();
    await expect.poll(async () => (await create('while-down')).status, { timeout: 30_000 }).toBeLessThan(300);
    await expect.poll(async () => (await create('afterwards')).status, { timeout: 30_000 }).toBeLessThan(300);
    await expectAllKept();
    console.log(`log full: ${own.events.map((event) => event.kind).join(', ') || 'restarted by Postgres itself'}`);
  }); // prettier-ignore

  it('was never answered with a 500', () => {
    expect([...seen].filter((status) => ![200, 201, 503].includes(status))).toEqual([]);
    expect(api.logLines.filter((line) => line.includes('"internal"'))).toEqual([]);
  });
});
