import { hash } from 'node:crypto';
import { literal, withRawRows, type RawRows } from '../persistence/copy-out.js';
import { anchorDigest, hashOfLeaf, type AnchorLeaf, type SignedAnchor } from './anchor.js';
import { isSignedBy, type AnchorPublicKeys } from './anchor-keys.js';
import { merkleProof, rootFromProof } from './merkle.js';
import { readAnchorPage } from './verify-anchors.js';

/** One transition as it is hashed; `at` is ISO 8601 in UTC with six digits. */
export interface ExportedTransition {
  readonly seq: number;
  readonly tenant_id: string;
  readonly from_state: string | null;
  readonly to_state: string;
  readonly cause: string;
  readonly actor: string;
  readonly at: string;
  readonly detail: string;
  /** SHA-256 of the hash before and the canonical text, as hex. */
  readonly hash: string;
}

/** A payment's history with the proof that a signed anchor covers it. Needs no database to be verified. */
export interface HistoryExport {
  readonly format: 'payment-history/v1';
  readonly payment_id: string;
  readonly transitions: readonly ExportedTransition[];
  /** The newest version that an anchor holds; null while none does. */
  readonly proof: {
    readonly version: number;
    readonly anchor: Omit<SignedAnchor, 'cut'> & { readonly cut: string };
    /** From 0, in the anchor's tree. */
    readonly index: number;
    /** Hashes beside the way to the root, lowest first, as hex. */
    readonly path: readonly string[];
  } | null;
}

export interface ExportScope {
  readonly url: string;
  readonly applicationName: string;
  readonly paymentId: string | null;
  /** ISO 8601; payments that changed since. */
  readonly since: string | null;
}

const IDS_AT_ONCE = 500;

/** Exports payment after payment, all of one snapshot, to `write`. @returns how many. @throws as `verifyHistory`. */
export async function exportHistory(
  scope: ExportScope,
  write: (history: HistoryExport) => void | Promise<void>,
): Promise<number> {
  return withRawRows(scope, async (rows) => {
    const trees = new Trees(rows);
    let count = 0;
    for (let after = ''; ;) {
      const ids = await readIds(rows, scope, after);
      for (const id of ids) await write(await readHistory(rows, trees, id));
      count += ids.length;
      after = ids.at(-1) ?? after;
      if (ids.length < IDS_AT_ONCE) return count;
    }
  });
}

async function readIds(
  rows: RawRows,
  { paymentId, since }: ExportScope,
  after: string,
): Promise<readonly string[]> {
  const within = [
    ...(paymentId === null ? [] : [`payment_id = ${literal(paymentId)}`]),
    ...(since === null ? [] : [`at >= ${literal(since)}::timestamptz`]),
    `payment_id > ${literal(after)}`,
  ].join(' AND ');
  const found = await rows.select(
    `SELECT DISTINCT payment_id FROM public.payment_transition WHERE ${within} ORDER BY payment_id LIMIT ${IDS_AT_ONCE}`,
  );
  return found.map((row) => row['payment_id'] ?? '');
}

async function readHistory(rows: RawRows, trees: Trees, id: string): Promise<HistoryExport> {
  const found = await rows.select(
    `SELECT seq::text, tenant_id, from_state, to_state, cause, actor, detail, encode(hash, 'hex') AS hash,
        to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at
       FROM public.payment_transition WHERE payment_id = ${literal(id)} ORDER BY payment_transition.seq`,
  );
  const transitions = found.map((row) => ({
    ...(row as unknown as Omit<ExportedTransition, 'seq'>),
    seq: Number(row['seq']),
  }));
  return {
    format: 'payment-history/v1',
    payment_id: id,
    transitions,
    proof: await readProof(rows, trees, id),
  };
}

async function readProof(rows: RawRows, trees: Trees, id: string): Promise<HistoryExport['proof']> {
  const [leaf] = await rows.select(
    `SELECT anchor_no::text, position::text, version::text FROM public.audit_anchor_leaf
      WHERE payment_id = ${literal(id)} ORDER BY audit_anchor_leaf.version DESC LIMIT 1`,
  );
  if (!leaf) return null;
  const no = Number(leaf['anchor_no']);
  const [anchor] = await readAnchorPage(rows, no, null, 1);
  if (anchor?.no !== no) throw new Error(`Anchor ${no} is gone. Run payments audit verify.`);
  const index = Number(leaf['position']) - 1;
  const path = merkleProof(await trees.of(no), index).map((each) => each.toString('hex'));
  return { version: Number(leaf['version']), anchor: { ...anchor, cut: anchor.cut.toString() }, index, path };
}

