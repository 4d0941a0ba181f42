import type { PaymentState } from '../domain/payment-state.js';
import type { CapabilityClass } from '../domain/submission-policy.js';
import { isClosed, mayBeCalled } from '../lanes/lane-admission.js';
import { earlierMayHavePaid } from '../payments/earlier-generation.js';
import { stateIs } from '../payments/gate.js';
import type { Sql, Statement } from '../persistence/database.js';
import { leaseAlive } from './worker-lease.js';

/** What one read of the row tells the worker. Durations are ms on the database's clock. */
export interface Standing {
  readonly id: string;
  readonly tenant_id: string;
  readonly state: PaymentState;
  readonly version: number;
  readonly lane: string;
  readonly provider: string;
  /** Epoch ms. */
  readonly due_at_ms: number;
  readonly due_in_ms: number;
  /** Until the next retry or inquiry; null when none is planned. */
  readonly next_action_in_ms: number | null;
  /** The open attempt; null when there is none. */
  readonly open_no: number | null;
  readonly open_owner: string | null;
  readonly fenced: boolean;
  /** The open attempt's owner lost its lease, or its call is older than 60 s. */
  readonly abandoned: boolean;
  /** Its lane is paused, waits or lets single probes through. */
  readonly lane_is_closed: boolean;
}

/** An attempt is abandoned when its owner's lease ended or 60 s after its fence. `a` is the attempt. */
export const ABANDONED = `(a.call_started_at IS NOT NULL
  AND (a.call_started_at < clock_timestamp() - interval '60 s' OR NOT ${leaseAlive('a.owner')}))`;

const STANDING: Statement = {
  name: 'payment-standing',
  text: `SELECT p.id, p.tenant_id, p.state, p.version, p.lane, p.provider,
    (extract(epoch FROM p.execute_at) * 1000)::double precision AS due_at_ms,
    (extract(epoch FROM p.execute_at - clock_timestamp()) * 1000)::double precision AS due_in_ms,
    (extract(epoch FROM p.next_action_at - clock_timestamp()) * 1000)::double precision AS next_action_in_ms,
    a.no AS open_no, a.owner AS open_owner, a.call_started_at IS NOT NULL AS fenced,
    coalesce(${ABANDONED}, false) AS abandoned, coalesce(${isClosed('l')}, false) AS lane_is_closed
  FROM payment p LEFT JOIN lane l ON l.lane = p.lane
    LEFT JOIN submission_attempt a ON a.payment_id = p.id AND a.closed_at IS NULL
  WHERE p.id = ANY ($1::text[])`,
};

/**
 * The provider kept an error under the attempt's key and repeats it: asking again under this key
 * changes nothing. `a` is a closed attempt.
 */
export const STORED_ERROR = (a: string): string =>
  `(${a}.http_status >= 500 AND ${a}.replayed AND ${a}.evidence = 'ambiguous')`;

/** One read for many payments (primary key, and the one-open-attempt index). Unknown ids give null. */
export async function readStandings(sql: Sql, ids: readonly string[]): Promise<readonly (Standing | null)[]> {
  const { rows } = await sql.query<Standing>(STANDING, [ids]);
  const byId = new Map(rows.map((r) => [r.id, r]));
  return ids.map((id) => byId.get(id) ?? null);
}

/** What arming needs beside the standing: the instruction itself, still encrypted. */
export interface Instruction {
  readonly id: string;
  readonly tenant_id: string;
  readonly provider: string;
  readonly lane: string;
  readonly lane_cap: number;
  /** The account that the payment was accepted for. */
  readonly lane_account: string;
  readonly state: PaymentState;
  readonly version: number;
  readonly due_at_ms: number;
  readonly due_in_ms: number;
  readonly amount: bigint;
  readonly currency: string;
  readonly destination: Buffer;
  readonly destination_key_id: string;
  readonly destination_digest: Buffer;
  readonly digest_key_id: string;
  readonly reference: string | null;
  readonly description: string | null;
}

const INSTRUCTION: Statement = {
  name: 'payment-instruction',
  text: `SELECT p.id, p.tenant_id, p.provider, p.lane, l.cap AS lane_cap, l.account AS lane_account, p.state, p.version,
    (extract(epoch FROM p.execute_at) * 1000)::double precision AS due_at_ms,
    (extract(epoch FROM p.execute_at - clock_timestamp()) * 1000)::double precision AS due_in_ms,
    p.amount, p.currency, p.destination, p.destination_key_id, p.destination_digest, p.digest_key_id,
    p.reference, p.description
  FROM payment p JOIN lane l ON l.lane = p.lane WHERE p.id = ANY ($1::text[])`,
};

/** The instructions of many payments, in the order of `ids`; null for an unknown id. */
export async function readInstructions(
  sql: Sql,
  ids: readonly string[],
): Promise<readonly (Instruction | null)[]> {
  const { rows } = await sql.query<Instruction>(INSTRUCTION, [ids]);
  const byId = new Map(rows.map((r) => [r.id, r]));
  return ids.map((id) => byId.get(id) ?? null);
}

