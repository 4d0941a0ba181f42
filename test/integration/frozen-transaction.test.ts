import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;
beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

/** A process of its own with the limits of the product's sessions, that stops in the middle of its work. */
const HOLDER = `
  const pg = require(process.argv[1]);
  const [url, options, sql, id] = process.argv.slice(2);
  const client = new pg.Client({ connectionString: url, options, application_name: 'holder' });
  client.on('error', () => undefined);
  (async () => {
    await client.connect();
    await client.query('BEGIN');
    await client.query(sql, [id]);
    process.stdout.write('holding\\n');
    process.once('SIGUSR2', async () => {
      const end = await client.query('COMMIT').then(() => 'committed', (error) => 'refused ' + error.code);
      process.stdout.write(end + '\\n', () => process.exit());
    });
    setInterval(() => undefined, 1000);
  })();
`;
/** As \`Database\` sets it for each session. */
const LIMITS = '-c idle_in_transaction_session_timeout=3000 -c lock_timeout=2000';

class Holder {
  private readonly child: ChildProcess;
  output = '';

  constructor(sql: string, id: string) {
    const driver = createRequire(import.meta.url).resolve('pg');
    this.child = spawn(process.execPath, ['-e', HOLDER, driver, db.url, LIMITS, sql, id], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.child.stdout?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
  }

  /** Resolves when it holds its locks and stands still. */
  async frozen(): Promise<void> {
    await expect.poll(() => this.output, { timeout: 10_000 }).toContain('holding');
    this.child.kill('SIGSTOP');
  }

  /** Thaws it: it tries to commit. @returns what came of that. */
  async commits(): Promise<string> {
    const ended = once(this.child, 'exit');
    this.child.kill('SIGUSR2');
    this.child.kill('SIGCONT');
    await ended;
    return this.output.replace('holding\n', '').trim();
  }

  end(): void {
    this.child.kill('SIGKILL');
  }
}

describe('a process that is frozen inside a transaction', () => {
  it('holding a payment: its cancel is 503, others go on; the server ends it, the cancel wins, its commit fails (PG-02)', async () => {
    const { body } = await client.create();
    const holder = new Holder(`UPDATE payment SET updated_at = clock_timestamp() WHERE id = $1`, body.id as string);
    try {
      await holder.frozen();
      const cancel = () => client.post(`/v1/payments/${body.id}/cancel`);
      const [first, other, read] = await Promise.all([cancel(), client.create(), client.get(`/v1/payments/${body.id}`)]);
      expect([first.status, first.body.code]).toEqual([503, 'storage_unavailable']);
      expect(Number(first.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect([other.status, read.status]).toEqual([201, 200]);
      // A second later at most the server has ended the holder.
      expect(await cancel()).toMatchObject({ status: 200, body: { state: 'cancelled', version: 2 } });
      expect(await holder.commits()).toMatch(/^refused (57P0|25P03|ECONN|undefined)/);
      expect((await client.get(`/v1/payments/${body.id}`)).body).toMatchObject({ state: 'cancelled', version: 2 });
    } finally {
      holder.end();
    }
  }); // prettier-ignore

  it('holding an idempotency key: the same create is 409 in use meanwhile, and 201 afterwards (PG-02)', async () => {
    const key = unique('frozen');
    // The twin's own insert, taken over and held open: the id that the key leads to.
    const made = await client.create({}, key);
    const rows = await db.query<{ ddl: string }>(`SELECT 1 AS ddl FROM payment WHERE id = $1`, [made.body.id]);
    expect(rows).toHaveLength(1);
    const twin = unique('frozen');
    const holder = new Holder(COPY_UNDER_KEY.replace('TWIN', twin), made.body.id as string);
    try {
      await holder.frozen();
      const create = () => client.create({}, twin);
      const [first, other] = await Promise.all([create(), client.create()]);
      expect([first.status, first.body.code]).toEqual([409, 'idempotency_key_in_use']);
      expect(other.status).toBe(201);
      expect((await create()).status).toBe(201);
      expect(await holder.commits()).toMatch(/^refused/);
      expect(await db.query('SELECT 1 FROM payment WHERE idempotency_key = $1', [twin])).toHaveLength(1);
    } finally {
      holder.end();
    }
  }); // prettier-ignore
});

/** Another row under a key that nobody has yet, as a create in flight holds it. */
const COPY_UNDER_KEY = `
  INSERT INTO payment SELECT (jsonb_populate_record(p, jsonb_build_object('id', 'twin-' || p.id, 'idempotency_key', 'TWIN'))).*
    FROM payment p WHERE p.id = $1`;
