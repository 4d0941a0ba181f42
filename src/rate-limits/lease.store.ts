import type { Sql, Statement } from '../persistence/database.js';
import type { LimitSubject, RateLimit } from './rate-limit.js';

export interface LeaseRequest {
  readonly tenantId: string;
  readonly subject: LimitSubject;
  /** Names the bucket within its tenant. */
  readonly bucket: string;
  /** The limit of a tenant that has none of its own. */
  readonly byDefault: RateLimit;
  /** Tokens wanted, at least 1. */
  readonly wanted: number;
}

/** What a process took out of a shared bucket, and what it left there. */
export interface Lease {
  /** 0 to `wanted` tokens that are now this process's own. */
  readonly granted: number;
  /** Tokens left in the bucket, with their fraction. */
  readonly left: number;
  readonly limit: RateLimit;
}

/**
 * One statement on one row (primary key), on the database's clock: refills the bucket for the time
 * that passed, takes whole tokens, and reads the tenant's own limit (primary key) on the way, so that
 * a changed limit counts from the next lease on. A bucket that does not exist is full. Whoever waited
 * for the row comes with an older time than it holds, and refills nothing; a clock that was set back
 * starts again from its new time.
 */
const LEASE: Statement = {
  name: 'rate-limit-lease',
  text: `WITH chosen AS (
  SELECT coalesce(own.rate_per_second, $4::double precision) AS rate, coalesce(own.burst, $5::integer) AS burst
    FROM (SELECT) AS always LEFT JOIN rate_limit own ON own.tenant_id = $1 AND own.subject = $2)
INSERT INTO rate_limit_bucket AS held (tenant_id, bucket, rate_per_second, burst, tokens, granted, refilled_at)
SELECT $1, $3, rate, burst, burst - least(burst, $6::integer), least(burst, $6::integer), statement_timestamp()
  FROM chosen
ON CONFLICT (tenant_id, bucket) DO UPDATE
  SET (rate_per_second, burst, tokens, granted, refilled_at) = (
    SELECT excluded.rate_per_second, excluded.burst, filled.tokens - take.tokens, take.tokens,
           CASE WHEN held.refilled_at > excluded.refilled_at + interval '10 seconds' THEN excluded.refilled_at
                ELSE greatest(held.refilled_at, excluded.refilled_at) END
      FROM (SELECT least(excluded.burst, held.tokens + excluded.rate_per_second *
                     greatest(0, extract(epoch FROM excluded.refilled_at - held.refilled_at)::double precision)
                   ) AS tokens) AS filled,
           LATERAL (SELECT least(floor(filled.tokens), $6::integer)::integer AS tokens) AS take)
RETURNING granted, tokens AS left, rate_per_second AS rate, burst`,
};

/**
 * Takes tokens out of a bucket that all processes share.
 * @param db runs as the tenant. @throws StorageUnavailable, OutcomeUnknown, LockTimeout: tokens may be
 * gone, none were given. Twice: takes twice.
 */
export async function leaseTokens(db: Sql, request: LeaseRequest): Promise<Lease> {
  const { tenantId, subject, bucket, byDefault, wanted } = request;
  const { rows } = await db.query<{ granted: number; left: number; rate: number; burst: number }>(LEASE, [
    tenantId,
    subject,
    bucket,
    byDefault.ratePerSecond,
    byDefault.burst,
    wanted,
  ]);
  const [row] = rows;
  if (row === undefined) throw new Error(`the bucket ${bucket} gave no answer`);
  return { granted: row.granted, left: row.left, limit: { ratePerSecond: row.rate, burst: row.burst } };
}
