import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig, readKeysFile } from '../../../src/config/config.js';
import { SECRET_VARIABLES, withSecretFiles } from '../../../src/config/secret-files.js';
import { productionSettings, type ProductionSettings } from '../../support/production.js';

const folder = mkdtempSync(join(tmpdir(), 'payments-secrets-'));
let made = 0;
const file = (text: string): string => {
  const path = join(folder, `secret-${made++}`);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};
let production: ProductionSettings;
beforeAll(async () => {
  production = await productionSettings();
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  production.remove();
});

const BASE = {
  PAYMENTS_DATABASE_URL: 'postgres://payments_api@127.0.0.1/payments',
  PAYMENTS_KEYS_FILE: '/etc/payments/keys.json',
};

describe('a secret', () => {
  it.each(SECRET_VARIABLES)('%s may come from a file, without the line feed at its end', (name) => {
    expect(withSecretFiles({ [`${name}_FILE`]: file(' the-secret\n') })).toEqual({ [name]: 'the-secret' });
  });

  it('from a file reaches the settings as if the environment had held it', () => {
    const { PAYMENTS_DATABASE_URL: url, ...rest } = BASE;
    const config = readConfig({
      ...rest,
      PAYMENTS_DATABASE_URL_FILE: file(`${url}\n`),
      PAYMENTS_SIMULATOR_URL: 'http://127.0.0.1:9',
      PAYMENTS_SIMULATOR_API_KEY_FILE: file('sk_sim_a'),
      PAYMENTS_WEBHOOK_SECRETS_FILE: file('{"simulated/acct_a":["sixteen-characters"]}'),
    });
    expect(config.database.url).toBe(url);
    expect(config.simulator?.apiKeys.A).toBe('sk_sim_a');
    expect(config.webhookSecrets.get('simulated/acct_a')).toEqual(['sixteen-characters']);
  });

  it.each([
    ['given twice', { PAYMENTS_API_KEY: 'k', PAYMENTS_API_KEY_FILE: '/x' }, 'exclude each other'],
    [
      'in a file that is not there',
      { PAYMENTS_API_KEY_FILE: '/nowhere/my-place' },
      'cannot be read (ENOENT)',
    ],
    ['in an empty file', { PAYMENTS_API_KEY_FILE: file('\n') }, 'is empty'],
    ['in a file that is no secret', { PAYMENTS_API_KEY_FILE: file('x'.repeat(70_000)) }, 'too large'],
  ])('%s is refused by the name of its variable, and neither shown nor its path', (_what, env, words) => {
    const read = (): unknown => withSecretFiles(env);
    expect(read).toThrow(words);
    expect(read).toThrow('PAYMENTS_API_KEY_FILE');
    expect(read).not.toThrow(/my-place|xxx/);
  });

  it('that does not parse is not quoted', () => {
    const read = (): unknown => readConfig({ ...BASE, PAYMENTS_WEBHOOK_SECRETS: '{"a":"topsecret' });
    expect(read).toThrow('The webhook secrets are not JSON');
    expect(read).not.toThrow(/topsecret/);
    expect(() => readConfig({ ...BASE, PAYMENTS_DATABASE_URL: 'mysql://u:topsecret@h/d' })).not.toThrow(
      /topsecret/,
    );
  });
});

