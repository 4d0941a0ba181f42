import { describe, expect, it } from 'vitest';
import { readConfig, type Config } from '../../../src/config/config.js';
import { edgeSettingsOf } from '../../../src/config/edge-settings.js';

const read = (env: Record<string, string>): Config =>
  readConfig({ PAYMENTS_DATABASE_URL: 'postgres://a/b', PAYMENTS_KEYS_FILE: 'keys.json', ...env });

describe('limits of calls', () => {
  it('have defaults, and are read as rate and burst', () => {
    expect(read({}).edge.rateLimits).toEqual({
      client: { ratePerSecond: 100, burst: 200 },
      tenant: { ratePerSecond: 300, burst: 600 },
    });
    const { rateLimits } = read({
      PAYMENTS_RATE_LIMIT_CLIENT: '0.5/1',
      PAYMENTS_RATE_LIMIT_TENANT: '1000/5000',
    }).edge;
    expect(rateLimits).toEqual({
      client: { ratePerSecond: 0.5, burst: 1 },
      tenant: { ratePerSecond: 1_000, burst: 5_000 },
    });
  });

  it.each(['', '100', '0/10', '10/0', '-1/5', '1e3/5', '100/200/300', 'many/few', '100001/5', '1/1000001'])(
    'are refused as "%s", by name and without the value',
    (text) => {
      expect(() => read({ PAYMENTS_RATE_LIMIT_TENANT: text })).toThrow(
        'PAYMENTS_RATE_LIMIT_TENANT must be requests per second and burst, such as 100/200.',
      );
    },
  );

  it('can be off to measure them, and never in production', () => {
    expect(read({ PAYMENTS_RATE_LIMITS: 'off' }).edge.rateLimits).toBeNull();
    const off = {
      PAYMENTS_RATE_LIMITS: 'off',
      PAYMENTS_RATE_LIMIT_CLIENT: '1/1',
      PAYMENTS_RATE_LIMIT_TENANT: '1/1',
      PAYMENTS_TRUSTED_PROXIES: '',
    } as const;
    expect(() => edgeSettingsOf(off, 'production')).toThrow(/PAYMENTS_RATE_LIMITS/);
  });
});

describe('trusted proxies', () => {
  it('are none unless they are named, one by one or as networks', () => {
    expect(read({}).edge.trustedProxies).toEqual([]);
    expect(
      read({ PAYMENTS_TRUSTED_PROXIES: '10.1.0.0/16, 192.0.2.7,2001:db8::/32 ' }).edge.trustedProxies,
    ).toEqual(['10.1.0.0/16', '192.0.2.7', '2001:db8::/32']);
  });

  it.each([
    'true',
    '*',
    'loopback',
    'proxy.example',
    '0.0.0.0/0',
    '::/0',
    '10.0.0.0/33',
    '10.0.0.0/8/8',
    '1',
  ])('are refused as %s: nobody is believed by mistake (SE-01)', (text) => {
    expect(() => read({ PAYMENTS_TRUSTED_PROXIES: text })).toThrow(/PAYMENTS_TRUSTED_PROXIES must be/);
  });
});
