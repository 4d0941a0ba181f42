import { randomBytes } from 'node:crypto';
import type { DestinationCipher } from '../../src/encryption/destination-cipher.js';
import { FINGERPRINT_VERSION } from '../../src/domain/request-fingerprint.js';
import { parseIdempotencyKey } from '../../src/domain/idempotency-key.js';
import { paymentId } from '../../src/domain/payment-id.js';
import { insertPayment, type PaymentRow } from '../../src/payments/payment.store.js';
import type { Sql } from '../../src/persistence/database.js';
import { sha256 } from '../../src/platform/sha256.js';
import { directCipher, newKeySet } from './ciphers.js';
import { homeOf } from './database.js';

/** A word that no other test uses. */
export function unique(prefix: string): string {
  return `${prefix}-${randomBytes(6).toString('hex')}`;
}

export interface TenantSeed {
  readonly id?: string;
  readonly latenessLimitSeconds?: number;
  readonly uniqueReferences?: boolean;
}

/**
 * Runs what a test plants: on a test database as superuser, since no role of the product may plant
 * everything.
 */
export async function plant(sql: Sql, text: string, values: readonly unknown[]): Promise<void> {
  const home = homeOf(sql);
  if (home) await home.query(text, values);
  else await sql.query({ name: `plant-${text}`.slice(0, 60), text }, values);
}

/** Inserts a tenant and returns its id. */
export async function seedTenant(sql: Sql, seed: TenantSeed = {}): Promise<string> {
  const id = seed.id ?? unique('tenant');
  await plant(
    sql,
    `INSERT INTO tenant (id, pseudonym, lateness_limit_seconds, unique_references) VALUES ($1, $2, $3, $4)`,
    [id, `p-${id}`, seed.latenessLimitSeconds ?? 86_400, seed.uniqueReferences ?? false],
  );
  return id;
}

export interface LaneSeed {
  readonly lane?: string;
  readonly provider?: string;
  readonly account?: string;
  /** Tokens per second. */
  readonly rate?: number;
  readonly burst?: number;
  /** Calls in flight per worker. */
  readonly cap?: number;
  readonly paused?: boolean;
  /** Absent: off, so that a test may fail as many calls as it wants. */
  readonly breaker?: boolean;
}

/** Inserts a lane with a full bucket and returns its name. */
export async function seedLane(sql: Sql, seed: LaneSeed = {}): Promise<string> {
  const lane = seed.lane ?? unique('lane');
  const burst = seed.burst ?? 1_000;
  await sql.query(
    {
      name: 'seed-lane',
      text: `INSERT INTO lane (lane, provider, account, rate, burst, tokens, cap, paused, breaker_enabled)
             VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8)`,
    },
    [
      lane,
      // A provider of its own: an account has one lane, and the lane's must be the engine's.
      seed.provider ?? lane,
      seed.account ?? 'default',
      seed.rate ?? 1_000,
      burst,
      seed.cap ?? 200,
      seed.paused ?? false,
      seed.breaker ?? false,
    ],
  );
  return lane;
}

export interface PaymentSeed {
  readonly tenant: string;
  readonly lane: string;
  readonly key?: string;
  readonly amount?: bigint;
  readonly currency?: string;
  readonly provider?: string;
  readonly reference?: string | null;
  readonly description?: string | null;
  readonly metadata?: Readonly<Record<string, string>> | null;
  /** Postgres timestamptz text; `now` (the default) is due at once, on the database's clock. */
  readonly executeAt?: string;
  /** Postgres timestamptz text; absent: the tenant's lateness limit after `executeAt`. */
  readonly notAfter?: string | null;
  readonly actor?: string;
  readonly destination?: string;
  /** Seals the destination; absent: `testCipher`, whose keys live as long as the test file. */
  readonly cipher?: DestinationCipher;
}

/** The keys of `testCipher`; they live as long as the test file. */
export const testEncryption = newKeySet('test-e');
export const testDigest = newKeySet('test-d');

/** Opens what `insertScheduled` sealed without a cipher of the test's own. */
export const testCipher = directCipher({ encryption: testEncryption, digest: testDigest });

async function seal(seed: PaymentSeed, id: string) {
  const cipher = seed.cipher ?? testCipher;
  const plaintext = seed.destination ?? 'acct_test';
  const place = { tenant: seed.tenant, paymentId: id, field: 'destination' as const };
  const sealed = await cipher.encrypt({ ...place, plaintext });
  const { keyId, digest } = cipher.digests.digest(plaintext);
  return {
    destination: sealed.ciphertext,
    destinationKeyId: sealed.keyId,
    destinationDigest: digest,
    digestKeyId: keyId,
  };
}

/**
 * Inserts one scheduled payment with its first transition and its outbox row, through the product's
 * own insert.
 * @throws Error when the insert refuses it: the test asked for something impossible.
 */
export async function insertScheduled(sql: Sql, seed: PaymentSeed): Promise<PaymentRow> {
  const parsed = parseIdempotencyKey([seed.key ?? unique('key')]);
  if (parsed.kind !== 'key') throw new Error('the test asked for an idempotency key that is refused');
  const id = paymentId({ tenant: seed.tenant, key: parsed.key, sha256 });
  const result = await insertPayment(sql, {
    id,
    tenantId: seed.tenant,
    idempotencyKey: parsed.key,
    fingerprint: randomBytes(32),
    fingerprintVersion: FINGERPRINT_VERSION,
    amount: seed.amount ?? 1_999n,
    currency: seed.currency ?? 'EUR',
    provider: seed.provider ?? 'simulated',
    lane: seed.lane,
    reference: seed.reference ?? null,
    description: seed.description ?? null,
    metadata: seed.metadata ?? null,
    executeAt: seed.executeAt === undefined || seed.executeAt === 'now' ? null : seed.executeAt,
    notAfter: seed.notAfter ?? null,
    actor: seed.actor ?? 'api_key:test',
    horizonDays: 366,
    needsClassDConsent: false,
    ...(await seal(seed, id)),
  });
  if (result.kind !== 'inserted') throw new Error(`the payment of the test was not inserted: ${result.kind}`);
  return result.row;
}

/** A Postgres timestamptz text this many seconds from now on the database's clock. */
export async function databaseTime(sql: Sql, inSeconds: number): Promise<string> {
  const { rows } = await sql.query<{ at: string }>(
    {
      name: 'seed-time',
      text: `SELECT clock_timestamp() + $1::double precision * interval '1 second' AS at`,
    },
    [inSeconds],
  );
  const at = rows[0]?.at;
  if (at === undefined) throw new Error('the database told no time');
  return at;
}
