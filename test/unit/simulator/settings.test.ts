import { describe, expect, it } from 'vitest';
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
    const { accounts, host, keyLifeMs } = readSimulatorSettings(USABLE);
    expect(Object.fromEntries(accounts)).toEqual({
      sk_a: { profile: 'A', account: 'acct_a' },
      sk_t: { profile: 'T', account: 'acct_t' },
      sk_own: { profile: 'A', account: 'acct_own' },
    });
    expect(host).toBe('127.0.0.1');
    expect(keyLifeMs).toBe(86_400_000);
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
      'sk_a:C',
      'SIMULATOR_PROFILE_KEYS, entry 1, names profile C; this simulator has the profiles A and T.',
    ],
    ['SIMULATOR_PROFILE_KEYS', 'sk_a:A,sk_a:T', 'SIMULATOR_PROFILE_KEYS, entry 2, repeats a key.'],
  ])('%s = %s is refused with one sentence', (name, value, sentence) => {
    expect(() => readSimulatorSettings({ ...USABLE, [name]: value })).toThrow(new Error(sentence));
  });
});
