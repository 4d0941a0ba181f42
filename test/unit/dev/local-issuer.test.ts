import type { JsonWebKey } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readKeySet, IssuerKeys } from '../../../src/auth/issuer-keys.js';
import { signLocalToken } from '../../../src/auth/local-token.js';
import { PersonTokens } from '../../../src/auth/person-token.js';
import { ensureIssuer, issuerSettings, PEOPLE } from '../../../src/dev/local-issuer.js';
import { openStackFolder } from '../../../src/dev/stack-folder.js';
import { temporaryFolder } from './temporary-folder.js';

describe('the issuer of a local stack', () => {
  it('keeps its private key to its owner and to development, and shows only the public one', () => {
    const folder = openStackFolder(temporaryFolder());
    ensureIssuer(folder);
    expect(statSync(folder.issuerKeyFile).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(folder.issuerKeyFile, 'utf8'))).toMatchObject({ development: true });
    const { keys } = JSON.parse(readFileSync(folder.issuerKeySetFile, 'utf8')) as { keys: object[] };
    expect(keys).toHaveLength(1);
    expect(keys[0]).not.toHaveProperty('d');
  });

  it('is the same after another start', () => {
    const folder = openStackFolder(temporaryFolder());
    ensureIssuer(folder);
    const before = readFileSync(folder.issuerKeySetFile, 'utf8');
    ensureIssuer(folder);
    expect(readFileSync(folder.issuerKeySetFile, 'utf8')).toBe(before);
  });

  it('signs tokens that the API takes for the person that they name', async () => {
    const folder = openStackFolder(temporaryFolder());
    ensureIssuer(folder);
    const settings = issuerSettings(folder);
    const file = JSON.parse(readFileSync(folder.issuerKeyFile, 'utf8')) as {
      issuer: string;
      audience: string;
      kid: string;
      private_key: JsonWebKey;
    };
    const person = PEOPLE['approver-1'];
    if (!person) throw new Error('the stack has an approver');
    const token = signLocalToken({ ...file, privateKey: file.private_key }, person, Date.now());
    const keys = new IssuerKeys(() => readKeySet(new URL(settings['PAYMENTS_OIDC_JWKS'] ?? '')));
    const tokens = new PersonTokens(
      {
        issuer: settings['PAYMENTS_OIDC_ISSUER'] ?? '',
        audience: settings['PAYMENTS_OIDC_AUDIENCE'] ?? '',
        secondFactorAcr: [],
      },
      keys.keyFor,
    );
    expect(await tokens.read(token)).toEqual({
      kind: 'person',
      claims: {
        subject: 'approver-1',
        tenantId: 'local',
        scopes: new Set(['payments:read', 'payments:resolve']),
        hasSecondFactor: true,
        isAuditor: false,
      },
    });
  });
});
