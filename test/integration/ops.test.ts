import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Authenticator } from '../../src/auth/authenticator.js';
import { MIGRATIONS } from '../../src/persistence/migrations/index.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { payments, type Ran } from '../support/command-line.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { openAttempt, openGeneration, paymentIn } from '../support/payment-states.js';
import { startSimulator } from '../support/simulator.js';

let db: TestDatabase;
let empty: TestDatabase;
let folder: string;
beforeAll(async () => {
  [db, empty] = await Promise.all([createTestDatabase(), createTestDatabase('empty')]);
  folder = mkdtempSync(join(tmpdir(), 'payments-test-ops-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await db.drop();
  await empty.drop();
});

const keySet = () => ({ active: 'k1', keys: { k1: randomBytes(32).toString('base64') } });
const PEPPER = keySet();

function keysFile(development: boolean): string {
  const file = join(folder, `keys-${development}.json`);
  const sets = { encryption: keySet(), digest: keySet(), pepper: PEPPER, cursor: keySet() };
  writeFileSync(file, JSON.stringify({ development, ...sets }));
  return file;
}

/** A Temporal and a provider that nobody serves. */
const environment = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  PAYMENTS_DATABASE_URL: db.urlOf('payments_worker'),
  PAYMENTS_ADMIN_DATABASE_URL: db.urlOf('payments_admin'),
  PAYMENTS_KEYS_FILE: keysFile(true),
  PAYMENTS_TEMPORAL_ADDRESS: '127.0.0.1:1',
  ...more,
});