/** The leaf hashes of the anchor that was asked for last: payments of one time share it. */
class Trees {
  #no = 0;
  #hashes: Buffer[] = [];

  constructor(private readonly rows: RawRows) {}

  async of(no: number): Promise<readonly Buffer[]> {
    if (no === this.#no) return this.#hashes;
    const found = await this.rows.select(
      `SELECT payment_id, version::text, encode(hash, 'hex') AS hash FROM public.audit_anchor_leaf
        WHERE anchor_no = ${no} ORDER BY position`,
    );
    this.#no = no;
    this.#hashes = found.map((row) =>
      hashOfLeaf({
        paymentId: row['payment_id'] ?? '',
        version: Number(row['version']),
        hash: row['hash'] ?? '',
      }),
    );
    return this.#hashes;
  }
}

/** What an exported history proves, or the first thing that is wrong with it. */
export type ExportVerdict =
  | {
      readonly kind: 'proven';
      readonly version: number;
      readonly anchorNo: number;
      readonly anchoredAt: string;
    }
  | { readonly kind: 'broken'; readonly seq: number | null; readonly fault: ExportFault };

export type ExportFault =
  | 'transition_missing'
  | 'hash_differs'
  | 'not_anchored'
  | 'anchored_version_missing'
  | 'root_differs'
  | 'digest_differs'
  | 'signature_forged'
  | 'key_unknown';

/** Judges an exported history by public keys alone. */
export function verifyExport(history: HistoryExport, publicKeys: AnchorPublicKeys): ExportVerdict {
  const link = brokenLink(history);
  if (link) return { kind: 'broken', ...link };
  const { proof } = history;
  if (!proof) return { kind: 'broken', seq: null, fault: 'not_anchored' };
  const anchored = history.transitions[proof.version - 1];
  if (!anchored) return { kind: 'broken', seq: proof.version, fault: 'anchored_version_missing' };
  const leaf: AnchorLeaf = { paymentId: history.payment_id, version: proof.version, hash: anchored.hash };
  const anchor: SignedAnchor = { ...proof.anchor, cut: BigInt(proof.anchor.cut) };
  const fault = brokenProof(leaf, proof, anchor, publicKeys);
  if (fault) return { kind: 'broken', seq: null, fault };
  return { kind: 'proven', version: proof.version, anchorNo: anchor.no, anchoredAt: anchor.at };
}

function brokenLink(history: HistoryExport): { readonly seq: number; readonly fault: ExportFault } | null {
  let previous = Buffer.alloc(0);
  for (const [i, entry] of history.transitions.entries()) {
    if (entry.seq !== i + 1) return { seq: i + 1, fault: 'transition_missing' };
    const lines = [
      'transition/v1', history.payment_id, entry.seq, entry.tenant_id, entry.from_state ?? 'none', entry.to_state,
      entry.cause, entry.actor, entry.at, entry.detail,
    ]; // prettier-ignore
    const text = Buffer.from(lines.join('\n'), 'utf8');
    previous = hash('sha256', Buffer.concat([previous, text]), 'buffer');
    if (previous.toString('hex') !== entry.hash) return { seq: entry.seq, fault: 'hash_differs' };
  }
  return null;
}

function brokenProof(
  leaf: AnchorLeaf,
  { index, path }: { readonly index: number; readonly path: readonly string[] },
  anchor: SignedAnchor,
  publicKeys: AnchorPublicKeys,
): ExportFault | null {
  const proof = path.map((each) => Buffer.from(each, 'hex'));
  const root = rootFromProof({ leaf: hashOfLeaf(leaf), index, count: anchor.leaves, proof });
  if (root?.toString('hex') !== anchor.root) return 'root_differs';
  if (anchorDigest(anchor) !== anchor.digest) return 'digest_differs';
  const verdicts = anchor.signatures.map((signature) => isSignedBy(anchor, signature, publicKeys));
  if (verdicts.includes(false)) return 'signature_forged';
  return verdicts.includes(true) ? null : 'key_unknown';
}
