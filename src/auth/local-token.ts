import { createPrivateKey, sign, type JsonWebKey } from 'node:crypto';
import { newUuid } from '../platform/ids.js';
import { TOKEN_TYPE } from './token-type.js';

/** A person of a development stack, as its stack file names one. */
export interface LocalPerson {
  readonly subject: string;
  readonly tenant: string;
  readonly roles: readonly string[];
}

export interface LocalIssuer {
  readonly issuer: string;
  readonly audience: string;
  readonly kid: string;
  /** An Ed25519 private key as JWK. */
  readonly privateKey: JsonWebKey;
}

/** As long as tokens of a real issuer live in practice (s). */
const LIFE_S = 10 * 60;

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * Signs a token for a person of a development stack: there is no log-in. Only the issuer's own
 * private key can do this, and only a development stack keeps it in a file.
 * @param nowMs this machine's clock.
 */
export function signLocalToken(issuer: LocalIssuer, person: LocalPerson, nowMs: number): string {
  const iat = Math.floor(nowMs / 1_000);
  const header = { alg: 'EdDSA', typ: TOKEN_TYPE, kid: issuer.kid };
  const claims = {
    iss: issuer.issuer,
    aud: issuer.audience,
    sub: person.subject,
    tenant: person.tenant,
    roles: person.roles,
    amr: ['pwd', 'otp', 'mfa'],
    iat,
    exp: iat + LIFE_S,
    jti: newUuid(nowMs),
  };
  const signed = `${part(header)}.${part(claims)}`;
  const key = createPrivateKey({ key: issuer.privateKey, format: 'jwk' });
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`;
}
