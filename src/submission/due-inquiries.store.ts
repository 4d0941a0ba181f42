import { stateIs } from '../payments/gate.js';
import type { Sql, Statement } from '../persistence/database.js';
import { openOutcomes, type OpenOutcome } from './open-outcome.store.js';
import { leaseAlive } from './worker-lease.js';

/** Payments of lane `f` in one state whose time has come (indexes payment_unknown and payment_submitted). */
const dueIn = (state: 'submitted' | 'unknown', due: string): string => `(
    SELECT p.id, p.next_action_at FROM payment p
     WHERE p.state = '${state}' AND p.lane = f.lane AND ${due}
     ORDER BY p.next_action_at LIMIT f.places)`;
/** now() and not the clock, so that the index bounds the walk. Without a time nobody planned: it is due. */
const DUE = 'p.next_action_at <= now()';
const UNPLANNED = 'p.next_action_at IS NULL';

const TAKE: Statement = {
  name: 'take-due-inquiries',
  text: `WITH f AS (SELECT * FROM unnest($1::text[], $2::integer[]) AS f (lane, places)),
due AS (
  SELECT d.id FROM f CROSS JOIN LATERAL (
    SELECT id FROM (${(['unknown', 'submitted'] as const)
      .flatMap((state) => [dueIn(state, DUE), dueIn(state, UNPLANNED)])
      .join(' UNION ALL ')}) each_state
     ORDER BY next_action_at NULLS FIRST LIMIT f.places) d
   WHERE ${leaseAlive('$3')}),
free AS (
  SELECT p.id FROM payment p JOIN due ON due.id = p.id
   WHERE ${stateIs('p', ['submitted', 'unknown'])} AND (${DUE} OR ${UNPLANNED})
     FOR NO KEY UPDATE OF p SKIP LOCKED),
p AS (
  UPDATE payment p SET next_action_at = clock_timestamp() + $4::double precision * interval '1 ms'
    FROM free WHERE p.id = free.id RETURNING p.*)
${openOutcomes('p')}`,
};

/** How many payments of a lane may be asked about now. */
export interface LanePlaces {
  readonly lane: string;
  readonly places: number;
}

/**
 * Takes open outcomes whose inquiry is due, longest due first within each lane, and keeps others from
 * them for `claimMs`: who takes them plans the next time, and when it dies they are due again by then.
 * @param worker must hold its lease. Twice: the second call finds them taken.
 */
export async function takeDueInquiries(
  sql: Sql,
  worker: string,
  lanes: readonly LanePlaces[],
  claimMs: number,
): Promise<readonly OpenOutcome[]> {
  const values = [lanes.map((l) => l.lane), lanes.map((l) => l.places), worker, claimMs];
  const { rows } = await sql.query<OpenOutcome>(TAKE, values);
  return rows;
}

/** A lane as inquiries see it. */
export interface InquiryLane {
  readonly lane: string;
  /** Tokens a second for what is sent. */
  readonly rate: number;
  /** Most calls in flight of one worker. */
  readonly cap: number;
}

export interface InquiryOutlook {
  /** Until the next inquiry is due anywhere, ms; 0 and less: now; null: no outcome is open. */
  readonly dueInMs: number | null;
  /** Workers whose lease is alive; they share what lookups may use. */
  readonly workers: number;
  readonly lanes: readonly InquiryLane[];
}

const NEXT_DUE = (state: string): string => `(SELECT coalesce(p.next_action_at, now()) FROM payment p
   WHERE p.state = '${state}' ORDER BY p.next_action_at LIMIT 1)`;
const OUTLOOK: Statement = {
  name: 'inquiry-outlook',
  text: `SELECT (extract(epoch FROM least(${NEXT_DUE('unknown')}, ${NEXT_DUE('submitted')}) - clock_timestamp()) * 1000
      )::double precision AS "dueInMs",
    (SELECT count(*) FROM worker w WHERE w.lease_expires_at > clock_timestamp())::integer AS workers,
    coalesce((SELECT json_agg(json_build_object('lane', lane, 'rate', rate, 'cap', cap)) FROM lane), '[]') AS lanes`,
};

/** One look at what there is to ask: the heads of two indexes, and the lanes. */
export async function readInquiryOutlook(sql: Sql): Promise<InquiryOutlook> {
  const { rows } = await sql.query<InquiryOutlook>(OUTLOOK);
  return rows[0] ?? { dueInMs: null, workers: 1, lanes: [] };
}
