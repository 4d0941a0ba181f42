import { createHash, randomBytes } from 'node:crypto';
import {
  transition,
  type Cause,
  type PaymentState,
  type TransitionId,
} from '../../src/domain/payment-state.js';
import { moveCtes } from '../../src/payments/gate.js';
import type { Sql } from '../../src/persistence/database.js';
import { insertScheduled, unique, type PaymentSeed } from './builders.js';

export interface StepOptions {
  readonly rule: TransitionId;
  readonly to?: PaymentState;
  readonly cause?: Cause;
  /** Further assignments to the head row, beginning with a comma. */
  readonly set?: string;
  /** SQL guard; TRUE when absent: the step is made to build a world, not to be judged. */
  readonly guard?: string;
}

/** Moves one payment by a rule through the batch form of the gate. @returns its version, or null: lost. */
export async function step(sql: Sql, paymentId: string, options: StepOptions): Promise<number | null> {
  const rule = transition(options.rule);
  const to = options.to ?? rule.to[0];
  const cause = options.cause ?? rule.causes[0];
  const move = moveCtes({
    candidates: 'c',
    from: rule.from,
    guard: options.guard ?? 'TRUE',
    set: options.set ?? '',
  });
  const text = `WITH c AS (SELECT $1::text AS id, $2::text AS to_state, $3::text AS cause, 'test'::text AS actor,
    $4::text AS detail), ${move} SELECT version FROM moved`;
  const name = `step-${createHash('md5').update(text).digest('hex')}`;
  const { rows } = await sql.query<{ version: number }>({ name, text }, [
    paymentId,
    to,
    cause,
    JSON.stringify({ rule: options.rule }),
  ]);
  return rows[0]?.version ?? null;
}

/** Runs one text; named by its content, as `Database` asks. */
export async function run(sql: Sql, text: string, values: readonly unknown[] = []): Promise<void> {
  await sql.query({ name: `run-${createHash('md5').update(text).digest('hex')}`, text }, values);
}

/** Opens a generation of a payment. @returns its provider key. */
export async function openGeneration(sql: Sql, paymentId: string, generation = 1): Promise<string> {
  const key = unique('key');
  await run(
    sql,
    `INSERT INTO submission (payment_id, generation, provider_key, parameters, parameters_key_id,
       parameters_sha256, adapter, adapter_version, api_version, credential_id, account, base_url)
     VALUES ($1, $2, $3, $4, 'test', $5, 'simulated', '1', '1', 'test', 'test', 'http://127.0.0.1')`,
    [paymentId, generation, key, randomBytes(32), randomBytes(32)],
  );
  return key;
}

/** Opens an unclaimed attempt. */
export async function openAttempt(sql: Sql, paymentId: string, no = 1, generation = 1): Promise<void> {
  await run(sql, `INSERT INTO submission_attempt (payment_id, generation, no) VALUES ($1, $2, $3)`, [
    paymentId,
    generation,
    no,
  ]);
}

/** Claims the open attempt for a worker and starts its call. */
export async function claimAttempt(sql: Sql, paymentId: string, owner: string): Promise<void> {
  await run(
    sql,
    `UPDATE submission_attempt SET owner = $2, call_started_at = clock_timestamp()
      WHERE payment_id = $1 AND closed_at IS NULL`,
    [paymentId, owner],
  );
}

/** Closes the open attempt with its evidence. */
export async function closeAttempt(sql: Sql, paymentId: string, evidence: string): Promise<void> {
  await run(
    sql,
    `UPDATE submission_attempt SET closed_at = clock_timestamp(), evidence = $2, result_class = $2
      WHERE payment_id = $1 AND closed_at IS NULL`,
    [paymentId, evidence],
  );
}

export interface EvidenceSeed {
  readonly source: 'answer' | 'late_answer' | 'lookup' | 'webhook' | 'settlement' | 'person';
  readonly kind: string;
  readonly status?: string;
  readonly amount?: bigint;
  readonly currency?: string;
}

