import { assert } from '../domain/assert.js';
import { transition, type Cause, type PaymentState, type TransitionId } from '../domain/payment-state.js';
import type { Sql, Statement } from '../persistence/database.js';
import { earlierMayHavePaid } from './earlier-generation.js';
import { mayBeDecidedByNews, sawOtherMoney } from './review-reasons.js';

/**
 * The gate: the only writer of a payment's state. Every move is one guarded statement that updates
 * the head row and inserts its transition; who finds zero rows has lost and reads again.
 */

/** The resolution `r` that the candidate names: approved by the actor, proposed by somebody else. */
const APPROVED = `r.id = c.resolution_id AND r.payment_id = p.id AND r.payment_version = p.version
       AND r.approved_by = c.actor AND r.approved_by <> r.proposed_by AND r.voided_at IS NULL`;

/** Guards beyond the state, on the database's clock. `p` is the head row, `c` the candidate. */
export const GUARDS = Object.freeze({
  ANYTIME: 'TRUE',
  DUE_NOW: 'p.execute_at <= clock_timestamp() AND clock_timestamp() <= p.not_after',
  DEADLINE_AHEAD: 'p.not_after > clock_timestamp()',
  /** After a restore, a payment that was due may already be at the provider. */
  NOT_SENT_BEFORE_RESTORE: `NOT (p.execute_at <= clock_timestamp()
     AND EXISTS (SELECT 1 FROM setting s WHERE s.name = 'recovery_hold' AND s.value = 'on'))`,
  DEADLINE_PAST: `p.not_after < clock_timestamp()
     AND NOT EXISTS (SELECT 1 FROM setting s WHERE s.name = 'recovery_hold' AND s.value = 'on')`,
  RECOVERY_HOLD: `EXISTS (SELECT 1 FROM setting s WHERE s.name = 'recovery_hold' AND s.value = 'on')`,
  NEW_TIME_AHEAD: 'c.new_execute_at >= clock_timestamp()',
  /**
   * Decisive news came during the review, as evidence of the newest generation that names the money
   * instructed unless it says failed. Silence is none: it is for the people, and so is what some other
   * evidence or the case itself says only people decide.
   */
  DECIDED_BY_EVIDENCE: `${mayBeDecidedByNews('p.id')} AND EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id
     AND (e.generation IS NULL OR e.generation = (SELECT max(g.generation) FROM submission g WHERE g.payment_id = p.id))
     AND e.at > (SELECT t.at FROM payment_transition t WHERE t.payment_id = p.id AND t.seq = p.version)
     AND CASE c.to_state WHEN 'failed' THEN e.status = 'failed'
           ELSE e.status = CASE c.to_state WHEN 'submitted' THEN 'pending' ELSE c.to_state END
             AND e.observed_amount = p.amount AND e.observed_currency = p.currency END)`,
  /** What came back is recorded, and is no more than what was paid. */
  RETURN_RECORDED: `(SELECT sum(r.amount) <= p.amount AND bool_and(r.currency = p.currency)
     FROM payment_return r WHERE r.payment_id = p.id)`,
  /** Two people decided on this version, and for a success nobody ever saw other money. */
  RESOLVED_BY_TWO: `EXISTS (SELECT 1 FROM resolution r WHERE ${APPROVED} AND r.outcome = c.to_state)
     AND (c.to_state <> 'succeeded' OR NOT EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id
       AND ${sawOtherMoney('e', 'p')}))`,
  /** Two people decided to send again: under the same key while it lives, or under a new one after proof. */
  RESEND_BY_TWO: `clock_timestamp() < p.not_after
     AND NOT EXISTS (SELECT 1 FROM submission_attempt o WHERE o.payment_id = p.id AND o.closed_at IS NULL)
     AND EXISTS (SELECT 1 FROM resolution r
       JOIN submission s ON s.payment_id = r.payment_id
        AND s.generation = (SELECT max(g.generation) FROM submission g WHERE g.payment_id = r.payment_id)
      WHERE ${APPROVED}
        AND ((r.outcome = 'resend' AND clock_timestamp() < s.key_valid_until)
          OR (r.outcome = 'resend_new_generation' AND NOT ${earlierMayHavePaid('p.id', 's.generation')}
            AND NOT EXISTS (SELECT 1 FROM submission_attempt a
                             WHERE a.payment_id = s.payment_id AND a.generation = s.generation)
            AND EXISTS (SELECT 1 FROM submission b WHERE b.payment_id = s.payment_id
                           AND b.generation = s.generation - 1 AND b.proof IS NOT NULL))))`,
});
export type Guard = keyof typeof GUARDS;

