import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ListedApiKey } from '../../src/auth/api-key-list.store.js';
import { Authenticator } from '../../src/auth/authenticator.js';
import { testKeys } from '../support/api.js';
import { seedTenant } from '../support/builders.js';
import { payments, type Ran } from '../support/command-line.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let folder: string;
let env: NodeJS.ProcessEnv;
let tenant: string;
const keys = testKeys();

beforeAll(async () => {
  db = await createTestDatabase();
  folder = mkdtempSync(join(tmpdir(), 'payments-test-keys-'));
  writeFileSync(join(folder, 'keys.json'), JSON.stringify(keys));
  env = {
    PAYMENTS_ADMIN_DATABASE_URL: db.urlOf('payments_admin'),
    PAYMENTS_KEYS_FILE: join(folder, 'keys.json'),
    SUDO_USER: 'ada',
  };
  tenant = await seedTenant(db.database);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await db.drop();
});

const ask = (...args: string[]): Promise<Ran> => payments(['keys', ...args], env);
const create = (name: string, ...more: string[]): Promise<Ran> =>
  ask('create', '--tenant', tenant, '--name', name, '--role', 'client', ...more);

interface Made {
  readonly id: string;
  readonly text: string;
  readonly scopes: readonly string[];
}
async function made(name: string, ...more: string[]): Promise<Made> {
  const ran = await create(name, '--json', ...more);
  expect(ran.exitCode, ran.err).toBe(0);
  return (ran.json() as { key: Made }).key;
}
async function listed(...args: string[]): Promise<readonly ListedApiKey[]> {
  const ran = await ask('list', '--tenant', tenant, '--json', ...args);
  expect(ran.exitCode, ran.err).toBe(0);
  return (ran.json() as { keys: ListedApiKey[] }).keys;
}
/** As a process that has never seen the key. */
async function opens(text: string): Promise<boolean> {
  const answer = await new Authenticator(db.as('payments_api'), keys.pepper, 'test').authenticate(
    `Bearer ${text}`,
  );
  return answer.kind === 'authenticated';
}
const audit = (target: string) =>
  db.query(`SELECT tenant_id, actor, db_role, action, detail FROM audit_log WHERE target = $1 ORDER BY id`, [
    target,
  ]);

describe('payments keys create', () => {
  it('makes a key that opens what its role may do, and shows it once, on standard output', async () => {
    const ran = await create('checkout', '--life-days', '90');
    expect(ran.exitCode, ran.err).toBe(0);
    const text = /^ps_test_[a-z2-7]{12}_[a-z2-7]{59}$/m.exec(ran.out)?.[0] ?? '';
    expect(await opens(text)).toBe(true);
    expect(ran.err).not.toContain(text.slice(21));
    const [key] = (await listed()).filter((each) => each.name === 'checkout');
    expect(key).toMatchObject({ id: text.slice(8, 20), status: 'active', pepper_key_id: 'test-1' });
    expect([...(key?.scopes ?? [])].sort()).toEqual([
      ...['payments:cancel', 'payments:create', 'payments:read', 'payments:update'],
      'webhooks:manage',
    ]);
    const lifeDays = (Date.parse(key?.expires_at ?? '') - Date.parse(key?.created_at ?? '')) / 86_400_000;
    expect(Math.abs(lifeDays - 90)).toBeLessThan(0.001);
    const everything = await db.query<{ row: string }>(`SELECT t::text AS row FROM api_key t
      UNION ALL SELECT t::text FROM audit_log t`);
    expect(everything.some(({ row }) => row.includes(text.slice(21, 60)))).toBe(false);
    expect((await ask('list', '--all')).out).not.toContain(text.slice(21, 60));
  });

  it('makes one that only reads', async () => {
    const ran = await ask(
      'create',
      '--tenant',
      tenant,
      '--name',
      'reports',
      '--role',
      'client_readonly',
      '--json',
    );
    expect((ran.json() as { key: Made }).key.scopes).toEqual(['payments:read']);
  });

  it('is told in the log as a security event, and in the audit log with who did it', async () => {
    const ran = await create('told', '--json');
    const { id } = (ran.json() as { key: Made }).key;
    expect(JSON.parse(ran.err)).toMatchObject({ event: 'key_made', code: id, level: 'info' });
    expect(await audit(id)).toEqual([
      {
        tenant_id: tenant,
        actor: 'operator:ada',
        db_role: 'payments_admin',
        action: 'key_made',
        detail: '{}',
      },
    ]);
  });

  it('refuses a tenant that is missing and a third key of one name: 1, with nothing made', async () => {
    const unknown = await ask('create', '--tenant', 'nobody', '--name', 'x', '--role', 'client');
    expect([unknown.exitCode, unknown.out, unknown.err]).toEqual([
      1,
      '',
      expect.stringContaining('no tenant nobody'),
    ]);
    await made('thrice');
    await made('thrice');
    const third = await create('thrice', '--json');
    expect(third.exitCode).toBe(1);
    expect((third.json() as { error: { message: string } }).error.message).toContain('Revoke one first');
    expect((await listed()).filter((key) => key.name === 'thrice')).toHaveLength(2);
  });

  it('makes a live key in production, which opens nothing elsewhere', async () => {
    const file = join(folder, 'production.json');
    writeFileSync(file, JSON.stringify({ ...keys, development: false }));
    const production = { ...env, PAYMENTS_MODE: 'production', PAYMENTS_KEYS_FILE: file };
    const args = ['keys', 'create', '--tenant', tenant, '--name', 'live', '--role', 'client', '--json'];
    const { text } = ((await payments(args, production)).json() as { key: Made }).key;
    expect(text).toMatch(/^ps_live_/);
    expect(await opens(text)).toBe(false);
    const refused = await payments(args, { ...production, PAYMENTS_KEYS_FILE: env['PAYMENTS_KEYS_FILE'] });
    expect([refused.exitCode, refused.out]).toEqual([2, expect.stringContaining('development')]);
  });
});

