import { describe, expect, it } from 'vitest';
import { credentialOf } from '../../../src/simulator/account.js';
import { readSimulatorSettings } from '../../../src/simulator/settings.js';

const USABLE = {
  SIMULATOR_PORT: '4010',
  SIMULATOR_CONTROL_PORT: '4011',
  SIMULATOR_CONTROL_TOKEN: 'control-token',
  SIMULATOR_LEDGER_FILE: '/var/lib/simulator/ledger.jsonl',
  SIMULATOR_PROFILE_KEYS: 'sk_a:A, sk_t:T,sk_own:A:acct_own',
};

describe('the settings of the simulator', () => {
  it('keys of one profile share an account unless one is named', () => {
    const { accounts, host, keyLifeMs, switches } = readSimulatorSettings(USABLE);
    expect(Object.fromEntries(accounts)).toEqual({
      sk_a: { profile: 'A', account: 'acct_a', credential: credentialOf('sk_a') },
      sk_t: { profile: 'T', account: 'acct_t', credential: credentialOf('sk_t') },
      sk_own: { profile: 'A', account: 'acct_own', credential: credentialOf('sk_own') },
    });
    expect(switches.size).toBe(0);
    expect(host).toBe('127.0.0.1');
    expect(keyLifeMs).toBe(86_400_000);
  });

  it('reads what single accounts do otherwise', () => {
    const SIMULATOR_SWITCHES = '{"acct_a":{"keyLifeMs":2000,"keyScope":"api_key"}}';
    const { switches } = readSimulatorSettings({ ...USABLE, SIMULATOR_SWITCHES });
    expect(switches.get('acct_a')).toEqual({ keyLifeMs: 2000, keyScope: 'api_key' });
  });

  it.each([
    ['SIMULATOR_PORT', undefined, 'SIMULATOR_PORT is not set; the simulator needs it.'],
    ['SIMULATOR_PORT', '70000', 'SIMULATOR_PORT must be a whole number from 0 to 65535.'],
    ['SIMULATOR_CONTROL_PORT', '1e3', 'SIMULATOR_CONTROL_PORT must be a whole number from 0 to 65535.'],
    ['SIMULATOR_CONTROL_TOKEN', 'short', 'SIMULATOR_CONTROL_TOKEN must have at least 8 characters.'],
    ['SIMULATOR_LEDGER_FILE', '', 'SIMULATOR_LEDGER_FILE is not set; the simulator needs it.'],
    ['SIMULATOR_KEY_LIFE_MS', '-5', 'SIMULATOR_KEY_LIFE_MS must be a whole number from 1 to 31536000000.'],
    [
      'SIMULATOR_PROFILE_KEYS',
      'sk_a:A,sk_b',
      'SIMULATOR_PROFILE_KEYS, entry 2, must have the form key:profile or key:profile:acct_name.',
    ],
    [
      'SIMULATOR_PROFILE_KEYS',
      'sk_a:E',
      'SIMULATOR_PROFILE_KEYS, entry 1, names profile E; this simulator has A, B, C, D, T.',
    ],
    ['SIMULATOR_PROFILE_KEYS', 'sk_a:A,sk_a:T', 'SIMULATOR_PROFILE_KEYS, entry 2, repeats a key.'],
    ['SIMULATOR_WEBHOOKS', '{}', 'SIMULATOR_WEBHOOKS must be a JSON list of endpoints.'],
    [
      'SIMULATOR_WEBHOOKS',
      '[{"account":"acct_a","url":"ftp://here","secret":"long-enough"}]',
      'SIMULATOR_WEBHOOKS, entry 1: An endpoint needs a url of http or https.',
    ],
    [
      'SIMULATOR_WEBHOOK_RETRY_MS',
      '10,soon',
      'SIMULATOR_WEBHOOK_RETRY_MS must be whole milliseconds, comma-separated.',
    ],
    ['SIMULATOR_SWITCHES', '{', 'SIMULATOR_SWITCHES must be JSON: account to an object of switches.'],
    ['SIMULATOR_SWITCHES', '[]', 'SIMULATOR_SWITCHES must be an object: account to its switches.'],
    [
      'SIMULATOR_SWITCHES',
      '{"acct_a":{"keyLife":5}}',
      'SIMULATOR_SWITCHES, acct_a: "keyLife" is no switch. Known: keyLifeMs, lookupLagMs, keyScope, errorReplay.',
    ],
    [
      'SIMULATOR_SWITCHES',
      '{"acct_a":{"keyLifeMs":0}}',
      'SIMULATOR_SWITCHES, acct_a: The switch keyLifeMs has no usable value.',
    ],
  ])('%s = %s is refused with one sentence', (name, value, sentence) => {
    expect(() => readSimulatorSettings({ ...USABLE, [name]: value })).toThrow(new Error(sentence));
  });
});
