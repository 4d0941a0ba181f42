import type { CapabilityClass } from '../domain/submission-policy.js';
import type { PreparedSubmission } from '../providers/payment-provider.js';
import type { Sql, Statement } from '../persistence/database.js';
import { laneTokens, laneWaitMs, takeTokens } from '../lanes/lane-admission.js';
import { GUARDS, moveCtes, stateIs } from '../payments/gate.js';
import { leaseAlive } from './worker-lease.js';

/**
 * T7 for a batch: takes lane tokens and moves the due payments, oldest execute_at first, opening
 * generation 1 and its unclaimed attempt 1. What was built for another account than the lane's finds the
 * lane closed. Relies on the primary keys of payment and lane.
 * A LIMIT of NULL would mean no limit: a lane that admits nothing or a lost lease must give 0.
 */
const BEGIN: Statement = {
  name: 'begin-submission',
  text: `WITH l AS (${laneTokens('$1', `${leaseAlive('$2')} AND l.account = $13`)}),
x AS (
  SELECT * FROM unnest($4::text[], $5::text[], $6::bytea[], $7::text[], $8::bytea[])
    AS x (id, provider_key, parameters, parameters_key_id, parameters_sha256)),
c AS (
  SELECT p.id, 'submitting'::text AS to_state, 'begin-submission'::text AS cause, 'worker:' || $2 AS actor,
         '{"rule":"T7"}'::text AS detail
    FROM payment p
   WHERE p.id = ANY ($4::text[]) AND p.lane = $1 AND ${stateIs('p', ['scheduled'])} AND ${GUARDS.DUE_NOW}
   ORDER BY p.execute_at, p.id
   LIMIT coalesce((SELECT least(floor(available)::integer, $3::integer) FROM l), 0)
     FOR NO KEY UPDATE SKIP LOCKED),
${moveCtes({
  candidates: 'c',
  from: ['scheduled'],
  guard: GUARDS.DUE_NOW,
  set: ', submission_started_at = clock_timestamp()',
})},
s AS (
  INSERT INTO submission (payment_id, generation, provider_key, parameters, parameters_key_id, parameters_sha256,
      adapter, adapter_version, api_version, credential_id, account, base_url, capability_class)
  SELECT x.id, 1, x.provider_key, x.parameters, x.parameters_key_id, x.parameters_sha256, $9, $10, $11, $12, $13, $14, $15
    FROM moved JOIN x USING (id)),
a AS (
  INSERT INTO submission_attempt (payment_id, generation, no, is_probe)
  SELECT id, 1, 1, (SELECT is_probe FROM l) FROM moved),
${takeTokens({ generation: '1', no: '1' })}
SELECT l.available, l.rate, (SELECT coalesce(array_agg(id), '{}') FROM moved) AS ids FROM l`,
};

/** A payment whose request is built: what T7 stores when it opens generation 1. */
export interface Prepared {
  readonly paymentId: string;
  readonly providerKey: string;
  readonly submission: PreparedSubmission;
  /** Of the provider when the request was built; frozen with the generation. */
  readonly capabilityClass: CapabilityClass;
  /** `submission.parameters`, encrypted. */
  readonly parameters: Buffer;
  readonly parametersKeyId: string;
}

/** Why a statement that wanted tokens found no lane. */
const STANDING: Statement = {
  name: 'lane-standing',
  text: `SELECT l.paused OR l.account <> $3 OR NOT ${leaseAlive('$2')} AS closed, ${laneWaitMs('l')} AS wait_ms FROM lane l WHERE l.lane = $1`,
};

export type BeginResult =
  /** The lane is paused or of another account, or this worker's lease is over: nothing was tried. */
  | { readonly kind: 'closed' }
  /**
   * The provider has had enough or its breaker is open; nothing was tried. 0 ms: a probe may go, or is
   * under way, and nobody knows when it is answered.
   */
  | { readonly kind: 'waiting'; readonly waitMs: number }
  | {
      readonly kind: 'open';
      readonly moved: ReadonlySet<string>;
      /** What the statement might take: the lane's tokens before the move, one at most for a probe. */
      readonly available: number;
      /** Tokens a second. */
      readonly rate: number;
    };

/**
 * Records submission start (T7) for those of `batch` that are due and have a token.
 * @param batch payments of one lane, each once, prepared by one adapter; at most a few hundred.
 * @param freeCalls how many calls this worker may still have in flight.
 * @throws StorageUnavailable, OutcomeUnknown. Twice: those already moved are not moved again.
 */
