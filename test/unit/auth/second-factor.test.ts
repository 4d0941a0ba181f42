import { createLocalJWKSet } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PersonTokens } from '../../../src/auth/person-token.js';
import { AUDIENCE, createTestIssuer, ISSUER, type TestIssuer, type TokenSeed } from '../../support/people.js';

let issuer: TestIssuer;
beforeAll(async () => {
  issuer = await createTestIssuer();
});
afterAll(() => issuer.close());

async function hasSecondFactor(seed: TokenSeed, secondFactorAcr: readonly string[] = ['loa3']) {
  const rules = { issuer: ISSUER, audience: AUDIENCE, secondFactorAcr };
  const tokens = new PersonTokens(rules, createLocalJWKSet({ keys: [issuer.publicJwk] }));
  const reading = await tokens.read(await issuer.token(seed));
  if (reading.kind !== 'person') throw new Error(`the token was refused: ${reading.reason}`);
  return reading.claims.hasSecondFactor;
}

describe('a second factor', () => {
  it('is what amr calls mfa, or an acr that the configuration names', async () => {
    expect(await hasSecondFactor({ amr: ['pwd', 'mfa'] })).toBe(true);
    expect(await hasSecondFactor({ amr: null, claims: { acr: 'loa3' } })).toBe(true);
  });

  it('is nothing else', async () => {
    expect(await hasSecondFactor({ amr: null })).toBe(false);
    expect(await hasSecondFactor({ amr: ['pwd', 'otp'] })).toBe(false);
    expect(await hasSecondFactor({ amr: null, claims: { amr: 'mfa' } })).toBe(false);
    expect(await hasSecondFactor({ amr: null, claims: { acr: 'loa2' } })).toBe(false);
    expect(await hasSecondFactor({ amr: null, claims: { acr: '' } }, [])).toBe(false);
  });
});