describe('production mode', () => {
  const start = (env: Record<string, string>) => readConfig({ ...BASE, ...production.env, ...env });

  it('starts with settings of its own', () => {
    expect(start({}).mode).toBe('production');
    const url = 'postgres://payments_api@db.internal/payments?sslmode=verify-full';
    expect(start({ PAYMENTS_DATABASE_URL: url }).mode).toBe('production');
  });

  it.each([
    ['the simulator', { PAYMENTS_SIMULATOR_URL: 'http://h', PAYMENTS_SIMULATOR_API_KEY: 'sk_sim_a' }, 'PAYMENTS_SIMULATOR_URL'],
    ['the simulator as the provider of payments that name none', { PAYMENTS_PROVIDER: 'simulated_b' }, 'PAYMENTS_PROVIDER'],
    ['an issuer without https', { PAYMENTS_OIDC_ISSUER: 'http://login', PAYMENTS_OIDC_AUDIENCE: 'a', PAYMENTS_OIDC_JWKS: 'https://login/k' }, 'PAYMENTS_OIDC_ISSUER'],
    ['keys of the issuer without https', { PAYMENTS_OIDC_ISSUER: 'https://login', PAYMENTS_OIDC_AUDIENCE: 'a', PAYMENTS_OIDC_JWKS: 'http://login/k' }, 'PAYMENTS_OIDC_JWKS'],
    ['a shortened ladder of inquiries', { PAYMENTS_LADDER_DIVISOR: '60' }, 'PAYMENTS_LADDER_DIVISOR'],
    ['a key of Stripe for tests', { PAYMENTS_STRIPE_API_KEY: 'sk_test_1', PAYMENTS_STRIPE_ACCOUNT: 'acct_1234' }, 'test key'],
    ['a password of examples', { PAYMENTS_DATABASE_URL: 'postgres://payments_api:Password@h/d' }, 'PAYMENTS_DATABASE_URL'],
    ['an open connection to another machine', { PAYMENTS_DATABASE_URL: 'postgres://payments_api:q7@db.internal/payments' }, 'sslmode=verify-full'],
    ['one whose certificate is not checked', { PAYMENTS_READ_DATABASE_URL: 'postgres://payments_read:q7@db.internal/p?sslmode=no-verify' }, 'PAYMENTS_READ_DATABASE_URL'],
    ['a password that is the name', { PAYMENTS_DATABASE_URL: 'postgres://payments_api:payments_api@h/d' }, 'PAYMENTS_DATABASE_URL'],
  ])('refuses %s', (_what, env, words) => {
    const loose: Record<string, string> = env;
    expect(() => start(loose)).toThrow(words);
    const { PAYMENTS_MODE: _, PAYMENTS_PROVIDER: __, ...development } = production.env;
    expect(readConfig({ ...BASE, ...development, ...loose }).mode).toBe('development');
  }); // prettier-ignore

  it('takes an open connection to this machine, and one to another whose certificate is checked', () => {
    const urls = [
      'postgres://a:q7@127.0.0.1/p',
      'postgres://a:q7@[::1]/p',
      'postgres://a:q7@db.internal/p?sslmode=verify-full',
    ];
    for (const url of urls) expect(() => start({ PAYMENTS_DATABASE_URL: url })).not.toThrow();
  });

  it('names everything that is wrong at once, and no secret of it', () => {
    const wrong = { PAYMENTS_LADDER_DIVISOR: '2', PAYMENTS_DATABASE_URL: 'postgres://a:hunter2@h/d' };
    const read = (): unknown => start({ ...wrong, PAYMENTS_PROVIDER: 'simulated' });
    expect(read).toThrow(/PAYMENTS_PROVIDER.*PAYMENTS_LADDER_DIVISOR/);
    expect(read).not.toThrow(/hunter2/);
  });
});

describe('the key file', () => {
  const key = (fill: string): string => Buffer.from(fill.padEnd(32, 'ab').slice(0, 32)).toString('base64');
  const set = (text: string, id = 'k1') => ({ active: id, keys: { [id]: text } });
  const good = {
    encryption: set(key('e')),
    digest: set(key('d')),
    pepper: set(key('p')),
    cursor: set(key('c')),
  };
  const read = (changes: object, mode: 'development' | 'production' = 'production') =>
    readKeysFile(file(JSON.stringify({ ...good, ...changes })), mode);

  it('with keys of its own starts production', () => {
    expect(read({}).encryption.active).toBe('k1');
  });

  it.each([
    ['is marked as development', { development: true }, 'marked as development'],
    ['holds one repeated byte as a key', { pepper: set(Buffer.alloc(32, 7).toString('base64')) }, 'one repeated byte'],
    ['holds one key for two purposes', { digest: set(key('e')) }, 'also a key of encryption'],
  ])('that %s stops production, and only production', (_what, changes, words) => {
    expect(() => read(changes)).toThrow(words);
    expect(read(changes, 'development').encryption.active).toBe('k1');
  }); // prettier-ignore

  it.each([
    ['lacks its active key', { digest: { active: 'k2', keys: { k1: key('d') } } }, 'lacks its active key'],
    ['takes a member of every object for its active key', { digest: { active: 'constructor', keys: {} } }, 'lacks its active key'],
    ['holds a short key', { cursor: set('c2hvcnQ=') }, 'is not 32 bytes'],
    ['has another form', { digest: [] }, 'expected form'],
  ])('that %s stops every start', (_what, changes, words) => {
    expect(() => read(changes, 'development')).toThrow(words);
  }); // prettier-ignore

  it('is quoted by no refusal', () => {
    expect(() => readKeysFile(file('{"encryption": "verysecret'), 'development')).not.toThrow(/verysecret/);
    expect(() => readKeysFile('/nowhere/keys', 'development')).toThrow('PAYMENTS_KEYS_FILE cannot be read');
  });
});
