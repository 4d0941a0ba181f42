import { ADVISORY_LOCKS } from '../persistence/advisory-locks.js';
import type { Sql, Statement } from '../persistence/database.js';
import {
  NO_ANCHOR,
  type Anchor,
  type AnchorLeaf,
  type AnchorSignature,
  type SignedAnchor,
} from './anchor.js';

const LOCK: Statement = {
  name: 'anchor-lock',
  text: `SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.anchors})`,
};

/** Makes the caller the only one that anchors, until its transaction ends. @throws LockTimeout after 2 s. */
export async function lockAnchors(tx: Sql): Promise<void> {
  await tx.query(LOCK);
}

/** Longer than any other statement: the first anchor reads every payment there is (ms). */
export const ANCHOR_STATEMENT_MS = 600_000;

const SETTINGS: Statement = {
  name: 'anchor-settings',
  text: `SELECT set_config('statement_timeout', '${ANCHOR_STATEMENT_MS}', true),
    set_config('idle_in_transaction_session_timeout', '60000', true), set_config('enable_seqscan', 'off', true)`,
};

/** Limits and planning of this transaction. */
export async function prepareAnchoring(tx: Sql): Promise<void> {
  await tx.query(SETTINGS);
}

/** ISO 8601 in UTC with six digits, as texts that are signed have it. */
const utc = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

const COLUMNS = `a.no, ${utc('a.at')} AS at, a.cut, a.leaves, encode(a.root, 'hex') AS root,
  encode(a.previous, 'hex') AS previous, encode(a.digest, 'hex') AS digest,
  coalesce((SELECT json_agg(json_build_object('keyId', s.key_id, 'signature', encode(s.signature, 'base64'))
              ORDER BY s.key_id) FROM audit_anchor_signature s WHERE s.anchor_no = a.no), '[]') AS signatures`;

interface AnchorRow extends Omit<SignedAnchor, 'no'> {
  readonly no: bigint;
}

const anchorOf = (row: AnchorRow): SignedAnchor => ({
  ...row,
  no: Number(row.no),
  // Postgres breaks lines of base64 at 76 characters.
  signatures: row.signatures.map(({ keyId, signature }) => ({
    keyId,
    signature: signature.replaceAll('\n', ''),
  })),
});

const LAST: Statement = {
  name: 'anchor-last',
  text: `SELECT ${COLUMNS}, a.at > clock_timestamp() - $1::double precision * interval '1 ms' AS is_young
    FROM audit_anchor a ORDER BY a.no DESC LIMIT 1`,
};

/** The newest anchor (primary key), and whether it is younger than `youngMs` on the database's clock; or null. */
export async function readLastAnchor(
  sql: Sql,
  youngMs: number,
): Promise<{ readonly anchor: SignedAnchor; readonly isYoung: boolean } | null> {
  const { rows } = await sql.query<AnchorRow & { is_young: boolean }>(LAST, [youngMs]);
  const [row] = rows;
  if (row === undefined) return null;
  const { is_young: isYoung, ...anchor } = row;
  return { anchor: anchorOf(anchor), isYoung };
}

const FROM: Statement = {
  name: 'anchor-from',
  text: `SELECT ${COLUMNS} FROM audit_anchor a WHERE a.no >= $1 ORDER BY a.no LIMIT $2`,
};

/** Anchors from this number on (primary key), in order. */
export async function readAnchors(sql: Sql, fromNo: number, limit: number): Promise<readonly SignedAnchor[]> {
  return (await sql.query<AnchorRow>(FROM, [fromNo, limit])).rows.map(anchorOf);
}

/**
 * How far an anchor may reach. Transactions below a snapshot's xmin have ended: whatever they wrote is
 * visible to every later snapshot, and none of them will write again. So a row that commits late is
 * never below a cut that was made before; no clock, and no guess of how long a transaction may last,
 * takes part. One transaction that stays open holds the cut back, it loses nothing.
 *
 * nth: where the $2-th row after $1 stands (index payment_transition_by_xact), to end the anchor there.
 */
const CUT: Statement = {
  name: 'anchor-cut',
  text: `WITH h AS MATERIALIZED (
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon)
  SELECT h.horizon, (SELECT t.xact FROM payment_transition t
    WHERE t.xact >= $1 AND t.xact < h.horizon ORDER BY t.xact OFFSET $2 LIMIT 1) AS nth,
    ${utc('clock_timestamp()')} AS at FROM h`,
};