describe('payments migrate', () => {
  it('needs only the database, names what it ran, and runs nothing twice', async () => {
    const env = { PAYMENTS_OWNER_DATABASE_URL: empty.urlOf('payments_owner') };
    const first = await payments(['migrate', '--json'], env);
    expect(first).toMatchObject({ exitCode: 0, err: '' });
    expect(first.json()).toEqual({ ran: MIGRATIONS.map((migration) => migration.name) });
    expect(await payments(['migrate'], env)).toMatchObject({
      exitCode: 0,
      out: 'The schema is up to date.\n',
    });
  });

  it('answers 2 when Postgres cannot be asked', async () => {
    const url = db.urlOf('payments_owner').replace(/:\d+\//, ':1/');
    const { exitCode, err } = await payments(['migrate'], { PAYMENTS_OWNER_DATABASE_URL: url });
    expect(exitCode).toBe(2);
    expect(err).toContain('Postgres could not be asked');
  });

  it('answers 1 when a migration fails, and leaves nothing of it behind', async () => {
    const broken = await createTestDatabase('empty');
    await broken.query('CREATE TABLE setting (name text)');
    const { exitCode, err } = await payments(['migrate'], {
      PAYMENTS_OWNER_DATABASE_URL: broken.urlOf('payments_owner'),
    });
    expect(exitCode).toBe(1);
    expect(err).toContain('rolled back');
    expect(await broken.query(`SELECT to_regclass('payment') AS t`)).toEqual([{ t: null }]);
    await broken.drop();
  });
});

describe('payments seed-local', () => {
  it('makes two tenants and keys that open what their names say, and no more', async () => {
    const ran = await payments(['seed-local', '--json'], environment());
    expect(ran).toMatchObject({ exitCode: 0, err: '' });
    const { api_keys: keys } = ran.json() as { api_keys: Record<string, string> };
    const authenticator = new Authenticator(db.as('payments_api'), PEPPER, 'test');
    const scopes: Record<string, unknown> = {};
    for (const [name, key] of Object.entries(keys)) {
      const answer = await authenticator.authenticate(`Bearer ${key}`);
      if (answer.kind !== 'authenticated') throw new Error(`${name}: ${answer.reason}`);
      scopes[name] = [answer.principal.tenantId, ...[...answer.principal.scopes].sort()];
    }
    const client = [
      'payments:cancel',
      'payments:create',
      'payments:read',
      'payments:update',
      'webhooks:manage',
    ];
    expect(scopes).toEqual({
      client: ['local', ...client],
      client_readonly: ['local', 'payments:read'],
      other_tenant: ['local-other', ...client],
    });
  });

  it('can be run again and again: the newest keys are the ones that work', async () => {
    for (let i = 0; i < 3; i++) expect((await payments(['seed-local'], environment())).exitCode).toBe(0);
    const active = await db.query(
      `SELECT name FROM api_key WHERE revoked_at IS NULL AND tenant_id LIKE 'local%' ORDER BY name`,
    );
    expect(active).toHaveLength(3);
  });

  it('refuses in production mode, and where the key file is not marked as development', async () => {
    const before = await db.query('SELECT id FROM api_key');
    const production = environment({ PAYMENTS_MODE: 'production', PAYMENTS_KEYS_FILE: keysFile(false) });
    const unmarked = environment({ PAYMENTS_KEYS_FILE: keysFile(false) });
    for (const env of [production, unmarked]) {
      const { exitCode, out, err } = await payments(['seed-local', '--json'], env);
      expect(exitCode).toBe(1);
      expect(out + err).toContain('seed-local');
    }
    expect(await db.query('SELECT id FROM api_key')).toEqual(before);
  });
});

describe('payments invariants', () => {
  it('answers 0 on lawful rows and leaves none unchecked', async () => {
    const ran = await payments(['invariants', '--json'], {
      PAYMENTS_READ_DATABASE_URL: db.urlOf('payments_read'),
    });
    expect(ran.exitCode).toBe(0);
    const report = ran.json() as { invariants: { violations: number }[] };
    expect(report.invariants).toHaveLength(19);
    expect(report.invariants.every((each) => each.violations === 0)).toBe(true);
  });

  it('answers 1 and names the payments when one is broken', async () => {
    const tenant = await seedTenant(db.database);
    const lane = await seedLane(db.database);
    const id = await paymentIn('cancelled', db.database, { tenant, lane });
    await openGeneration(db.database, id);
    await openAttempt(db.database, id);
    const table = await payments(['invariants'], { PAYMENTS_READ_DATABASE_URL: db.urlOf('payments_read') });
    expect(table.exitCode).toBe(1);
    expect(table.out).toContain(id);
    const json = await payments(['invariants', '--json'], {
      PAYMENTS_READ_DATABASE_URL: db.urlOf('payments_read'),
    });
    const report = json.json() as { invariants: { id: number; payment_ids: string[] }[] };
    expect(report.invariants.find((each) => each.id === 2)?.payment_ids).toEqual([id]);
  });

  it('answers 2, never 0, when it could not check', async () => {
    const unborn = await createTestDatabase('empty');
    const ran = await payments(['invariants'], { PAYMENTS_READ_DATABASE_URL: unborn.urlOf('payments_read') });
    expect(ran.exitCode).toBe(2);
    expect(ran.out).toContain('NOT CHECKED');
    await unborn.drop();
  });
});

describe('payments doctor', () => {
  async function resultsOf(ran: Ran): Promise<Record<string, string>> {
    const { checks } = ran.json() as { checks: { name: string; result: string }[] };
    return Object.fromEntries(checks.map((check) => [check.name, check.result]));
  }

  it('looks at everything and answers 1 for what fails: fsync is off here, and nobody else serves', async () => {
    const env = environment({
      PAYMENTS_SIMULATOR_URL: 'http://127.0.0.1:1',
      PAYMENTS_SIMULATOR_API_KEY: 'sk_test',
    });
    const ran = await payments(['doctor', '--json'], env);
    expect(ran.exitCode).toBe(1);
    expect(await resultsOf(ran)).toEqual({
      configuration: 'ok',
      'key file': 'ok',
      postgres: 'ok',
      'postgres durability': 'failed',
      schema: 'ok',
      clock: 'ok',
      temporal: 'failed',
      'provider simulated': 'failed',
    });
  });

  it('asks the provider for a payment that it cannot have: the address and the credential answer', async () => {
    const simulator = await startSimulator();
    const ask = async (key: string): Promise<string | undefined> => {
      const env = { PAYMENTS_SIMULATOR_URL: simulator.url, PAYMENTS_SIMULATOR_API_KEY: key };
      const ran = await payments(['doctor', '--json'], environment(env));
      return (await resultsOf(ran))['provider simulated'];
    };
    try {
      expect(await ask(simulator.apiKeys.A)).toBe('ok');
      expect(await ask('sk_wrong')).toBe('failed');
    } finally {
      await simulator.stop();
    }
  });

  it('goes on without a key file, and shows neither password nor key', async () => {
    const broken = join(folder, 'broken.json');
    writeFileSync(broken, '{"encryption": SECRET');
    const ran = await payments(['doctor', '--json'], environment({ PAYMENTS_KEYS_FILE: broken }));
    expect(await resultsOf(ran)).toMatchObject({ 'key file': 'failed', postgres: 'ok' });
    expect(ran.out).not.toContain('SECRET');
    expect(ran.out).not.toContain('postgres:postgres');
  });

  it('says which variable is wrong when there is no configuration', async () => {
    const ran = await payments(['doctor'], {});
    expect(ran.exitCode).toBe(1);
    expect(ran.out).toContain('PAYMENTS_DATABASE_URL');
    expect(ran.out).toContain('skipped');
  });
});
