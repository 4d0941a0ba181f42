import { timingSafeEqual } from 'node:crypto';
import type { KeysFile } from '../config/config.js';
import type { Sql } from '../persistence/database.js';
import { monotonicMs } from '../platform/clock.js';
import { apiKeyDigest, parseApiKey, type ApiKeyMode, type ApiKeyParts } from './api-key.js';
import { findApiKey, pepperOf, type ApiKeyRow } from './api-key.store.js';
import type { Scope } from './scopes.js';

/** Who is calling. The tenant comes from the credential and from nowhere else. */
export interface Principal {
  readonly tenantId: string;
  /** The tenant's name in logs. */
  readonly tenantRef: string;
  readonly scopes: ReadonlySet<Scope>;
  /** As written into transitions: `api_key:<id>`. */
  readonly actor: string;
}

/** Why a credential was refused: for metrics and the security log, never for the caller. */
export type AuthFailure = 'missing' | 'malformed' | 'wrong_mode' | 'unknown' | 'wrong_secret';

export type Authentication =
  | { readonly kind: 'authenticated'; readonly principal: Principal }
  | { readonly kind: 'refused'; readonly reason: AuthFailure; readonly keyId: string | null };

/** A revoked key works at most this long; counted from before its row was read. */
export const KEY_CACHE_LIFE_MS = 5_000;
/** Keys remembered at once; past it the oldest goes. */
const KEY_CACHE_SIZE = 10_000;

const BEARER = /^Bearer +(\S+) *$/i;

interface CachedKey {
  readonly row: ApiKeyRow;
  readonly principal: Principal;
  /** Monotonic ms after which the row is read again. */
  readonly usableUntilMs: number;
}

/**
 * Checks API keys: form and CRC without a read, then the digest of the stored key, which is
 * remembered for 5 s.
 */
export class Authenticator {
  private readonly cache = new Map<string, CachedKey>();
  private readonly loading = new Map<string, Promise<CachedKey | null>>();

  constructor(
    private readonly db: Sql,
    private readonly pepper: KeysFile['pepper'],
    private readonly mode: ApiKeyMode,
    private readonly nowMs: () => number = monotonicMs,
  ) {}

  /**
   * @param authorization the Authorization header as it came.
   * @throws StorageUnavailable or OutcomeUnknown when the key has to be read and cannot: the
   * caller is neither known nor refused.
   */
  async authenticate(authorization: string | undefined): Promise<Authentication> {
    if (authorization === undefined) return refused('missing', null);
    const parts = parseApiKey(BEARER.exec(authorization)?.[1] ?? '');
    if (!parts) return refused('malformed', null);
    if (parts.mode !== this.mode) return refused('wrong_mode', parts.id);
    const known = this.cached(parts.id) ?? (await this.load(parts.id));
    if (!known) return refused('unknown', parts.id);
    if (!this.matches(parts, known.row)) return refused('wrong_secret', parts.id);
    return { kind: 'authenticated', principal: known.principal };
  }

  private matches(parts: ApiKeyParts, row: ApiKeyRow): boolean {
    return timingSafeEqual(apiKeyDigest(parts, pepperOf(this.pepper, row.pepper_key_id)), row.digest);
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
        scopes: new Set(row.scopes as readonly Scope[]),
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

function refused(reason: AuthFailure, keyId: string | null): Authentication {
  return { kind: 'refused', reason, keyId };
}