describe('payments keys rotate', () => {
  it('makes a second key like the first; both work until the old one is revoked', async () => {
    const old = await made('rotated');
    const ran = await ask('rotate', old.id, '--json');
    const { key, replaces } = ran.json() as { key: Made; replaces: string };
    expect([replaces, key.scopes]).toEqual([old.id, old.scopes]);
    expect([await opens(old.text), await opens(key.text)]).toEqual([true, true]);
    expect(await audit(key.id)).toMatchObject([
      { action: 'key_rotated', detail: `{"replaces":"${old.id}"}` },
    ]);
    expect(JSON.parse(ran.err)).toMatchObject({ event: 'key_rotated', code: key.id });
    expect((await ask('rotate', old.id)).err).toContain('Two keys named rotated are active');
    expect((await ask('revoke', old.id)).exitCode).toBe(0);
    expect([await opens(old.text), await opens(key.text)]).toEqual([false, true]);
  });

  it('refuses a key that is revoked or was never there: 1', async () => {
    const gone = await made('gone');
    await ask('revoke', gone.id);
    for (const id of [gone.id, 'aaaaaaaaaaaa']) {
      const ran = await ask('rotate', id);
      expect([ran.exitCode, ran.out, ran.err]).toEqual([
        1,
        '',
        expect.stringContaining(`No key ${id} is active`),
      ]);
    }
  });
});

describe('payments keys revoke', () => {
  it('ends a key, tells it once, and changes nothing when it is repeated', async () => {
    const key = await made('revoked');
    const first = await ask('revoke', key.id);
    expect([first.exitCode, first.out]).toEqual([0, expect.stringContaining('within 5 seconds')]);
    expect(JSON.parse(first.err)).toMatchObject({ event: 'key_revoked', code: key.id });
    const revokedAt = async () => (await listed('--all')).find((each) => each.id === key.id)?.revoked_at;
    const before = await revokedAt();
    const again = await ask('revoke', key.id, '--json');
    expect([again.exitCode, again.json(), again.err]).toEqual([0, { id: key.id, result: 'repeated' }, '']);
    expect(await revokedAt()).toBe(before);
    expect((await audit(key.id)).map((row) => row['action'])).toEqual(['key_made', 'key_revoked']);
  });

  it('says that there is no such key: 1', async () => {
    const ran = await ask('revoke', 'aaaaaaaaaaaa');
    expect([ran.exitCode, ran.err]).toEqual([1, expect.stringContaining('There is no key')]);
  });
});

describe('payments keys list', () => {
  it('shows what is active, by tenant and pepper, and with --all the rest', async () => {
    const key = await made('listed');
    const expired = await made('listed');
    await db.query(`UPDATE api_key SET expires_at = clock_timestamp() WHERE id = $1`, [expired.id]);
    const named = async (...args: string[]) =>
      (await listed(...args)).filter((each) => each.name === 'listed').map((each) => [each.id, each.status]);
    expect(await named()).toEqual([[key.id, 'active']]);
    expect(await named('--all')).toEqual(
      expect.arrayContaining([
        [key.id, 'active'],
        [expired.id, 'expired'],
      ]),
    );
    expect(await named('--pepper', 'test-1')).toHaveLength(1);
    expect(await listed('--pepper', 'test-0')).toEqual([]);
    expect((await ask('list', '--tenant', 'nobody')).out).toBe('No keys.\n');
    const table = (await ask('list', '--tenant', tenant)).out;
    for (const word of ['pepper', 'listed', 'payments:create', key.id]) expect(table).toContain(word);
  });
});

describe('the role of the commands', () => {
  it('may touch keys and no payment', async () => {
    const admin = db.as('payments_admin');
    for (const text of [
      'SELECT 1 FROM payment',
      'UPDATE api_key SET scopes = scopes',
      'DELETE FROM api_key',
    ]) {
      await expect(admin.query({ name: text, text })).rejects.toThrow(/permission denied/);
    }
  });

  it('is needed: without its database the commands answer 2 and say so', async () => {
    for (const args of [
      ['keys', 'list'],
      ['keys', 'revoke', 'aaaaaaaaaaaa'],
    ]) {
      const ran = await payments(args, { PAYMENTS_DATABASE_URL: db.urlOf('payments_worker') });
      expect([ran.exitCode, ran.err]).toEqual([2, expect.stringContaining('PAYMENTS_ADMIN_DATABASE_URL')]);
    }
    const file = join(folder, 'admin-url');
    writeFileSync(file, `${db.urlOf('payments_admin')}\n`);
    const { exitCode } = await payments(['keys', 'list'], { PAYMENTS_ADMIN_DATABASE_URL_FILE: file });
    expect(exitCode).toBe(0);
    const away = await payments(['keys', 'list'], {
      PAYMENTS_ADMIN_DATABASE_URL: 'postgres://a:b@127.0.0.1:9/x',
    });
    expect([away.exitCode, away.err]).toEqual([2, expect.stringContaining('could not be asked')]);
  });
});
