import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { writePrivately, type StackFolder } from './stack-folder.js';

/** A person of the local stack: `payments token --as <name>` signs a token for one. */
export interface LocalPerson {
  /** The same for every token: two people are two subjects. */
  readonly subject: string;
  readonly tenant: string;
  readonly roles: readonly string[];
}

/** Two operators, because one person's proposal needs another's approval, an approver and an auditor. */
export const PEOPLE: Readonly<Record<string, LocalPerson>> = Object.freeze({
  'operator-1': { subject: 'operator-1', tenant: 'local', roles: ['operator'] },
  'operator-2': { subject: 'operator-2', tenant: 'local', roles: ['operator'] },
  'approver-1': { subject: 'approver-1', tenant: 'local', roles: ['approver'] },
  'auditor-1': { subject: 'auditor-1', tenant: 'local', roles: ['auditor'] },
});

const ISSUER = 'http://issuer.localhost';
const AUDIENCE = 'payments';

/**
 * Writes the key pair of the stack's own issuer on the first start: the private key, marked as
 * development, for `payments token`, and the key set that the API reads. A file is enough, so the
 * issuer is no process and needs no port. Later starts keep both.
 */
export function ensureIssuer(folder: StackFolder): void {
  if (existsSync(folder.issuerKeyFile) && existsSync(folder.issuerKeySetFile)) return;
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const kid = `local-${randomBytes(4).toString('hex')}`;
  writePrivately(folder.issuerKeySetFile, {
    keys: [{ ...publicKey.export({ format: 'jwk' }), kid, alg: 'EdDSA', use: 'sig' }],
  });
  writePrivately(folder.issuerKeyFile, {
    development: true,
    issuer: ISSUER,
    audience: AUDIENCE,
    kid,
    private_key: privateKey.export({ format: 'jwk' }),
  });
}

/** How the API knows the issuer (names: src/config/config.ts). */
export function issuerSettings(folder: StackFolder): Record<string, string> {
  return {
    PAYMENTS_OIDC_ISSUER: ISSUER,
    PAYMENTS_OIDC_AUDIENCE: AUDIENCE,
    PAYMENTS_OIDC_JWKS: pathToFileURL(folder.issuerKeySetFile).href,
  };
}