/** What else a move writes to the head row. Texts of this file, never of a caller. */
const EFFECTS = Object.freeze({
  NONE: '',
  /** The marks of an armed payment end with the wait they belong to. */
  WAIT_ANEW: ', wake_after = NULL, armed_by = NULL',
  RESCHEDULE:
    ', execute_at = c.new_execute_at, not_after = c.new_not_after, wake_after = NULL, armed_by = NULL',
  SETTLE: ', next_action_at = NULL, provider_ref = coalesce(c.provider_ref, p.provider_ref)',
  /** What people decide names no object at the provider: the API may not write one. */
  PEOPLE: ', next_action_at = c.next_action_at',
  FOLLOW_UP: ', next_action_at = c.next_action_at, provider_ref = coalesce(c.provider_ref, p.provider_ref)',
  /** The object of an earlier generation is not the one that the next generation will make. */
  SEND_AGAIN: `, next_action_at = c.next_action_at,
     provider_ref = CASE WHEN (SELECT r.outcome FROM resolution r WHERE r.id = c.resolution_id) = 'resend' THEN p.provider_ref END`,
});
type Effect = keyof typeof EFFECTS;

export type OutboxKind = 'wake' | 'cancel';

interface MoveSql {
  readonly guard: Guard;
  readonly effect: Effect;
}

/** Moves of one payment. T7 to T13 and T15 are moved in batches by the worker (`moveCtes`). */
const SINGLE_MOVES: Partial<Record<TransitionId, MoveSql>> = {
  T2: { guard: 'NEW_TIME_AHEAD', effect: 'RESCHEDULE' },
  T3: { guard: 'ANYTIME', effect: 'WAIT_ANEW' },
  T4: { guard: 'DEADLINE_AHEAD', effect: 'WAIT_ANEW' },
  T5: { guard: 'NOT_SENT_BEFORE_RESTORE', effect: 'NONE' },
  T6: { guard: 'DEADLINE_PAST', effect: 'NONE' },
  T14: { guard: 'ANYTIME', effect: 'FOLLOW_UP' },
  T16: { guard: 'ANYTIME', effect: 'PEOPLE' },
  T17: { guard: 'ANYTIME', effect: 'SETTLE' },
  T18: { guard: 'RESOLVED_BY_TWO', effect: 'PEOPLE' },
  T19: { guard: 'RESEND_BY_TWO', effect: 'SEND_AGAIN' },
  T20: { guard: 'DECIDED_BY_EVIDENCE', effect: 'FOLLOW_UP' },
  T21: { guard: 'RETURN_RECORDED', effect: 'NONE' },
  T22: { guard: 'RECOVERY_HOLD', effect: 'NONE' },
};

export interface MoveCtesOptions {
  /**
   * Name of an earlier CTE with the columns id, to_state, cause, actor, detail (and what `set`
   * names). It must have locked its payment rows.
   */
  readonly candidates: string;
  readonly from: readonly PaymentState[];
  /** SQL guard on `p` and `c`. */
  readonly guard: string;
  /** Further assignments to the head row, beginning with a comma. */
  readonly set?: string;
  /** Columns of the candidates that the rest of the statement needs of what moved. */
  readonly carry?: readonly string[];
  /** Writes an outbox row of this kind for each moved payment; absent: nobody must hear of it. */
  readonly announce?: OutboxKind;
}

/**
 * True when the row is in one of these states. The sub-select hides the states from the planner: it
 * would see that a partial index covers them and walk all of it, instead of the primary key, for a
 * statement that names its payments.
 */
export function stateIs(row: string, states: readonly PaymentState[]): string {
  const list = states.map((s) => `'${s}'`).join(', ');
  return `${row}.state = ANY ((SELECT ARRAY[${list}])::text[])`;
}

/**
 * The batch form of the gate, as text: the CTEs `moved` (id, tenant_id, version, from_state,
 * to_state, execute_at, and what `carry` names) and `noted`, to be joined to what the same statement does with attempts,
 * lanes and evidence. A payment that `moved` lacks was not moved.
 */
export function moveCtes(options: MoveCtesOptions): string {
  const announced = options.announce
    ? `,
announced AS (INSERT INTO outbox (kind, payment_id, due_at)
  SELECT '${options.announce}', id, execute_at FROM moved)`
    : '';
  return `moved AS (
  UPDATE payment p SET state = c.to_state, version = p.version + 1, updated_at = clock_timestamp()${options.set ?? ''}
    FROM ${options.candidates} c
   WHERE p.id = c.id AND ${stateIs('p', options.from)} AND ${options.guard}
  RETURNING p.id, p.tenant_id, p.version, old.state AS from_state, p.state AS to_state, p.execute_at,
            c.cause, c.actor, c.detail${(options.carry ?? []).map((column) => `, c.${column}`).join('')}),
noted AS (INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, detail)
  SELECT id, version, tenant_id, from_state, to_state, cause, actor, detail FROM moved)${announced}`;
}

