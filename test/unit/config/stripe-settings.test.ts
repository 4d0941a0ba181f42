import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../../../src/config/config.js';
import { createProviderRegistry } from '../../../src/providers/provider-registry.js';
import { productionSettings, type ProductionSettings } from '../../support/production.js';

const BASE = {
  PAYMENTS_DATABASE_URL: 'postgres://owner@127.0.0.1:5432/payments',
  PAYMENTS_KEYS_FILE: '/etc/payments/keys.json',
};
const TEST = { PAYMENTS_STRIPE_API_KEY: 'sk_test_abc', PAYMENTS_STRIPE_ACCOUNT: 'acct_1Platform' };
const LIVE = { ...TEST, PAYMENTS_STRIPE_API_KEY: 'rk_live_abc' };
const PRODUCTION = { PAYMENTS_MODE: 'production' };

let production: ProductionSettings;
beforeAll(async () => {
  production = await productionSettings();
});
afterAll(() => production.remove());

const read = (env: Record<string, string>): ReturnType<typeof readConfig>['stripe'] =>
  readConfig({ ...BASE, ...('PAYMENTS_MODE' in env ? production.env : {}), ...env }).stripe;

describe('Stripe settings', () => {
  it('nothing set is no provider', () => {
    expect(read({})).toBeNull();
  });

  it('key and account make both providers, with lanes of their own', async () => {
    const registry = createProviderRegistry(readConfig({ ...BASE, ...TEST }));
    expect(registry.names()).toEqual(['stripe', 'stripe_intents']);
    for (const name of registry.names()) expect(registry.get(name)?.account).toBe('acct_1Platform');
    await registry.closeAll();
  });

  it('the key may come from a file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'payments-stripe-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'key');
    writeFileSync(file, 'sk_test_fromfile\n', { mode: 0o600 });
    const { PAYMENTS_STRIPE_ACCOUNT } = TEST;
    expect(read({ PAYMENTS_STRIPE_ACCOUNT, PAYMENTS_STRIPE_API_KEY_FILE: file })).toMatchObject({
      apiKey: 'sk_test_fromfile',
    });
  });

  it('a live key is for production, and production is for a live key', () => {
    expect(read({ ...LIVE, ...PRODUCTION })).toMatchObject({ account: 'acct_1Platform', url: null });
    expect(read(TEST)).toMatchObject({ apiKey: 'sk_test_abc' });
  });

  it.each<[string, Record<string, string>, string]>([
    ['a test key in production', { ...TEST, ...PRODUCTION }, 'is a test key'],
    ['a live key elsewhere', LIVE, 'is a live key'],
    [
      'a publishable key',
      { ...TEST, PAYMENTS_STRIPE_API_KEY: 'pk_test_abc' },
      'must be a secret or restricted key',
    ],
    ['a key with a line in it', { ...TEST, PAYMENTS_STRIPE_API_KEY: 'sk_test_a\nb' }, 'must be a secret'],
    [
      'a key without its account',
      { PAYMENTS_STRIPE_API_KEY: 'sk_test_abc' },
      'needs PAYMENTS_STRIPE_ACCOUNT',
    ],
    [
      'an account without a key',
      { PAYMENTS_STRIPE_ACCOUNT: 'acct_1Platform' },
      'needs PAYMENTS_STRIPE_ACCOUNT',
    ],
    ['an address alone', { PAYMENTS_STRIPE_URL: 'http://127.0.0.1:1' }, 'needs PAYMENTS_STRIPE_ACCOUNT'],
    [
      'another address in production',
      { ...LIVE, ...PRODUCTION, PAYMENTS_STRIPE_URL: 'http://127.0.0.1:1' },
      'stand-ins',
    ],
    ['two keys', { ...TEST, PAYMENTS_STRIPE_API_KEY_FILE: '/key' }, 'exclude each other'],
    [
      'a file that is not there',
      { PAYMENTS_STRIPE_ACCOUNT: 'acct_1Platform', PAYMENTS_STRIPE_API_KEY_FILE: '/nowhere/key' },
      'cannot be read',
    ],
    ['an account that is none', { ...TEST, PAYMENTS_STRIPE_ACCOUNT: 'platform' }, 'PAYMENTS_STRIPE_ACCOUNT'],
  ])('%s is refused at start', (_name, env, message) => {
    let said = '';
    try {
      read(env);
    } catch (error) {
      said = (error as Error).message;
    }
    expect(said).toContain(message);
    expect(said).not.toMatch(/abc|[sr]k_(live|test)_[a-z]/);
  });
});
