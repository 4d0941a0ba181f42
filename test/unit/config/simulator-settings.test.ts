import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config/config.js';

const URL_OF = 'PAYMENTS_SIMULATOR_URL';
const KEY = 'PAYMENTS_SIMULATOR_API_KEY';
function simulatorOf(env: Record<string, string>) {
  return readConfig({
    PAYMENTS_DATABASE_URL: 'postgres://never.used/by-the-test',
    PAYMENTS_KEYS_FILE: 'never-read',
    ...env,
  }).simulator;
}

describe('the settings of the simulated providers', () => {
  it('may be absent: then there is no simulated provider', () => {
    expect(simulatorOf({})).toBeNull();
  });

  it('hold a key for profile A, and for each further profile that shall exist', () => {
    const url = 'http://127.0.0.1:7340';
    expect(simulatorOf({ [URL_OF]: url, [KEY]: 'sk_a' })).toEqual({ url, apiKeys: { A: 'sk_a' } });
    expect(simulatorOf({ [URL_OF]: url, [KEY]: 'sk_a', [`${KEY}_D`]: 'sk_d', [`${KEY}_T`]: 'sk_t' })).toEqual(
      {
        url,
        apiKeys: { A: 'sk_a', D: 'sk_d', T: 'sk_t' },
      },
    );
  });

  it.each<[string, Record<string, string>]>([
    ['a URL without a key', { [URL_OF]: 'http://127.0.0.1:7340' }],
    ['a key without a URL', { [KEY]: 'sk_a' }],
    ['the key of another profile alone', { [`${KEY}_T`]: 'sk_t' }],
    ['a URL and the key of another profile', { [URL_OF]: 'http://127.0.0.1:7340', [`${KEY}_B`]: 'sk_b' }],
  ])('are refused by name when they are incomplete: %s', (_title, env) => {
    expect(() => simulatorOf(env)).toThrow(
      /PAYMENTS_SIMULATOR_URL and PAYMENTS_SIMULATOR_API_KEY go together/,
    );
  });

  it('give no key to two profiles, and no message shows a key', () => {
    const env = { [URL_OF]: 'http://127.0.0.1:7340', [KEY]: 'sk_same', [`${KEY}_C`]: 'sk_same' };
    expect(() => simulatorOf(env)).toThrow('Each needs a key of its own.');
    expect(() => simulatorOf(env)).not.toThrow(/sk_same/);
  });
});
