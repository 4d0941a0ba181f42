import type { Sql, Statement } from '../persistence/database.js';
import type { LimitSubject, RateLimit } from './rate-limit.js';

/** A tenant's own limit, as an operator sets it. */
export interface RateLimitSetting extends RateLimit {
  readonly tenantId: string;
  readonly subject: LimitSubject;
  /** When it was set, on the database's clock, as Postgres writes a time. */
  readonly changedAt: string;
}

/** Far above what one API process can do: a larger number is a slip of the hand. */
export const MOST_RATE_PER_SECOND = 100_000;
export const MOST_BURST = 1_000_000;

const LIST: Statement = {
  name: 'rate-limit-list',
  text: `SELECT tenant_id AS "tenantId", subject, rate_per_second AS "ratePerSecond", burst, changed_at AS "changedAt"
  FROM rate_limit WHERE $1::text IS NULL OR tenant_id = $1 ORDER BY tenant_id, subject LIMIT 1000`,
};

/** The limits that tenants have of their own, at most 1,000; of one tenant when it is named. */
export async function listRateLimits(db: Sql, tenantId: string | null): Promise<readonly RateLimitSetting[]> {
  return (await db.query<RateLimitSetting>(LIST, [tenantId])).rows;
}

const SET: Statement = {
  name: 'rate-limit-set',
  text: `INSERT INTO rate_limit (tenant_id, subject, rate_per_second, burst)
SELECT id, $2, $3, $4 FROM tenant WHERE id = $1
ON CONFLICT (tenant_id, subject) DO UPDATE
  SET rate_per_second = excluded.rate_per_second, burst = excluded.burst, changed_at = clock_timestamp()`,
};

/**
 * Gives a tenant a limit of its own (primary key). Every process follows it from its next lease on.
 * @returns false when there is no such tenant. Twice: the same limit.
 */
export async function setRateLimit(
  db: Sql,
  { tenantId, subject, ratePerSecond, burst }: Omit<RateLimitSetting, 'changedAt'>,
): Promise<boolean> {
  return (await db.query(SET, [tenantId, subject, ratePerSecond, burst])).rowCount > 0;
}

const RESET: Statement = {
  name: 'rate-limit-reset',
  text: 'DELETE FROM rate_limit WHERE tenant_id = $1 AND subject = $2',
};

/** Takes a tenant's own limit away: the default counts again. @returns false when it had none. */
export async function resetRateLimit(db: Sql, tenantId: string, subject: LimitSubject): Promise<boolean> {
  return (await db.query(RESET, [tenantId, subject])).rowCount > 0;
}
