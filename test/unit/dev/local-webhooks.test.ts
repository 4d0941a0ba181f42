import { readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config/config.js';
import { ensureWebhookSecrets, webhookEndpoints } from '../../../src/dev/local-webhooks.js';
import { openStackFolder } from '../../../src/dev/stack-folder.js';
import { createProviderRegistry } from '../../../src/providers/provider-registry.js';
import { readSimulatorSettings } from '../../../src/simulator/settings.js';
import { temporaryFolder } from './temporary-folder.js';

const REQUIRED = { PAYMENTS_DATABASE_URL: 'postgres://127.0.0.1/x', PAYMENTS_KEYS_FILE: 'keys.json' };

describe('the webhook secrets of a local stack', () => {
  it('are private, one for each registered provider, and the API and the simulator read the same', () => {
    const folder = openStackFolder(temporaryFolder());
    ensureWebhookSecrets(folder);
    expect(statSync(folder.webhookSecretsFile).mode & 0o777).toBe(0o600);
    const keys = Object.fromEntries(['', '_B', '_C', '_D', '_T'].map((p) => [`PAYMENTS_SIMULATOR_API_KEY${p}`, `sk${p}`]));
    const config = readConfig({
      ...REQUIRED,
      ...keys,
      PAYMENTS_SIMULATOR_URL: 'http://127.0.0.1:1',
      PAYMENTS_WEBHOOK_SECRETS_FILE: folder.webhookSecretsFile,
    });
    const providers = createProviderRegistry(config);
    const accounts = providers.names().map((name) => `${name}/${providers.get(name)?.account}`);
    expect([...config.webhookSecrets.keys()].sort()).toEqual(accounts.sort());
    const { webhooks } = readSimulatorSettings({
      SIMULATOR_PORT: '0',
      SIMULATOR_CONTROL_PORT: '0',
      SIMULATOR_CONTROL_TOKEN: 'token-of-the-test',
      SIMULATOR_LEDGER_FILE: 'ledger',
      SIMULATOR_PROFILE_KEYS: 'sk_a:A,sk_b:B,sk_c:C,sk_d:D,sk_t:T',
      SIMULATOR_WEBHOOKS: webhookEndpoints(folder, 7300),
    });
    for (const { url, secrets } of webhooks.values()) {
      const [, name = ''] = /\/v1\/webhooks\/(\w+)$/.exec(url) ?? [];
      expect(config.webhookSecrets.get(`${name}/${providers.get(name)?.account}`)).toEqual(secrets);
    }
    expect(webhooks.size).toBe(5);
    expect(new Set([...webhooks.values()].flatMap((w) => w.secrets)).size).toBe(5);
  }); // prettier-ignore

  it('stay the same on a second start: events of the last run may still come', () => {
    const folder = openStackFolder(temporaryFolder());
    ensureWebhookSecrets(folder);
    const before = readFileSync(folder.webhookSecretsFile, 'utf8');
    ensureWebhookSecrets(folder);
    expect(readFileSync(folder.webhookSecretsFile, 'utf8')).toBe(before);
  });
});

describe('the setting of webhook secrets', () => {
  const read = (env: Record<string, string>) => readConfig({ ...REQUIRED, ...env }).webhookSecrets;

  it('may be text or a file, not both; none is none', () => {
    expect(read({}).size).toBe(0);
    const text = '{"simulated/default":["a-secret-of-the-test","an-older-one-of-it"]}';
    expect(read({ PAYMENTS_WEBHOOK_SECRETS: text }).get('simulated/default')).toHaveLength(2);
    expect(() => read({ PAYMENTS_WEBHOOK_SECRETS: text, PAYMENTS_WEBHOOK_SECRETS_FILE: 'x' })).toThrow(/exclude/);
    expect(() => read({ PAYMENTS_WEBHOOK_SECRETS_FILE: 'not-there.json' })).toThrow(/cannot be read/);
  }); // prettier-ignore

  it.each([
    ['a third secret', '{"a/b":["1234567890123456","2234567890123456","3234567890123456"]}'],
    ['a short secret', '{"a/b":["short"]}'],
    ['no secret', '{"a/b":[]}'],
    ['no account', '{"a":["1234567890123456"]}'],
    ['no object', '["1234567890123456"]'],
    ['no JSON', 'whsec_1234567890123456'],
  ])('refuses %s, and never shows it', (_name, text) => {
    let message = '';
    try {
      read({ PAYMENTS_WEBHOOK_SECRETS: text });
    } catch (error) {
      message = String(error);
    }
    expect(message).toMatch(/webhook secrets/);
    expect(message).not.toMatch(/1234567890123456|short/);
  });
});