export interface AnchorCut {
  /** The anchor covers transactions below this one. */
  readonly cut: bigint;
  /** Whether it reaches as far as it could; otherwise another anchor follows at once. */
  readonly isWhole: boolean;
  /** The database's clock. */
  readonly at: string;
}

/**
 * Where the next anchor ends, after about `most` transitions.
 * @returns null when the server's transactions count below the last cut: this is a copy whose counter
 * began anew, and nothing could be anchored without a hole.
 */
export async function readCut(tx: Sql, from: bigint, most: number): Promise<AnchorCut | null> {
  const { rows } = await tx.query<{ horizon: bigint; nth: bigint | null; at: string }>(CUT, [from, most]);
  const [row] = rows;
  // The horizon never goes back while a server lives: an anchor is written after its cut, so that a crash
  // cannot forget the numbers below.
  if (row === undefined || row.horizon < from) return null;
  const { nth, at } = row;
  // A transaction is never divided, however much it wrote.
  if (nth !== null) return { cut: nth > from ? nth : from + 1n, isWhole: false, at };
  return { cut: row.horizon, isWhole: true, at };
}

const COLLECT: Statement = {
  name: 'anchor-collect',
  text: `INSERT INTO audit_anchor_leaf (anchor_no, position, payment_id, version, hash)
    SELECT $1, (row_number() OVER (ORDER BY h.payment_id))::integer, h.payment_id, h.seq, h.hash FROM (
      SELECT DISTINCT ON (t.payment_id) t.payment_id, t.seq, t.hash FROM payment_transition t
       WHERE t.xact >= $2 AND t.xact < $3 ORDER BY t.payment_id, t.seq DESC) h`,
};

/** Stores the newest transition of every payment between the cuts (index payment_transition_by_xact). */
export async function collectLeaves(tx: Sql, no: number, from: bigint, cut: bigint): Promise<void> {
  await tx.query(COLLECT, [no, from, cut]);
}

const LEAVES: Statement = {
  name: 'anchor-leaves',
  text: `SELECT payment_id AS "paymentId", version, encode(hash, 'hex') AS hash FROM audit_anchor_leaf
    WHERE anchor_no = $1 AND position > $2 ORDER BY position LIMIT $3`,
};
const LEAVES_AT_ONCE = 5_000;

/** The leaves of an anchor in the order of its tree, in portions (primary key). */
export async function* readLeaves(sql: Sql, no: number): AsyncGenerator<readonly AnchorLeaf[], void, void> {
  for (let after = 0; ; after += LEAVES_AT_ONCE) {
    const { rows } = await sql.query<AnchorLeaf>(LEAVES, [no, after, LEAVES_AT_ONCE]);
    if (rows.length > 0) yield rows;
    if (rows.length < LEAVES_AT_ONCE) return;
  }
}

const INSERT: Statement = {
  name: 'anchor-insert',
  text: `INSERT INTO audit_anchor (no, at, cut, leaves, root, previous, digest)
    VALUES ($1, $2::timestamptz, $3, $4, decode($5, 'hex'), decode($6, 'hex'), decode($7, 'hex'))`,
};

/** Stores an anchor without its signatures. @throws the error of Postgres when the number is taken. */
export async function insertAnchor(tx: Sql, anchor: Anchor & { readonly digest: string }): Promise<void> {
  const { no, at, cut, leaves, root, previous, digest } = anchor;
  await tx.query(INSERT, [no, at, cut, leaves, root, previous, digest]);
}

const SIGN: Statement = {
  name: 'anchor-sign',
  text: `INSERT INTO audit_anchor_signature (anchor_no, key_id, signature) VALUES ($1, $2, decode($3, 'base64'))`,
};

/** Adds signatures to an anchor. */
export async function insertSignatures(
  tx: Sql,
  no: number,
  signatures: readonly AnchorSignature[],
): Promise<void> {
  for (const { keyId, signature } of signatures) await tx.query(SIGN, [no, keyId, signature]);
}

/** What the anchor after `last` starts from. */
export function startAfter(last: SignedAnchor | null): {
  readonly no: number;
  readonly from: bigint;
  readonly previous: string;
} {
  if (last === null) return { no: 1, from: 0n, previous: NO_ANCHOR };
  return { no: last.no + 1, from: last.cut, previous: last.digest };
}
