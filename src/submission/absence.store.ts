import { ABSENCE_SPACING_MS, MAX_ATTEMPTS } from '../domain/submission-policy.js';
import { moveCtes, stateIs } from '../payments/gate.js';
import type { Database, Sql, Statement } from '../persistence/database.js';
import type { LookupPath, ProviderTarget } from '../providers/payment-provider.js';
import type { OpenOutcome } from './open-outcome.store.js';
import { ABSENCE_PROVEN } from './outcome.store.js';
import { NEWEST, NO_OPEN_ATTEMPT, SEEN } from './resend.store.js';
import { STORED_ERROR } from './submission.store.js';

/** The two ways that must both say `absent`, twice. */
export const PROOF_PATHS = ['reference', 'list_scan'] as const satisfies readonly LookupPath[];
export type ProofPath = (typeof PROOF_PATHS)[number];

/** A provider that shows a known object by this way is not silent because it sees nothing. */
const CONTROL_FOUND = 'control_found';
const CONTROL_MISSED = 'control_missed';

/** From here on nothing that was sent can still be executed, nor be executed and not yet shown. $4 in ms. */
const LANDED = `(SELECT max(b.call_started_at) FROM submission_attempt b WHERE b.payment_id = p.id)
   + $4::double precision * interval '1 ms'`;

/**
 * One way said `absent` twice, far enough apart and both times when nothing could be under way any
 * more, and found a known object in the meantime without ever missing one.
 */
const saidTwice = (path: ProofPath): string => `EXISTS (
  SELECT 1 FROM (
    SELECT min(e.at) AS first, max(e.at) AS last FROM evidence e
     WHERE e.payment_id = p.id AND e.generation = s.generation AND e.source = 'lookup' AND e.kind = 'absent'
       AND '${path}' = ANY (e.paths) AND e.at >= ${LANDED}) w
   WHERE w.last - w.first >= $5::double precision * interval '1 ms'
     AND EXISTS (SELECT 1 FROM evidence k WHERE k.payment_id = p.id AND k.source = 'lookup'
           AND k.kind = '${CONTROL_FOUND}' AND '${path}' = ANY (k.paths) AND k.at BETWEEN w.first AND w.last)
     AND NOT EXISTS (SELECT 1 FROM evidence k WHERE k.payment_id = p.id AND k.source = 'lookup'
           AND k.kind = '${CONTROL_MISSED}' AND '${path}' = ANY (k.paths) AND k.at >= w.first))`;

/** While a resend may still be possible, silence is answered by a resend and not by a failure. */
const CANNOT_BE_RESENT = `(clock_timestamp() >= s.key_valid_until OR clock_timestamp() >= p.not_after
  OR z.no >= ${MAX_ATTEMPTS} OR ${STORED_ERROR('z')})`;

/**
 * T14 to `failed` by the absence proof, the only silence that counts: (a) no attempt is open; (b) at
 * each silence the last send, our deadline, the provider's longest flight and its lookup lag were over;
 * (c) two answers say `absent`, far apart, by reference and by list scan; (d) the same ways find a known object
 * meanwhile; (e) the provider's lookups are strong; (f) the payment was never seen; (g) who was asked is
 * where it was sent to: adapter, account and address. Every condition is in this statement, on rows
 * that were filed when they were observed.
 */
const PROVE: Statement = {
  name: 'prove-absence',
  text: `WITH c AS (
  SELECT p.id, s.generation, 'failed'::text AS to_state, 'record-outcome'::text AS cause, $3::text AS actor,
         '{"rule":"T14","code":"${ABSENCE_PROVEN}"}'::text AS detail
    FROM payment p ${NEWEST}
    JOIN submission_attempt z ON z.payment_id = p.id AND z.generation = s.generation
     AND z.no = (SELECT max(b.no) FROM submission_attempt b WHERE b.payment_id = p.id AND b.generation = s.generation)
   WHERE p.id = $1 AND p.version = $2 AND ${stateIs('p', ['unknown'])}
     AND (s.capability_class = 'C' OR (s.capability_class = 'A' AND ${CANNOT_BE_RESENT}))
     AND ${NO_OPEN_ATTEMPT}
     AND ${saidTwice('reference')}
     AND ${saidTwice('list_scan')}
     AND $6::boolean
     AND s.adapter = $8 AND s.account = $9 AND s.base_url = $10
     AND p.provider_ref IS NULL AND NOT ${SEEN}
     AND NOT EXISTS (SELECT 1 FROM submission g WHERE g.payment_id = p.id AND g.generation < s.generation
                        AND g.proof IS NULL)
     FOR NO KEY UPDATE OF p SKIP LOCKED),
${moveCtes({ candidates: 'c', from: ['unknown'], guard: 'TRUE', set: ', next_action_at = NULL', carry: ['generation'], announce: 'wake' })},
proof AS (
  INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, code, paths)
  SELECT id, tenant_id, generation, 'lookup', '${ABSENCE_PROVEN}', 'never_executed', $7::text[] FROM moved)
SELECT id FROM moved`,
};

