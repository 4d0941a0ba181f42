import { timingSafeEqual } from 'node:crypto';
import type { KeysFile } from '../config/config.js';
import type { Sql } from '../persistence/database.js';
import { monotonicMs } from '../platform/clock.js';
import { apiKeyDigest, type ApiKeyMode, type ApiKeyParts } from './api-key.js';
import { findApiKey, pepperOf, type ApiKeyRow } from './api-key.store.js';
import { readCredential, type Credential } from './credential.js';
import type { PersonClaims, PersonTokens } from './person-token.js';
import { isScopeOfKeys, type Scope } from './scopes.js';
import { findTenantOfPerson } from './tenant.store.js';

/** Who is calling. The tenant comes from the credential and from nowhere else. */
export interface Principal {
  readonly tenantId: string;
  /** The tenant's name in logs. */
  readonly tenantRef: string;
  readonly scopes: ReadonlySet<Scope>;
  /** A key is a machine; only people propose and approve. */
  readonly kind: 'api_key' | 'person';
  /** Who it is, whatever credential says so: the id of the key, or the subject of the token. */
  readonly subject: string;
  /** A person who showed a second factor when the token was made. */
  readonly hasSecondFactor: boolean;
  /** Whose every read is written into the audit log. */
  readonly isAuditor: boolean;
  /** As written into transitions: `api_key:<id>` or `person:<subject>`. */
  readonly actor: string;
}

/** Why a credential was refused: for metrics and the security log, never for the caller. */
export type AuthFailure =
  | 'missing'
  | 'malformed'
  | 'wrong_mode'
  | 'unknown'
  | 'wrong_secret'
  | 'pepper_missing'
  | 'token_invalid'
  | 'token_expired'
  | 'unknown_tenant'
  | 'person_revoked';

export type Authentication =
  | { readonly kind: 'authenticated'; readonly principal: Principal }
  | { readonly kind: 'refused'; readonly reason: AuthFailure; readonly keyId: string | null };

/** A revoked key works at most this long; counted from before its row was read. */
export const KEY_CACHE_LIFE_MS = 5_000;
/** Keys remembered at once; past it the oldest goes. */
const KEY_CACHE_SIZE = 10_000;

interface CachedKey {
  readonly row: ApiKeyRow;
  readonly principal: Principal;
  /** Monotonic ms after which the row is read again. */
  readonly usableUntilMs: number;
}

/**
 * Checks API keys: form and CRC without a read, then the digest of the stored key, which is
 * remembered for 5 s. Hands tokens of people to `people`, and knows their tenants and who was revoked.
 */
export class Authenticator {
  private readonly cache = new Map<string, CachedKey>();
  private readonly loading = new Map<string, Promise<CachedKey | null>>();

  constructor(
    private readonly db: Sql,
    private readonly pepper: KeysFile['pepper'],
    private readonly mode: ApiKeyMode,
    private readonly nowMs: () => number = monotonicMs,
    /** Null: no issuer is configured, and every token is refused. */
    private readonly people: Pick<PersonTokens, 'read'> | null = null,
  ) {}

  /** Says who shows this Authorization header: `readCredential`, then `check`. */
  authenticate(authorization: string | undefined): Promise<Authentication> {
    return this.check(readCredential(authorization));
  }

  /**
   * Says whose credential it is, or why it is refused.
   * @throws StorageUnavailable or OutcomeUnknown when the key has to be read and cannot: the
   * caller is neither known nor refused; IssuerUnavailable likewise for tokens.
   */
  async check(credential: Credential): Promise<Authentication> {
    if (credential.kind === 'none') return refused('missing', null);
    if (credential.kind === 'malformed') return refused('malformed', null);
    if (credential.kind === 'token') return this.person(credential.text);
    const { parts } = credential;
    if (parts.mode !== this.mode) return refused('wrong_mode', parts.id);
    const known = this.cached(parts.id) ?? (await this.load(parts.id));
    if (!known) return refused('unknown', parts.id);
    const pepper = pepperOf(this.pepper, known.row.pepper_key_id);
    // Who takes a pepper away ends its keys; the log tells a mistake from a guess.
    if (pepper === null) return refused('pepper_missing', parts.id);
    if (!matches(parts, known.row, pepper)) return refused('wrong_secret', parts.id);
    return { kind: 'authenticated', principal: known.principal };
  }

  private async person(token: string): Promise<Authentication> {
    if (this.people === null) return refused('token_invalid', null);
    const reading = await this.people.read(token);
    if (reading.kind === 'refused') return refused(reading.reason, null);
    const { claims } = reading;
    // Not remembered: whoever is revoked is refused at the next request.
    const tenant = await findTenantOfPerson(this.db, claims.tenantId, claims.subject);
    if (tenant === null) return refused('unknown_tenant', null);
    if (tenant.is_revoked) return refused('person_revoked', null);
    return { kind: 'authenticated', principal: personPrincipal(claims, tenant.pseudonym) };
  }

  private cached(id: string): CachedKey | null {
    const known = this.cache.get(id);
    if (!known) return null;
    if (this.nowMs() < known.usableUntilMs) return known;
    this.cache.delete(id);
    return null;
  }

  /** One read per key however many requests wait for it. */
  private load(id: string): Promise<CachedKey | null> {
    const running = this.loading.get(id);
    if (running) return running;
    const load = this.read(id).finally(() => this.loading.delete(id));
    this.loading.set(id, load);
    return load;
  }

  private async read(id: string): Promise<CachedKey | null> {
    const askedAtMs = this.nowMs();
    const row = await findApiKey(this.db, id);
    if (!row) return null;
    const known: CachedKey = {
      row,
      principal: Object.freeze({
        tenantId: row.tenant_id,
        tenantRef: row.pseudonym,
        // Also of a row that somebody changed by hand: a key is no person.
        scopes: new Set(row.scopes.filter(isScopeOfKeys)),
        kind: 'api_key' as const,
        subject: row.id,
        hasSecondFactor: false,
        isAuditor: false,
        actor: `api_key:${row.id}`,
      }),
      usableUntilMs: askedAtMs + Math.min(KEY_CACHE_LIFE_MS, row.expires_in_ms),
    };
    if (this.cache.size >= KEY_CACHE_SIZE) this.forgetOldest();
    this.cache.set(id, known);
    return known;
  }

  private forgetOldest(): void {
    for (const id of this.cache.keys()) {
      this.cache.delete(id);
      return;
    }
  }
}

function matches(parts: ApiKeyParts, row: ApiKeyRow, pepper: Buffer): boolean {
  return timingSafeEqual(apiKeyDigest(parts, pepper), row.digest);
}

function refused(reason: AuthFailure, keyId: string | null): Authentication {
  return { kind: 'refused', reason, keyId };
}

function personPrincipal(claims: PersonClaims, tenantRef: string): Principal {
  const { tenantId, scopes, subject, hasSecondFactor, isAuditor } = claims;
  return Object.freeze({
    tenantId,
    tenantRef,
    scopes,
    kind: 'person' as const,
    subject,
    hasSecondFactor,
    isAuditor,
    actor: `person:${subject}`,
  });
}
