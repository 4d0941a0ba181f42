import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { monotonicMs } from '../platform/clock.js';

/** The keys of the issuer cannot be read, so a token can be neither taken nor refused. */
export class IssuerUnavailable extends Error {
  override readonly name = 'IssuerUnavailable';
}

/** Keys are asked for at most this often: tokens with invented key ids must not hammer the issuer. */
export const REFETCH_AFTER_MS = 60_000;
/** A key that the issuer withdrew works at most this long. */
const FRESH_MS = 10 * 60_000;
/** While the issuer is away, its last known keys go on working for this long. */
const USABLE_MS = 60 * 60_000;
/** Without any keys nobody can log in, so the wait is shorter. */
const FIRST_AGAIN_MS = 5_000;
const FETCH_MS = 3_000;
const LARGEST_SET_BYTES = 64 * 1_024;

/**
 * Reads a JSON Web Key Set (RFC 7517) from `https:`, `http:` or `file:`.
 * @throws whatever goes wrong; redirects, sets above 64 KiB and answers after 3 s are refused.
 */
export async function readKeySet(location: URL): Promise<unknown> {
  if (location.protocol === 'file:') return JSON.parse(await readFile(fileURLToPath(location), 'utf8'));
  const answer = await fetch(location, {
    redirect: 'error',
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(FETCH_MS),
  });
  if (!answer.ok) throw new Error(`the issuer answered ${answer.status}`);
  const body = await answer.arrayBuffer();
  if (body.byteLength > LARGEST_SET_BYTES) throw new Error('the key set of the issuer is too large');
  return JSON.parse(Buffer.from(body).toString('utf8'));
}

/** The issuer's public keys in memory: read when first needed, then at most once a minute. */
export class IssuerKeys {
  private find: JWTVerifyGetKey | null = null;
  /** Monotonic ms of the last reading that worked, and of the last one that began. */
  private readAtMs = Number.NEGATIVE_INFINITY;
  private askedAtMs = Number.NEGATIVE_INFINITY;
  private reading: Promise<void> | null = null;
  private fault: unknown = null;

  /** @param read gives the parsed key set; throws when it cannot. */
  constructor(
    private readonly read: () => Promise<unknown>,
    private readonly nowMs: () => number = monotonicMs,
  ) {}

  /**
   * The key that a token names. An unknown id is looked for anew when the last reading is a minute
   * old: the issuer may have rotated.
   * @throws JWKSNoMatchingKey of jose for a key that the issuer does not have; IssuerUnavailable.
   */
  readonly keyFor: JWTVerifyGetKey = async (header, token) => {
    // A token that names no key would be tried with whatever key there is.
    if (typeof header.kid !== 'string') throw new errors.JWKSNoMatchingKey();
    if (this.nowMs() - this.readAtMs >= FRESH_MS) await this.refresh();
    try {
      return await this.current()(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.mayAsk()) throw error;
      await this.refresh();
      return this.current()(header, token);
    }
  };

  private current(): JWTVerifyGetKey {
    if (this.find !== null && this.nowMs() - this.readAtMs < USABLE_MS) return this.find;
    throw new IssuerUnavailable('the keys of the issuer of tokens cannot be read', { cause: this.fault });
  }

  private mayAsk(): boolean {
    const pauseMs = this.find === null ? FIRST_AGAIN_MS : REFETCH_AFTER_MS;
    return this.nowMs() - this.askedAtMs >= pauseMs;
  }

  /** One reading however many tokens wait for it; one that fails leaves what is known. */
  private refresh(): Promise<void> {
    if (this.reading) return this.reading;
    if (!this.mayAsk()) return Promise.resolve();
    this.askedAtMs = this.nowMs();
    this.reading = this.readOnce().finally(() => (this.reading = null));
    return this.reading;
  }

  private async readOnce(): Promise<void> {
    const startedAtMs = this.nowMs();
    try {
      const set = await this.read();
      this.find = createLocalJWKSet(set as Parameters<typeof createLocalJWKSet>[0]);
      this.readAtMs = startedAtMs;
      this.fault = null;
    } catch (error) {
      this.fault = error;
    }
  }
}