/** A claimed attempt: owner and fence are committed, the call may go out. */
export interface Claim {
  readonly paymentId: string;
  readonly tenantId: string;
  readonly generation: number;
  readonly no: number;
  readonly owner: string;
  readonly provider: string;
  readonly providerKey: string;
  readonly parameters: Buffer;
  readonly parametersKeyId: string;
  readonly parametersSha256: Buffer;
  readonly adapter: string;
  readonly adapterVersion: string;
  readonly apiVersion: string;
  readonly credentialId: string;
  readonly account: string;
  readonly baseUrl: string;
  readonly capabilityClass: CapabilityClass;
  /** submit: the request of the generation. commit: two phases, releases the commit target. */
  readonly phase: 'submit' | 'commit';
  /** The one object that may be committed; null until it was made. */
  readonly commitTarget: string | null;
  /** 2 when a stored error blocks the first commit's key. */
  readonly commitTry: number;
  /** How long the provider remembers the key, less the margin, from the reading; ms. */
  readonly keyValidInMs: number;
  /** From the due time to the fence, ms on the database's clock. */
  readonly latenessMs: number;
}

/**
 * Claim and fence in one commit, for every open, unclaimed attempt of the batch; `c` checks again
 * what it locked, so the update acts on what the guards saw. Without evidence an attempt is open: in
 * these words the planner takes the primary key and not the index of everything that is open. The
 * key's life counts from the first fence of its generation.
 */
const CLAIM: Statement = {
  name: 'claim-attempts',
  text: `WITH c AS (
  SELECT a.payment_id, a.generation, a.no
    FROM submission_attempt a
    JOIN payment p ON p.id = a.payment_id
    JOIN lane l ON l.lane = p.lane
    JOIN submission s ON s.payment_id = a.payment_id AND s.generation = a.generation
   WHERE a.payment_id = ANY ($1::text[]) AND a.evidence IS NULL AND a.owner IS NULL
     AND ${stateIs('p', ['submitting'])} AND clock_timestamp() <= p.not_after
     AND (s.key_valid_until IS NULL OR clock_timestamp() < s.key_valid_until)
     AND ${mayBeCalled('l', 'a')} AND ${leaseAlive('$2')} AND NOT ${earlierMayHavePaid('a.payment_id', 'a.generation')}
     FOR UPDATE OF a SKIP LOCKED),
u AS (
  UPDATE submission_attempt a SET owner = $2, call_started_at = clock_timestamp()
    FROM c WHERE a.payment_id = c.payment_id AND a.generation = c.generation AND a.no = c.no
  RETURNING a.payment_id, a.generation, a.no, a.phase, a.call_started_at),
k AS (
  UPDATE submission s SET key_valid_until = u.call_started_at + $3::double precision * interval '1 ms'
    FROM u WHERE s.payment_id = u.payment_id AND s.generation = u.generation AND s.key_valid_until IS NULL)
SELECT u.payment_id AS "paymentId", p.tenant_id AS "tenantId", u.generation, u.no, $2 AS owner, p.provider,
  s.provider_key AS "providerKey", s.parameters, s.parameters_key_id AS "parametersKeyId",
  s.parameters_sha256 AS "parametersSha256", s.adapter, s.adapter_version AS "adapterVersion",
  s.api_version AS "apiVersion", s.credential_id AS "credentialId", s.account, s.base_url AS "baseUrl",
  s.capability_class AS "capabilityClass", u.phase, s.commit_target AS "commitTarget",
  CASE WHEN u.phase = 'commit' AND EXISTS (SELECT 1 FROM submission_attempt b WHERE b.payment_id = u.payment_id
         AND b.generation = u.generation AND b.phase = 'commit' AND ${STORED_ERROR('b')}) THEN 2 ELSE 1 END AS "commitTry",
  (CASE WHEN s.key_valid_until IS NULL THEN $3::double precision
        ELSE extract(epoch FROM s.key_valid_until - clock_timestamp()) * 1000 END)::double precision AS "keyValidInMs",
  (extract(epoch FROM u.call_started_at - p.execute_at) * 1000)::double precision AS "latenessMs"
FROM u JOIN payment p ON p.id = u.payment_id
  JOIN submission s ON s.payment_id = u.payment_id AND s.generation = u.generation`,
};

/**
 * Claims what can be claimed of `paymentIds` for `worker`. An id that the answer lacks was not
 * claimable: taken, closed, past its deadline or key life, its lane closed, our lease over, or an
 * earlier generation heard of as paid.
 * @param keyLifeMs life of a provider key less its margin, from its first use.
 */
export async function claimAttempts(
  sql: Sql,
  paymentIds: readonly string[],
  worker: string,
  keyLifeMs: number,
): Promise<ReadonlyMap<string, Claim>> {
  const { rows } = await sql.query<Claim>(CLAIM, [[...new Set(paymentIds)], worker, keyLifeMs]);
  return new Map(rows.map((r) => [r.paymentId, r]));
}