export interface MoveRequest {
  readonly rule: TransitionId;
  /** The tenant of the caller; null only for the worker, which serves all. */
  readonly tenant: string | null;
  readonly paymentId: string;
  /** Needed when the rule leads to several states or has several causes. */
  readonly to?: PaymentState;
  readonly cause?: Cause;
  /** Narrows the rule's own from-states. */
  readonly from?: readonly PaymentState[];
  /** Who asked: `api_key:<id>`, `worker:<id>`, `temporal`, `sweep`. One line. */
  readonly actor: string;
  /** Codes and numbers only. */
  readonly detail?: Readonly<Record<string, string | number>>;
  /** The version the caller saw; another one loses. */
  readonly expectedVersion?: number | null;
  /** T2: Postgres timestamptz texts. */
  readonly newExecuteAt?: string;
  readonly newNotAfter?: string;
  /** Moves that keep the payment open: when to look again, in ms from now on the database's clock. */
  readonly nextActionInMs?: number | null;
  readonly providerRef?: string | null;
  /** T18, T19: the resolution that two people made. */
  readonly resolutionId?: string | null;
  /** Who must hear of it; null when the payment's own activity asked. */
  readonly announce: OutboxKind | null;
}

export type MoveResult =
  | {
      readonly kind: 'moved';
      readonly from: PaymentState;
      readonly to: PaymentState;
      readonly version: number;
    }
  | { readonly kind: 'lost'; readonly state: PaymentState; readonly version: number }
  | { readonly kind: 'missing' };

const statements = new Map<string, Statement>();

function singleMove(request: MoveRequest): Statement {
  const rule = transition(request.rule);
  const sql = SINGLE_MOVES[request.rule];
  assert(sql !== undefined, `${request.rule} is not a move of one payment`);
  const from = request.from ?? rule.from;
  assert(
    from.every((s) => rule.from.includes(s)),
    `${request.rule} does not start in ${from.join(', ')}`,
  );
  const name = `move-${request.rule}-${from.join('.')}-${request.announce ?? 'quiet'}`;
  const known = statements.get(name);
  if (known) return known;
  const text = `WITH c AS (
  SELECT $1::text AS id, $2::text AS to_state, $3::text AS cause, $4::text AS actor, $5::text AS detail,
         $6::text AS tenant_id, $7::integer AS expected_version, $8::timestamptz AS new_execute_at,
         $9::timestamptz AS new_not_after, $10::text AS provider_ref,
         clock_timestamp() + $11::double precision * interval '1 ms' AS next_action_at,
         $12::text AS resolution_id),
${moveCtes({
  candidates: 'c',
  from,
  guard: `(c.tenant_id IS NULL OR p.tenant_id = c.tenant_id)
     AND (c.expected_version IS NULL OR p.version = c.expected_version) AND ${GUARDS[sql.guard]}`,
  set: EFFECTS[sql.effect],
  ...(request.announce ? { announce: request.announce } : {}),
})}
SELECT from_state, to_state, version FROM moved`;
  const statement = { name, text };
  statements.set(name, statement);
  return statement;
}

const FIND_STATE: Statement = {
  name: 'gate-find-state',
  text: `SELECT state, version FROM payment WHERE id = $1 AND ($2::text IS NULL OR tenant_id = $2)`,
};

/**
 * A statement that waits for a row goes on with the tables as they were before it waited, when the row
 * itself did not change. So where a guard reads evidence and cases, the row is held first.
 */
const HOLD: Statement = {
  name: 'gate-hold',
  text: `SELECT 1 FROM payment WHERE id = $1 FOR NO KEY UPDATE`,
};
const READS_OTHER_TABLES: ReadonlySet<TransitionId> = new Set(['T18', 'T19', 'T20']);

/** The one target of a rule, or the one the request names. */
function chosen<T extends string>(what: string, all: readonly T[], asked: T | undefined): T {
  const value = asked ?? (all.length === 1 ? all[0] : undefined);
  assert(value !== undefined && all.includes(value), `a move needs one ${what} of ${all.join(', ')}`);
  return value;
}

/**
 * Moves one payment by one rule of the transition table: compare-and-swap on the head row and its
 * transition row in one statement.
 * @returns moved; lost, with the state and version found, when the state, the version or the guard
 * did not fit; missing when the tenant has no such payment.
 * @throws StorageUnavailable, OutcomeUnknown or LockTimeout. Twice: the second call is `lost`.
 */
export async function move(tx: Sql, request: MoveRequest): Promise<MoveResult> {
  const rule = transition(request.rule);
  const to = chosen('target', rule.to, request.to);
  const cause = chosen('cause', rule.causes, request.cause);
  if (READS_OTHER_TABLES.has(request.rule)) await tx.query(HOLD, [request.paymentId]);
  const moved = await tx.query<{ from_state: PaymentState; to_state: PaymentState; version: number }>(
    singleMove(request),
    [
      request.paymentId,
      to,
      cause,
      request.actor,
      JSON.stringify({ rule: request.rule, ...request.detail }),
      request.tenant,
      request.expectedVersion ?? null,
      request.newExecuteAt ?? null,
      request.newNotAfter ?? null,
      request.providerRef ?? null,
      request.nextActionInMs ?? null,
      request.resolutionId ?? null,
    ],
  );
  const row = moved.rows[0];
  if (row) return { kind: 'moved', from: row.from_state, to: row.to_state, version: row.version };
  const found = await tx.query<{ state: PaymentState; version: number }>(FIND_STATE, [
    request.paymentId,
    request.tenant,
  ]);
  const head = found.rows[0];
  return head ? { kind: 'lost', state: head.state, version: head.version } : { kind: 'missing' };
}
