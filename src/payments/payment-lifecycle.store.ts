import type { Cause, PaymentState } from '../domain/payment-state.js';
import type { Sql, Statement } from '../persistence/database.js';

const FIND_LAST_CAUSE: Statement = {
  name: 'payment-find-last-cause',
  text: `SELECT p.state, p.version, t.cause FROM payment p
  JOIN payment_transition t ON t.payment_id = p.id AND t.seq = p.version
 WHERE p.tenant_id = $1 AND p.id = $2`,
};

/** State and version of a payment and what caused its last transition (two primary keys), or null. */
export async function findLastCause(
  db: Sql,
  tenantId: string,
  id: string,
): Promise<{ readonly state: PaymentState; readonly version: number; readonly cause: Cause } | null> {
  const { rows } = await db.query<{ state: PaymentState; version: number; cause: Cause }>(FIND_LAST_CAUSE, [
    tenantId,
    id,
  ]);
  return rows[0] ?? null;
}

/** The gate refuses a time that has passed when its statement runs: "now" lies this far ahead. */
const NOW_AHEAD = `interval '1 second'`;

const JUDGE_TIMES: Statement = {
  name: 'payment-judge-times',
  text: `SELECT execute_at, not_after,
         CASE WHEN execute_at < now THEN 'in_past'
              WHEN execute_at > now + $5::double precision * interval '1 day' THEN 'beyond_horizon'
              WHEN not_after <= execute_at THEN 'not_after_too_early'
              ELSE 'ok' END AS verdict
  FROM (SELECT now, execute_at, coalesce($2::timestamptz, $4::timestamptz + (execute_at - $3::timestamptz)) AS not_after
          FROM (SELECT t.now, coalesce($1::timestamptz, t.now + ${NOW_AHEAD}) AS execute_at
                  FROM (SELECT clock_timestamp() AS now) t) e) n`,
};

export interface JudgedTimes {
  readonly verdict: 'ok' | 'in_past' | 'beyond_horizon' | 'not_after_too_early';
  readonly execute_at: string;
  /** The deadline asked for, or the old one shifted by the distance of the execution time. */
  readonly not_after: string;
}

/**
 * Judges the times of a reschedule on the database's clock, by the rules of create. `in_past` is
 * judged again by the gate: time passes. All times are texts of timestamptz; a null `executeAt`
 * means now, which is one second ahead.
 */
export async function judgeTimes(
  db: Sql,
  times: {
    readonly executeAt: string | null;
    readonly notAfter: string | null;
    readonly before: { readonly executeAt: string; readonly notAfter: string };
    readonly horizonDays: number;
  },
): Promise<JudgedTimes> {
  const { rows } = await db.query<JudgedTimes>(JUDGE_TIMES, [
    times.executeAt,
    times.notAfter,
    times.before.executeAt,
    times.before.notAfter,
    times.horizonDays,
  ]);
  const row = rows[0];
  if (!row) throw new Error('a SELECT without a table answers one row');
  return row;
}

const RECOVERY_HOLD: Statement = {
  name: 'setting-recovery-hold',
  text: `SELECT 1 FROM setting WHERE name = 'recovery_hold' AND value = 'on'`,
};

/** True after a restore, until two people release the hold. */
export async function isRecoveryHoldOn(db: Sql): Promise<boolean> {
  return (await db.query(RECOVERY_HOLD)).rowCount > 0;
}
