import { errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { PERSON_SUBJECT } from './person-subject.js';
import { SCOPES_OF_ROLE, type Role, type Scope } from './scopes.js';
import { TOKEN_TYPE } from './token-type.js';

/** What a token has to say of its origin (OpenID Connect; RFC 9068 for access tokens). */
export interface TokenRules {
  readonly issuer: string;
  readonly audience: string;
  /** Values of `acr` that mean a second factor; `amr` with `mfa` (RFC 8176) always does. */
  readonly secondFactorAcr: readonly string[];
}

/** A person as a token of the issuer names one. */
export interface PersonClaims {
  /** The same for every token of this person. */
  readonly subject: string;
  readonly tenantId: string;
  /** Of all roles named; unknown ones allow nothing. */
  readonly scopes: ReadonlySet<Scope>;
  readonly hasSecondFactor: boolean;
  /** Also beside other roles: an auditor's reads are written down. */
  readonly isAuditor: boolean;
}

export type TokenReading =
  | { readonly kind: 'person'; readonly claims: PersonClaims }
  | { readonly kind: 'refused'; readonly reason: 'token_invalid' | 'token_expired' };

/** Signatures with a private key only: an algorithm with a shared secret would take the public one for it. */
const ALGORITHMS = ['EdDSA', 'ES256', 'PS256'];
/** Tokens are not revoked, people are (`payments people`): of the rest a short life is what ends one (s). */
export const TOKEN_LIFE_MAX_S = 15 * 60;
/** Clocks of the issuer and of this machine differ a little (s). */
export const TOKEN_LEEWAY_S = 30;
const TENANT = /^[^\s\0]{1,255}$/;

/** Checks tokens of people. The tenant is what the token says and nothing else. */
export class PersonTokens {
  constructor(
    private readonly rules: TokenRules,
    private readonly keyFor: JWTVerifyGetKey,
    private readonly nowMs: () => number = Date.now,
  ) {}

  /**
   * @param token three parts in base64url, as they came.
   * @returns the person, or why not: for metrics and the log, never for the caller.
   * @throws IssuerUnavailable when the keys of the issuer are not known. Twice: the same.
   */
  async read(token: string): Promise<TokenReading> {
    try {
      const { payload } = await jwtVerify(token, this.keyFor, {
        algorithms: ALGORITHMS,
        issuer: this.rules.issuer,
        audience: this.rules.audience,
        typ: TOKEN_TYPE,
        clockTolerance: TOKEN_LEEWAY_S,
        maxTokenAge: TOKEN_LIFE_MAX_S,
        requiredClaims: ['exp', 'iat', 'sub', 'tenant'],
        currentDate: new Date(this.nowMs()),
      });
      const claims = this.claimsOf(payload);
      return claims === null ? REFUSED : { kind: 'person', claims };
    } catch (error) {
      if (error instanceof errors.JWTExpired) return { kind: 'refused', reason: 'token_expired' };
      if (error instanceof errors.JOSEError) return REFUSED;
      throw error;
    }
  }

  private claimsOf(payload: JWTPayload): PersonClaims | null {
    const { sub, exp, iat, tenant, roles } = payload;
    if (typeof sub !== 'string' || !PERSON_SUBJECT.test(sub)) return null;
    if (typeof tenant !== 'string' || !TENANT.test(tenant)) return null;
    if (exp === undefined || iat === undefined || !(exp - iat <= TOKEN_LIFE_MAX_S)) return null;
    const named = (Array.isArray(roles) ? roles : []).filter(isRole);
    const scopes = new Set(named.flatMap((role) => SCOPES_OF_ROLE[role]));
    const isAuditor = named.includes('auditor');
    return {
      subject: sub,
      tenantId: tenant,
      scopes,
      isAuditor,
      hasSecondFactor: this.hasSecondFactor(payload),
    };
  }

  private hasSecondFactor({ amr, acr }: JWTPayload): boolean {
    if (Array.isArray(amr) && amr.includes('mfa')) return true;
    return typeof acr === 'string' && this.rules.secondFactorAcr.includes(acr);
  }
}

const REFUSED: TokenReading = { kind: 'refused', reason: 'token_invalid' };

function isRole(value: unknown): value is Role {
  return typeof value === 'string' && Object.hasOwn(SCOPES_OF_ROLE, value);
}
