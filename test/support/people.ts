import { createPrivateKey, sign, type JsonWebKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';

export const ISSUER = 'https://issuer.test';
export const AUDIENCE = 'payments-test';

export interface TokenSeed {
  readonly subject?: string;
  readonly tenant?: string;
  readonly roles?: readonly string[];
  /** Absent: `['pwd', 'mfa']`; null: no claim. */
  readonly amr?: readonly string[] | null;
  /** Claims that replace the usual ones; undefined removes one. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Header members that replace the usual ones. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** Seconds from now. */
  readonly issuedIn?: number;
  readonly expiresIn?: number;
  /** Another key than the issuer's. */
  readonly signWith?: CryptoKey | Uint8Array;
}

/** An issuer of a test, with its key set in a file, and the settings with which the API knows it. */
export interface TestIssuer {
  readonly env: Readonly<Record<string, string>>;
  readonly publicJwk: JWK;
  readonly kid: string;
  /** The claims and header of a token that lets an operator in, before it is signed. */
  parts(seed?: TokenSeed): { header: Record<string, unknown>; claims: Record<string, unknown> };
  token(seed?: TokenSeed): Promise<string>;
  /** The issuer's signature over this text, in base64url; EdDSA only. */
  sign(text: string): string;
  /** Adds a key to the issuer's set, as its next reader finds it. */
  publish(jwk: JWK): void;
  close(): void;
}

export type IssuerAlgorithm = 'EdDSA' | 'ES256' | 'PS256';

export async function createTestIssuer(alg: IssuerAlgorithm = 'EdDSA'): Promise<TestIssuer> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const kid = `test-${alg}`;
  const publicJwk: JWK = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
  const folder = mkdtempSync(join(tmpdir(), 'payments-issuer-'));
  const file = join(folder, 'key-set.json');
  const published = [publicJwk];
  const write = (): void => writeFileSync(file, JSON.stringify({ keys: published }));
  write();
  const nodeKey = createPrivateKey({ key: (await exportJWK(privateKey)) as JsonWebKey, format: 'jwk' });
  const parts: TestIssuer['parts'] = (seed = {}) => {
    const now = Math.floor(Date.now() / 1_000);
    const { issuedIn = 0, expiresIn = 600, amr = ['pwd', 'mfa'] } = seed;
    const claims: Record<string, unknown> = {
      iss: ISSUER,
      aud: AUDIENCE,
      sub: seed.subject ?? 'ada',
      tenant: seed.tenant ?? 'nobody',
      roles: seed.roles ?? ['operator'],
      iat: now + issuedIn,
      exp: now + expiresIn,
      ...(amr === null ? {} : { amr }),
      ...seed.claims,
    };
    for (const name of Object.keys(claims)) if (claims[name] === undefined) delete claims[name];
    return { header: { alg, typ: 'at+jwt', kid, ...seed.header }, claims };
  };
  return {
    env: {
      PAYMENTS_OIDC_ISSUER: ISSUER,
      PAYMENTS_OIDC_AUDIENCE: AUDIENCE,
      PAYMENTS_OIDC_JWKS: pathToFileURL(file).href,
    },
    publicJwk,
    kid,
    parts,
    token: (seed = {}) => {
      const { header, claims } = parts(seed);
      return new SignJWT(claims)
        .setProtectedHeader(header as { alg: string })
        .sign(seed.signWith ?? privateKey);
    },
    sign: (text) => sign(null, Buffer.from(text), nodeKey).toString('base64url'),
    publish: (jwk) => {
      published.push(jwk);
      write();
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}