export async function addEvidence(sql: Sql, paymentId: string, seed: EvidenceSeed): Promise<void> {
  await run(
    sql,
    `INSERT INTO evidence (payment_id, tenant_id, generation, attempt_no, source, kind, status, observed_amount,
       observed_currency) SELECT p.id, p.tenant_id, 1, 1, $2, $3, $4, $5, $6 FROM payment p WHERE p.id = $1`,
    [paymentId, seed.source, seed.kind, seed.status ?? null, seed.amount ?? null, seed.currency ?? null],
  );
}

async function openCase(sql: Sql, paymentId: string): Promise<void> {
  await run(
    sql,
    `INSERT INTO review_case (payment_id, tenant_id, reason, due_at)
     SELECT id, tenant_id, 'ladder_over', clock_timestamp() + interval '4 hours' FROM payment WHERE id = $1`,
    [paymentId],
  );
}

const NEXT = ", next_action_at = clock_timestamp() + interval '1 minute'";

/** A worker whose lease lives for an hour. */
export async function seedWorker(sql: Sql, leaseSeconds = 3_600): Promise<string> {
  const id = unique('worker');
  await run(
    sql,
    `INSERT INTO worker (id, lease_expires_at) VALUES ($1, clock_timestamp() + $2 * interval '1 second')`,
    [id, leaseSeconds],
  );
  return id;
}

async function start(sql: Sql, paymentId: string): Promise<void> {
  await step(sql, paymentId, { rule: 'T7', set: ', submission_started_at = clock_timestamp()' });
  await openGeneration(sql, paymentId);
  await openAttempt(sql, paymentId);
  await claimAttempt(sql, paymentId, await seedWorker(sql));
}

/** How to get from the state before into each state, with the rows that belong to it. */
const LIVES: Readonly<Record<PaymentState, (sql: Sql, id: string) => Promise<unknown>>> = {
  scheduled: () => Promise.resolve(),
  held: (sql, id) => step(sql, id, { rule: 'T3', cause: 'hold' }),
  cancelled: (sql, id) => step(sql, id, { rule: 'T5' }),
  expired: (sql, id) => step(sql, id, { rule: 'T6' }),
  submitting: start,
  submitted: async (sql, id) => {
    await start(sql, id);
    await closeAttempt(sql, id, 'accepted');
    await addEvidence(sql, id, { source: 'answer', kind: 'accepted', status: 'pending' });
    await step(sql, id, { rule: 'T8', set: NEXT });
  },
  succeeded: async (sql, id) => {
    await start(sql, id);
    await closeAttempt(sql, id, 'accepted');
    const seen = { status: 'succeeded', amount: 1_999n, currency: 'EUR' } as const;
    await addEvidence(sql, id, { source: 'answer', kind: 'accepted', ...seen });
    await step(sql, id, { rule: 'T9' });
  },
  failed: async (sql, id) => {
    await start(sql, id);
    await closeAttempt(sql, id, 'refused');
    await addEvidence(sql, id, { source: 'answer', kind: 'rejected', status: 'failed' });
    await step(sql, id, { rule: 'T10' });
  },
  unknown: async (sql, id) => {
    await start(sql, id);
    await closeAttempt(sql, id, 'ambiguous');
    await addEvidence(sql, id, { source: 'answer', kind: 'ambiguous' });
    await step(sql, id, { rule: 'T13', set: NEXT });
  },
  needs_review: async (sql, id) => {
    await LIVES.unknown(sql, id);
    await step(sql, id, { rule: 'T16', set: ', next_action_at = NULL' });
    await openCase(sql, id);
  },
  returned: async (sql, id) => {
    await LIVES.succeeded(sql, id);
    await step(sql, id, { rule: 'T21' });
  },
};

/** A payment that lived up to this state by legal moves, due now. @returns its id. */
export async function paymentIn(state: PaymentState, sql: Sql, seed: PaymentSeed): Promise<string> {
  const { id } = await insertScheduled(sql, seed);
  await LIVES[state](sql, id);
  return id;
}

/** Lets a scheduled payment live up to this state by legal moves. It should be due by then. */
export async function bringTo(state: PaymentState, sql: Sql, paymentId: string): Promise<void> {
  await LIVES[state](sql, paymentId);
}
