import type { PaymentState } from '../domain/payment-state.js';
import type { CapabilityClass } from '../domain/submission-policy.js';
import { probeInMs } from '../lanes/lane-admission.js';
import type { Sql, Statement } from '../persistence/database.js';

/** What an inquiry needs to know of a payment whose outcome is open. Durations in ms, database clock. */
export interface OpenOutcome {
  readonly id: string;
  readonly tenantId: string;
  readonly state: PaymentState;
  readonly version: number;
  readonly provider: string;
  readonly lane: string;
  readonly amount: bigint;
  readonly currency: string;
  readonly destination: Buffer;
  readonly destination_key_id: string;
  readonly destination_digest: Buffer;
  readonly digest_key_id: string;
  readonly reference: string | null;
  readonly description: string | null;
  readonly providerRef: string | null;
  /** Null only while no generation was opened, which an open outcome rules out. */
  readonly generation: number | null;
  readonly providerKey: string | null;
  readonly capabilityClass: CapabilityClass | null;
  /** Two phases: the one object that may be committed. */
  readonly commitTarget: string | null;
  /** Where the generation was sent to; null as `generation`. */
  readonly adapter: string | null;
  readonly account: string | null;
  readonly baseUrl: string | null;
  /** The generation's first send: epoch ms on the database's clock; null when nothing was sent. */
  readonly sentSinceMs: number | null;
  /** Until the key may no longer be used; negative when that is over, null when it was never used. */
  readonly keyValidInMs: number | null;
  readonly nextActionInMs: number | null;
  /** Until the open breaker of its lane lets a call try; null while the breaker is closed. */
  readonly breakerProbeInMs: number | null;
  /** Since the generation's first ambiguous end; null when there was none. */
  readonly sinceFirstAmbiguousMs: number | null;
  /** From the generation's first ambiguous end to its last attempt's end; null when there was none. */
  readonly firstToLastMs: number | null;
  /** Since the payment entered its present state. */
  readonly sinceStateMs: number;
  /** No later than what was read: a Postgres timestamptz text. */
  readonly readAt: string;
}

/** What an inquiry reads of the rows of `payment` (a table or CTE named p), as SELECT … FROM …. */
export const openOutcomes = (
  payment: string,
): string => `SELECT p.id, p.tenant_id AS "tenantId", p.state, p.version, p.provider, p.lane, p.amount, p.currency,
    p.destination, p.destination_key_id, p.destination_digest, p.digest_key_id, p.provider_ref AS "providerRef",
    p.reference, p.description, s.generation, s.provider_key AS "providerKey", s.capability_class AS "capabilityClass",
    s.commit_target AS "commitTarget", s.adapter, s.account, s.base_url AS "baseUrl",
    ${probeInMs('l')} AS "breakerProbeInMs",
    (extract(epoch FROM s.key_valid_until - clock_timestamp()) * 1000)::double precision AS "keyValidInMs",
    a."sentSinceMs", a."sinceFirstAmbiguousMs", a."firstToLastMs",
    (extract(epoch FROM p.next_action_at - clock_timestamp()) * 1000)::double precision AS "nextActionInMs",
    (SELECT extract(epoch FROM clock_timestamp() - t.at) * 1000 FROM payment_transition t
      WHERE t.payment_id = p.id AND t.seq = p.version)::double precision AS "sinceStateMs",
    transaction_timestamp() AS "readAt"
  FROM ${payment} LEFT JOIN lane l ON l.lane = p.lane LEFT JOIN submission s ON s.payment_id = p.id
   AND s.generation = (SELECT max(generation) FROM submission g WHERE g.payment_id = p.id)
  LEFT JOIN LATERAL (
    SELECT (extract(epoch FROM min(b.call_started_at)) * 1000)::double precision AS "sentSinceMs",
           (extract(epoch FROM clock_timestamp() - min(b.closed_at) FILTER (WHERE b.evidence = 'ambiguous')) * 1000
             )::double precision AS "sinceFirstAmbiguousMs",
           (extract(epoch FROM max(b.closed_at) - min(b.closed_at) FILTER (WHERE b.evidence = 'ambiguous')) * 1000
             )::double precision AS "firstToLastMs"
      FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation) a ON TRUE`;

const OPEN_OUTCOME: Statement = {
  name: 'open-outcome',
  text: `${openOutcomes('payment p')} WHERE p.id = $1`,
};

/** Reads one payment for its inquiry (primary keys). Null for an unknown id. */
export async function readOpenOutcome(sql: Sql, paymentId: string): Promise<OpenOutcome | null> {
  const { rows } = await sql.query<OpenOutcome>(OPEN_OUTCOME, [paymentId]);
  return rows[0] ?? null;
}
