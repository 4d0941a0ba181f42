import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '../../src/persistence/database.js';
import { StorageUnavailable } from '../../src/persistence/database-errors.js';
import { refuseToStart, startUpRefusals, type ProcessRole } from '../../src/persistence/start-up-check.js';
import { testKeys } from '../support/api.js';
import { startTestServer, type TestServer } from '../support/embedded-postgres.js';
import { createMigrated, urlAs } from '../support/postgres.setup.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/until.js';

/** A server of its own: its settings and roles are changed for everybody on it. */
let server: TestServer;
let admin: pg.Client;
let url: string;
const opened: Database[] = [];

beforeAll(async () => {
  server = await startTestServer({ durable: true });
  admin = new pg.Client({ connectionString: `${server.url}postgres` });
  await admin.connect();
  await createMigrated(admin, `${server.url}payments`);
  await admin.end();
  url = `${server.url}payments`;
  admin = new pg.Client({ connectionString: url });
  await admin.connect();
});
afterEach(async () => {
  for (const database of opened.splice(0)) await database.close();
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

function connect(at: string): Database {
  const database = new Database({ url: at, poolSize: 1, applicationName: 'start-up' });
  opened.push(database);
  return database;
}

const refusals = (role: ProcessRole, at = urlAs(url, role)): Promise<readonly string[]> =>
  startUpRefusals(connect(at), role);

const PROCESS_ROLES: readonly ProcessRole[] = [
  'payments_api',
  'payments_worker',
  'payments_relay',
  'payments_read',
];

describe('a process on a sound server', () => {
  it.each(PROCESS_ROLES)('may start as %s', async (role) => {
    expect(await refusals(role)).toEqual([]);
    await refuseToStart(connect(urlAs(url, role)), role);
  });

  it('may start as a log-in that is a member of its role alone', async () => {
    await admin.query(`CREATE ROLE api_blue LOGIN PASSWORD 'role' IN ROLE payments_api`);
    const blue = new URL(urlAs(url, 'payments_api'));
    blue.username = 'api_blue';
    expect(await refusals('payments_api', blue.href)).toEqual([]);
    await admin.query('GRANT payments_read TO api_blue');
    expect(await refusals('payments_api', blue.href)).toEqual([
      'The log-in api_blue is also a member of payments_read.',
    ]);
    await admin.query('DROP ROLE api_blue');
  });
});

describe('a server that could forget commits', () => {
  it.each(['fsync', 'full_page_writes', 'synchronous_commit'])(
    'is refused: %s is off (PG-06)',
    async (name) => {
      const isOff = async (setting: string): Promise<void> => {
        await admin.query(`ALTER SYSTEM SET ${name} = ${setting}`);
        await admin.query('SELECT pg_reload_conf()');
        // A session reads the new setting when the server has told it.
        await until(
          'the setting',
          () => connectedSetting(name),
          (value) => value === setting,
        );
      };
      try {
        await isOff('off');
        expect(await refusals('payments_worker')).toEqual([
          `Postgres runs with ${name} = off: a kill would lose acknowledged payments.`,
        ]);
      } finally {
        await isOff('on');
      }
      expect(await refusals('payments_worker')).toEqual([]);
    },
  );

  async function connectedSetting(name: string): Promise<string> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query<{ setting: string }>(`SELECT current_setting('${name}') AS setting`);
    await client.end();
    return rows[0]?.setting ?? '';
  }
});

describe('a log-in that may do more than its role', () => {
  it('is refused: a superuser', async () => {
    expect(await refusals('payments_api', url)).toContain('The log-in postgres is a superuser.');
  });

  it('is refused: the owner of the schema', async () => {
    const found = await refusals('payments_api', urlAs(url, 'payments_owner'));
    expect(found.join(' ')).toMatch(/The log-in payments_owner owns \w+, or is a member of its owner\./);
    expect(found).toContain('The log-in payments_owner may make roles.');
  });

  it('is refused: another process’s role', async () => {
    const [sentence] = await refusals('payments_api', urlAs(url, 'payments_worker'));
    expect(sentence).toMatch(/^The log-in payments_worker may do more than payments_api: .* and \d+ more\.$/);
  });

  const EXCESS: readonly (readonly [what: string, give: string, take: string, sentence: string])[] = [
    ['BYPASSRLS', 'ALTER ROLE payments_api BYPASSRLS', 'ALTER ROLE payments_api NOBYPASSRLS',
     'The log-in payments_api passes by row-level security (BYPASSRLS).'],
    ['CREATEROLE', 'ALTER ROLE payments_api CREATEROLE', 'ALTER ROLE payments_api NOCREATEROLE',
     'The log-in payments_api may make roles.'],
    ['REPLICATION', 'ALTER ROLE payments_api REPLICATION', 'ALTER ROLE payments_api NOREPLICATION',
     'The log-in payments_api may replicate.'],
    ['a membership', 'GRANT pg_read_all_data TO payments_api', 'REVOKE pg_read_all_data FROM payments_api',
     'The log-in payments_api is also a member of pg_read_all_data.'],
    ['a right on a table', 'GRANT UPDATE ON payment_transition TO payments_api', 'REVOKE UPDATE ON payment_transition FROM payments_api',
     'The log-in payments_api may do more than payments_api: UPDATE on payment_transition.'],
    ['a right on a column', 'GRANT UPDATE (amount) ON payment TO payments_api', 'REVOKE UPDATE (amount) ON payment FROM payments_api',
     'The log-in payments_api may do more than payments_api: UPDATE (amount) on payment.'],
    ['TRUNCATE', 'GRANT TRUNCATE ON outbox TO payments_api', 'REVOKE TRUNCATE ON outbox FROM payments_api',
     'The log-in payments_api may do more than payments_api: TRUNCATE on outbox.'],
    ['a right of PUBLIC', 'GRANT DELETE ON evidence TO PUBLIC', 'REVOKE DELETE ON evidence FROM PUBLIC',
     'The log-in payments_api may do more than payments_api: DELETE on evidence.'],
    ['CREATE in the schema', 'GRANT CREATE ON SCHEMA public TO payments_api', 'REVOKE CREATE ON SCHEMA public FROM payments_api',
     'The log-in payments_api may create tables in the schema.'],
    ['row-level security that is off', 'ALTER TABLE evidence DISABLE ROW LEVEL SECURITY', 'ALTER TABLE evidence ENABLE ROW LEVEL SECURITY',
     'Row-level security is not enabled and forced on evidence.'],
    ['row-level security that is not forced', 'ALTER TABLE payment NO FORCE ROW LEVEL SECURITY', 'ALTER TABLE payment FORCE ROW LEVEL SECURITY',
     'Row-level security is not enabled and forced on payment.'],
  ]; // prettier-ignore

  it.each(EXCESS)('is refused: %s', async (_what, give, take, sentence) => {
    await admin.query(give);
    try {
      expect(await refusals('payments_api')).toEqual([sentence]);
      await expect(refuseToStart(connect(urlAs(url, 'payments_api')), 'payments_api')).rejects.toThrow(
        sentence,
      );
    } finally {
      await admin.query(take);
    }
    expect(await refusals('payments_api')).toEqual([]);
  });
});

describe('a server that cannot be reached', () => {
  it('is no refusal', async () => {
    const nobody = connect('postgres://nobody:nothing@127.0.0.1:9/none');
    await expect(refuseToStart(nobody, 'payments_api')).rejects.toBeInstanceOf(StorageUnavailable);
  });
});

describe('the processes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-start-up-'));
  const keysFile = join(folder, 'keys.json');
  writeFileSync(keysFile, JSON.stringify(testKeys()));
  const running: ChildProcess[] = [];
  afterEach(async () => {
    for (const child of running.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await new Promise((ended) => child.once('exit', ended));
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  interface Started {
    readonly child: ChildProcess;
    readonly health: string;
    readonly exited: Promise<number | null>;
    stderr(): string;
  }

  async function freePort(): Promise<number> {
    const probe = createServer();
    await new Promise<void>((listening) => void probe.listen(0, '127.0.0.1', listening));
    const { port } = probe.address() as AddressInfo;
    await new Promise((closed) => probe.close(closed));
    return port;
  }

  async function start(
    program: 'main-api' | 'main-worker',
    urls: Readonly<Record<string, string>>,
  ): Promise<Started> {
    const root = fileURLToPath(new URL('../../', import.meta.url));
    const entry = resolve(process.env['PAYMENTS_DIST_DIR'] ?? join(root, 'dist'), `src/${program}.js`);
    if (!existsSync(entry)) throw new Error('The processes are not built. Run npm run build first.');
    const [api, health] = [await freePort(), await freePort()];
    const child = spawn(process.execPath, [entry], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        PAYMENTS_KEYS_FILE: keysFile,
        PAYMENTS_API_PORT: String(api),
        PAYMENTS_HEALTH_PORT: String(health),
        PAYMENTS_TEMPORAL_ADDRESS: '127.0.0.1:9',
        PAYMENTS_SIMULATOR_URL: 'http://127.0.0.1:9',
        PAYMENTS_SIMULATOR_API_KEY: 'sk_test',
        ...urls,
      },
    });
    running.push(child);
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const exited = new Promise<number | null>((done) => void child.once('close', done));
    return { child, health: `http://127.0.0.1:${health}`, exited, stderr: () => text };
  }

  const urlsOf = (at: string, first: 'payments_api' | 'payments_worker'): Record<string, string> => ({
    PAYMENTS_DATABASE_URL: urlAs(at, first),
    PAYMENTS_RELAY_DATABASE_URL: urlAs(at, 'payments_relay'),
    PAYMENTS_READ_DATABASE_URL: urlAs(at, 'payments_read'),
  });
  const statusOf = (address: string): Promise<number> =>
    fetch(address).then(
      (answer) => answer.status,
      () => 0,
    );

  it.each([
    ['main-api', 'payments_api', 'PAYMENTS_DATABASE_URL'],
    ['main-api', 'payments_api', 'PAYMENTS_RELAY_DATABASE_URL'],
    ['main-worker', 'payments_worker', 'PAYMENTS_DATABASE_URL'],
    ['main-worker', 'payments_worker', 'PAYMENTS_RELAY_DATABASE_URL'],
    ['main-worker', 'payments_worker', 'PAYMENTS_READ_DATABASE_URL'],
  ] as const)('%s as %s ends at once when %s is a superuser’s', async (program, role, variable) => {
    const started = await start(program, { ...urlsOf(url, role), [variable]: url });
    expect(await started.exited).toBe(1);
    expect(started.stderr()).toContain('The log-in postgres is a superuser.');
  });

  it.each([
    ['main-api', 'payments_api', 'PAYMENTS_RELAY_DATABASE_URL'],
    ['main-worker', 'payments_worker', 'PAYMENTS_RELAY_DATABASE_URL'],
    ['main-worker', 'payments_worker', 'PAYMENTS_READ_DATABASE_URL'],
  ] as const)(
    '%s as %s says so when %s is missing, and takes no other role’s pool',
    async (program, role, name) => {
      const { [name]: _missing, ...rest } = urlsOf(url, role);
      const started = await start(program, rest);
      expect(await started.exited).toBe(1);
      expect(started.stderr()).toContain(`${name} is missing`);
    },
  );

  it('the API lives while Postgres is away, and is ready when it is there', async () => {
    const proxy = await startTcpProxy(url);
    try {
      proxy.mode = 'cut';
      const api = await start('main-api', urlsOf(proxy.url, 'payments_api'));
      await until(
        'the health port',
        () => statusOf(`${api.health}/livez`),
        (status) => status === 200,
      );
      expect(await statusOf(`${api.health}/readyz`)).toBe(503);
      proxy.mode = 'open';
      await until(
        'readiness',
        () => statusOf(`${api.health}/readyz`),
        (status) => status === 200,
      );
      expect(api.child.exitCode).toBeNull();
    } finally {
      await proxy.close();
    }
  });

  it('the API ends when the Postgres that comes back is not one it may run on', async () => {
    const proxy = await startTcpProxy(url);
    try {
      proxy.mode = 'cut';
      const api = await start('main-api', {
        ...urlsOf(proxy.url, 'payments_api'),
        PAYMENTS_DATABASE_URL: proxy.url,
      });
      await until(
        'the health port',
        () => statusOf(`${api.health}/livez`),
        (status) => status === 200,
      );
      proxy.mode = 'open';
      expect(await api.exited).toBe(1);
      expect(api.stderr()).toContain('The log-in postgres is a superuser.');
    } finally {
      await proxy.close();
    }
  });
});
