import type { Sql } from '../../src/persistence/database.js';
import { unique } from './builders.js';
import { run } from './payment-states.js';

export interface ResolutionSeed {
  readonly outcome: string;
  readonly proposedBy?: string;
  /** Null: still open. */
  readonly approvedBy?: string | null;
  /** Less the payment's own version. */
  readonly versionsAgo?: number;
}

/** A resolution of the payment as it is now, written past the service. @returns its id. */
export async function seedResolution(sql: Sql, paymentId: string, seed: ResolutionSeed): Promise<string> {
  const id = unique('resolution');
  await run(
    sql,
    `INSERT INTO resolution (id, payment_id, tenant_id, outcome, reason_code, payment_version, evidence_digest,
       evidence_ids, proof_kind, proof_statement, proposed_by, approved_by, approved_at)
     SELECT $1, p.id, p.tenant_id, $3, 'provider_confirmed', p.version - $6::integer, ''::bytea, '{}',
            'provider_statement', 'of a test', $4, $5, CASE WHEN $5::text IS NULL THEN NULL ELSE clock_timestamp() END
       FROM payment p WHERE p.id = $2`,
    [
      id,
      paymentId,
      seed.outcome,
      seed.proposedBy ?? 'person:proposer',
      seed.approvedBy ?? null,
      seed.versionsAgo ?? 0,
    ],
  );
  return id;
}

/** Lets the newest key of a payment live for an hour, or end an hour ago. */
export async function setKeyLife(sql: Sql, paymentId: string, life: 'alive' | 'over'): Promise<void> {
  await run(
    sql,
    `UPDATE submission SET key_valid_until = clock_timestamp() + $2 * interval '1 hour' WHERE payment_id = $1`,
    [paymentId, life === 'alive' ? 1 : -1],
  );
}

/** Money that came back, written past the service. */
export async function seedReturn(sql: Sql, paymentId: string, amountMinor = 1_999n): Promise<void> {
  await run(
    sql,
    `INSERT INTO payment_return (payment_id, tenant_id, provider, return_id, amount, currency, source, code)
     SELECT id, tenant_id, provider, $2, $3, currency, 'webhook', 'bounced' FROM payment WHERE id = $1`,
    [paymentId, unique('return'), amountMinor],
  );
}
