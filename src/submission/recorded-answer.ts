import { EVIDENCE_OF } from '../domain/provider-outcome.js';
import type { Outcome } from './outcome.store.js';

/** What the two statements that record answers, of calls and of creates, have in common. */

/** Columns of the closed attempts that the rest of such a statement needs of what moved. */
export const CARRIED: readonly string[] = [
  'generation',
  'no',
  'verdict',
  'wait_ms',
  'class',
  'code',
  'status',
  'provider_ref',
  'observed_amount',
  'observed_currency',
];

/** CTEs that file the answers of `moved` as evidence, and open a case for what people must decide. */
export const FILE_ANSWERS = `noted_evidence AS (
  INSERT INTO evidence (payment_id, tenant_id, generation, attempt_no, source, kind, code, provider_ref, status,
      observed_amount, observed_currency)
  SELECT id, tenant_id, generation, no, 'answer', class, code, provider_ref, status, observed_amount, observed_currency
    FROM moved),
opened AS (
  INSERT INTO review_case (payment_id, tenant_id, reason, due_at)
  SELECT id, tenant_id, 'key_mismatch', clock_timestamp() + interval '4 hours' FROM moved
   WHERE to_state = 'needs_review'
  ON CONFLICT DO NOTHING)`;

/** $1 to $15 of both: the outcomes as arrays, in their order. @param waitMs ms until the next step of each. */
export function toldColumns(
  outcomes: readonly Outcome[],
  waitMs: (outcome: Outcome) => number,
): readonly unknown[] {
  const results = outcomes.map((o) => o.result);
  return [
    outcomes.map((o) => o.paymentId),
    outcomes.map((o) => o.generation),
    outcomes.map((o) => o.no),
    outcomes.map((o) => o.owner),
    results.map((r) => r.class),
    results.map((r) => EVIDENCE_OF[r.class]),
    results.map((r) => r.status),
    results.map((r) => r.code),
    results.map((r) => r.providerRef),
    results.map((r) => r.requestId),
    results.map((r) => r.httpStatus),
    results.map((r) => r.replayed),
    outcomes.map(waitMs),
    results.map((r) => r.observed.amountMinor),
    results.map((r) => r.observed.currency),
  ];
}

interface ClosedAttempt {
  readonly payment_id: string;
  readonly generation: number;
  readonly no: number;
}

/**
 * The row of each outcome, undefined where its attempt was closed by somebody else. By attempt: a late
 * answer and the next attempt's may come in one batch.
 */
export function rowsByOutcome<Row extends ClosedAttempt>(
  outcomes: readonly Outcome[],
  rows: readonly Row[],
): readonly (Row | undefined)[] {
  const keyOf = (id: string, generation: number, no: number): string => `${id}/${generation}/${no}`;
  const closed = new Map(rows.map((r) => [keyOf(r.payment_id, r.generation, r.no), r]));
  return outcomes.map((o) => closed.get(keyOf(o.paymentId, o.generation, o.no)));
}