export interface ProofTerms {
  /** From a send until nothing of it can still happen unseen: deadline, longest flight, lookup lag; ms. */
  readonly landedAfterMs: number;
  /** Least time between the two silences, ms. */
  readonly spacingMs: number;
  /** The provider's lookups show what is. */
  readonly isStrong: boolean;
  /** Where the worker that asks for the proof has its lookups answered. */
  readonly target: ProviderTarget;
}

/** The spacing of the product; test rigs divide it. */
export const spacingMs = (ladderDivisor: number): number => ABSENCE_SPACING_MS / ladderDivisor;

/**
 * Held by a statement of its own: one that read the evidence and then took the row would not see what
 * was filed under the row's lock in between. Who holds the row now may be filing just that.
 */
const HOLD: Statement = {
  name: 'prove-absence-hold',
  text: `SELECT 1 FROM payment WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED`,
};

/**
 * Fails an unknown payment if its absence is proven, files that as evidence and wakes the workflow in the
 * same commit.
 * @returns true when it failed; false also while somebody else holds the payment. Twice: the second
 * call finds `failed`: false.
 */
export function proveAbsence(
  database: Database,
  payment: Pick<OpenOutcome, 'id' | 'version'>,
  actor: string,
  terms: ProofTerms,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    if ((await tx.query(HOLD, [payment.id])).rowCount === 0) return false;
    return failIfProven(tx, payment, actor, terms);
  });
}

async function failIfProven(
  sql: Sql,
  payment: Pick<OpenOutcome, 'id' | 'version'>,
  actor: string,
  terms: ProofTerms,
): Promise<boolean> {
  const { rowCount } = await sql.query(PROVE, [
    payment.id,
    payment.version,
    actor,
    terms.landedAfterMs,
    terms.spacingMs,
    terms.isStrong,
    PROOF_PATHS,
    terms.target.name,
    terms.target.account,
    terms.target.baseUrl,
  ]);
  return rowCount === 1;
}

const KNOWN: Statement = {
  name: 'known-object',
  text: `SELECT t.payment_id AS id FROM payment_transition t JOIN payment p ON p.id = t.payment_id
    WHERE t.at > clock_timestamp() - interval '7 days' AND t.to_state IN ('succeeded', 'submitted')
      AND p.lane = $1 AND p.id <> $2 AND p.provider_ref IS NOT NULL AND p.state IN ('succeeded', 'submitted')
      AND (SELECT s.adapter = $3 AND s.account = $4 AND s.base_url = $5 FROM submission s WHERE s.payment_id = p.id
            ORDER BY s.generation DESC LIMIT 1)
    ORDER BY t.at DESC LIMIT 1`,
};

/**
 * A payment of the lane that this target is known to have, since it was sent there: the newest of a
 * week (index payment_transition_by_time, read backwards). Null: there is none, and nothing can be proven.
 */
export async function findKnownPayment(
  sql: Sql,
  payment: Pick<OpenOutcome, 'id' | 'lane'>,
  { name, account, baseUrl }: ProviderTarget,
): Promise<string | null> {
  const values = [payment.lane, payment.id, name, account, baseUrl];
  const { rows } = await sql.query<{ id: string }>(KNOWN, values);
  return rows[0]?.id ?? null;
}

const FILE_CONTROL: Statement = {
  name: 'file-control-lookup',
  text: `INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, paths, at)
    VALUES ($1, $2, $3, 'lookup', $4, $5, coalesce($6::timestamptz, clock_timestamp()))`,
};

/**
 * Files whether a way found a known object while this payment is looked for, a hit with the time at
 * which this payment was read: it does not show what can be seen later. Names no other payment.
 */
export async function fileControl(
  sql: Sql,
  payment: OpenOutcome,
  path: ProofPath,
  wasFound: boolean,
): Promise<void> {
  await sql.query(FILE_CONTROL, [
    payment.id,
    payment.tenantId,
    payment.generation,
    wasFound ? CONTROL_FOUND : CONTROL_MISSED,
    [path],
    wasFound ? payment.readAt : null,
  ]);
}
