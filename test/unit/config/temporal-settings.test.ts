import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config/config.js';
import { productionSettings, type ProductionSettings } from '../../support/production.js';

const BASE = {
  PAYMENTS_DATABASE_URL: 'postgres://owner@127.0.0.1:5432/payments',
  PAYMENTS_KEYS_FILE: '/etc/payments/keys.json',
};
const CERT = 'PAYMENTS_TEMPORAL_TLS_CERT_FILE';
const KEY = 'PAYMENTS_TEMPORAL_TLS_KEY_FILE';

let production: ProductionSettings;
beforeAll(async () => {
  production = await productionSettings();
});
afterAll(() => production.remove());

const temporal = (env: Record<string, string>) => readConfig({ ...BASE, ...env }).temporal;

describe('Temporal settings', () => {
  it('are an open connection to this machine when nothing is set', () => {
    expect(temporal({})).toEqual({ address: '127.0.0.1:7233', namespace: 'default', tls: null });
  });

  it('hold the certificates of both sides', () => {
    const { tls } = temporal({ ...production.env, PAYMENTS_TEMPORAL_TLS_SERVER_NAME: 'temporal.internal' });
    expect(tls?.clientCertPair.crt.toString()).toContain('BEGIN CERTIFICATE');
    expect(tls?.clientCertPair.key.toString()).toContain('BEGIN PRIVATE KEY');
    expect(tls?.serverRootCACertificate?.toString()).toContain('BEGIN CERTIFICATE');
    expect(tls?.serverNameOverride).toBe('temporal.internal');
  });

  it('without certificates stop the start in production: who reaches the namespace may cancel payments', () => {
    expect(() => temporal({ PAYMENTS_MODE: 'production' })).toThrow(/mutual TLS only.*CERT_FILE/);
  });

  it.each([CERT, KEY])('are refused when %s is missing beside the others', (name) => {
    const { [name]: _, ...rest } = production.env;
    expect(() => temporal(rest)).toThrow(/needs PAYMENTS_TEMPORAL_TLS_CERT_FILE and/);
  });

  it('are refused when a file cannot be read, by the name of the setting and not of the file', () => {
    const read = () => temporal({ ...production.env, [KEY]: '/nowhere/secret-place' });
    expect(read).toThrow(`The file that ${KEY} names cannot be read.`);
  });
});