export async function beginSubmissions(
  sql: Sql,
  lane: string,
  worker: string,
  freeCalls: number,
  batch: readonly Prepared[],
): Promise<BeginResult> {
  const first = batch[0];
  if (!first) return { kind: 'closed' };
  const common = first.submission;
  const { rows } = await sql.query<{ available: number; rate: number; ids: string[] }>(BEGIN, [
    lane,
    worker,
    freeCalls,
    batch.map((p) => p.paymentId),
    batch.map((p) => p.providerKey),
    batch.map((p) => p.parameters),
    batch.map((p) => p.parametersKeyId),
    batch.map((p) => Buffer.from(p.submission.parametersSha256, 'hex')),
    common.adapter,
    common.adapterVersion,
    common.apiVersion,
    common.credentialId,
    common.account,
    common.baseUrl,
    first.capabilityClass,
  ]);
  const row = rows[0];
  if (row) return { kind: 'open', moved: new Set(row.ids), available: row.available, rate: row.rate };
  const values = [lane, worker, common.account];
  const standing = await sql.query<{ closed: boolean; wait_ms: number }>(STANDING, values);
  const found = standing.rows[0];
  return found === undefined || found.closed
    ? { kind: 'closed' }
    : { kind: 'waiting', waitMs: found.wait_ms };
}

const MARK_ARMED: Statement = {
  name: 'mark-armed',
  text: `WITH free AS (
  SELECT p.id FROM payment p WHERE p.id = ANY ($1::text[]) AND ${stateIs('p', ['scheduled'])}
     FOR NO KEY UPDATE SKIP LOCKED)
UPDATE payment p SET armed_by = $2 FROM free WHERE p.id = free.id RETURNING p.id`,
};

/**
 * Tells the sweep that a living worker holds these payments while they wait for their lane.
 * @returns the ids that were marked; one that somebody holds locked is left out, so that a frozen
 * caller on one payment never stops a whole lane.
 */
export async function markArmed(
  sql: Sql,
  paymentIds: readonly string[],
  worker: string,
): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ id: string }>(MARK_ARMED, [paymentIds, worker]);
  return new Set(rows.map((row) => row.id));
}

const ESTIMATE: Statement = {
  name: 'lane-wait-estimate',
  text: `SELECT id, version, ms FROM (
    SELECT p.id, p.version, round(${laneWaitMs('l')} + row_number() OVER (ORDER BY p.execute_at, p.id) * 1000 / l.rate) AS ms
      FROM payment p JOIN lane l ON l.lane = p.lane
     WHERE p.lane = $1 AND p.state = 'scheduled' AND p.execute_at <= clock_timestamp()) x
   WHERE id = ANY ($2::text[])`,
};

/**
 * How long each of these due payments waits for its lane: what the lane waits itself, and the payments
 * ahead of it divided by the rate, in ms; one scan of the index payment_due. A payment no longer waiting is left out.
 */
export async function estimateWaits(
  sql: Sql,
  lane: string,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, { readonly version: number; readonly waitMs: number }>> {
  const { rows } = await sql.query<{ id: string; version: number; ms: number }>(ESTIMATE, [lane, paymentIds]);
  return new Map(rows.map((r) => [r.id, { version: r.version, waitMs: Number(r.ms) }]));
}

const RELEASE_ARMED: Statement = {
  name: 'release-armed',
  text: `WITH free AS (
  SELECT p.id FROM payment p WHERE p.id = ANY ($1::text[]) AND ${stateIs('p', ['scheduled'])}
     FOR NO KEY UPDATE SKIP LOCKED)
UPDATE payment p SET armed_by = NULL, wake_after = clock_timestamp() + (x.ms + 8000) * interval '1 ms'
  FROM free JOIN unnest($1::text[], $2::double precision[]) AS x (id, ms) USING (id)
 WHERE p.id = free.id`,
};

/**
 * Ends the mark of payments that go back to wait in their workflow; the sweep leaves them alone for
 * `restMs`, and while their lane lets nothing pass. One that somebody holds locked keeps its mark: the sweep looks at it a little later.
 */
export async function releaseArmed(
  sql: Sql,
  waits: readonly { readonly paymentId: string; readonly restMs: number }[],
): Promise<void> {
  await sql.query(RELEASE_ARMED, [waits.map((w) => w.paymentId), waits.map((w) => w.restMs)]);
}
