import { literal, type RawRow, type RawRows } from '../persistence/copy-out.js';
import { hashOfLeaf, type SignedAnchor } from './anchor.js';
import { AnchorCheck, type BrokenAnchor, type FoundTree } from './anchor-check.js';
import type { AnchorPublicKeys } from './anchor-keys.js';
import { EMPTY_ROOT, MerkleRoot } from './merkle.js';

const ANCHORS_AT_ONCE = 1_000;

export interface VerifyAnchorsOptions {
  readonly since: string | null;
  readonly paymentId: string | null;
  readonly publicKeys: AnchorPublicKeys;
  readonly found: (broken: BrokenAnchor) => void;
}

/**
 * Recomputes the anchors of the database from their leaves: all, those since a time, or those that hold a
 * payment. @returns how many, and the number of the first; null: there is none.
 */
export async function verifyAnchors(
  rows: RawRows,
  options: VerifyAnchorsOptions,
): Promise<{ readonly anchors: number; readonly firstNo: number | null }> {
  const isPart = options.paymentId !== null;
  const firstNo = await firstOf(rows, options);
  const check = new AnchorCheck({
    publicKeys: options.publicKeys,
    found: options.found,
    firstNo: options.since === null ? 1 : null,
    isSequence: !isPart,
  });
  for (let from = firstNo; from !== null;) {
    const anchors = await readAnchorPage(rows, from, options.paymentId);
    const trees = await readTrees(rows, anchors);
    for (const anchor of anchors) check.check(anchor, trees.get(anchor.no) ?? NO_LEAVES);
    const last = anchors.at(-1);
    from = last && anchors.length === ANCHORS_AT_ONCE ? last.no + 1 : null;
  }
  check.end();
  return { anchors: check.count, firstNo };
}

const NO_LEAVES: FoundTree = { leaves: 0, root: EMPTY_ROOT.toString('hex') };

async function firstOf(rows: RawRows, { since }: VerifyAnchorsOptions): Promise<number | null> {
  const within = since === null ? 'true' : `at >= ${literal(since)}::timestamptz`;
  const [row] = await rows.select(
    `SELECT no::text FROM public.audit_anchor WHERE ${within} ORDER BY ${since === null ? 'no' : 'at, no'} LIMIT 1`,
  );
  const no = row?.['no'];
  return no === undefined || no === null ? null : Number(no);
}

/** Anchors from this number on with their signatures; of one payment when it is named. */
export async function readAnchorPage(
  rows: RawRows,
  from: number,
  paymentId: string | null,
  limit = ANCHORS_AT_ONCE,
): Promise<readonly SignedAnchor[]> {
  const within =
    paymentId === null
      ? 'true'
      : `a.no IN (SELECT l.anchor_no FROM public.audit_anchor_leaf l WHERE l.payment_id = ${literal(paymentId)})`;
  const found = await rows.select(
    `SELECT a.no::text, to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, a.cut::text,
        a.leaves::text, encode(a.root, 'hex') AS root, encode(a.previous, 'hex') AS previous,
        encode(a.digest, 'hex') AS digest,
        (SELECT string_agg(s.key_id || ' ' || encode(s.signature, 'hex'), ',') FROM public.audit_anchor_signature s
          WHERE s.anchor_no = a.no) AS signatures
       FROM public.audit_anchor a WHERE a.no >= ${from} AND ${within} ORDER BY a.no LIMIT ${limit}`,
  );
  return found.map((row) => ({
    no: Number(row['no']),
    at: row['at'] ?? '',
    cut: BigInt(row['cut'] ?? 0),
    leaves: Number(row['leaves']),
    root: row['root'] ?? '',
    previous: row['previous'] ?? '',
    digest: row['digest'] ?? '',
    signatures: (row['signatures'] ?? '').split(',').flatMap((text) => {
      const [keyId = '', hex = ''] = text.split(' ');
      return keyId === '' ? [] : [{ keyId, signature: Buffer.from(hex, 'hex').toString('base64') }];
    }),
  }));
}

/** The roots of these anchors (audit_anchor_leaf_pkey), in one pass. Positions must be 1, 2, 3 and so on. */
async function readTrees(
  rows: RawRows,
  anchors: readonly SignedAnchor[],
): Promise<ReadonlyMap<number, FoundTree>> {
  const trees = new Map<number, FoundTree>();
  const [first, last] = [anchors[0], anchors.at(-1)];
  if (!first || !last) return trees;
  const wanted = new Set(anchors.map(({ no }) => no));
  let no = 0;
  let tree = new MerkleRoot();
  const close = (): void => {
    if (tree.count > 0) trees.set(no, { leaves: tree.count, root: tree.root().toString('hex') });
    tree = new MerkleRoot();
  };
  await rows.copy(
    `SELECT anchor_no, payment_id, version, hash FROM public.audit_anchor_leaf
      WHERE anchor_no BETWEEN ${first.no} AND ${last.no} ORDER BY anchor_no, position`,
    (row) => {
      const anchorNo = Number(row.bytes.readBigInt64BE(row.start[0]));
      if (anchorNo !== no) close();
      no = anchorNo;
      if (wanted.has(no)) tree.add(hashOfLeaf(leafOf(row)));
    },
  );
  close();
  return trees;
}

function leafOf({ bytes, start, length }: RawRow): { paymentId: string; version: number; hash: string } {
  const text = (field: number, encoding: 'utf8' | 'hex'): string =>
    bytes.toString(encoding, start[field] ?? 0, (start[field] ?? 0) + Math.max(0, length[field] ?? 0));
  return { paymentId: text(1, 'utf8'), version: bytes.readInt32BE(start[2]), hash: text(3, 'hex') };
}
