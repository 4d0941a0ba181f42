import { literal, type RawRows } from '../persistence/copy-out.js';
import { hashOfLeaf, type AnchorLeaf, type SignedAnchor } from './anchor.js';
import { AnchorCheck, type Broken } from './anchor-check.js';
import { anchorFiles, readCopies } from './anchor-copies.js';
import type { AnchorPublicKeys } from './anchor-keys.js';
import type { BrokenLink } from './chain-check.js';
import { MerkleRoot } from './merkle.js';

/** A copy may be so much younger than its anchor (s): a worker copies once a minute, and may be away. */
const COPY_LAG_S = 300;
const DIGESTS_AT_ONCE = 1_000;
const LEAVES_AT_ONCE = 500;

export interface VerifyCopiesOptions {
  readonly since: string | null;
  readonly paymentId: string | null;
  readonly publicKeys: AnchorPublicKeys;
  readonly folder: string;
  /** The first anchor of the database that is looked at; null: there is none. */
  readonly firstNo: number | null;
  readonly found: (broken: Broken) => void;
  /** Rows of a snapshot of their own, taken when it is called. */
  readonly later: <T>(work: (rows: RawRows) => Promise<T>) => Promise<T>;
}

/**
 * Recomputes the copies from their own leaves and compares each with the database. Where they differ, the
 * leaves of the copy are looked up one by one, so that the payment is named that was changed or removed
 * with everything that told of it. An anchor that was made and copied after the snapshot of `rows` is
 * looked for in a later one, and compared with the payments by the next verification.
 * @returns how many whole anchors the copies hold. @throws the system's error when they cannot be read.
 */
export async function verifyCopies(rows: RawRows, options: VerifyCopiesOptions): Promise<number> {
  const files = (await anchorFiles(options.folder)).filter(
    (name) => options.since === null || name >= `anchors-${options.since.slice(0, 10)}`,
  );
  const firstNo = options.since === null ? 1 : options.firstNo;
  const check = new AnchorCheck({
    publicKeys: options.publicKeys,
    found: (broken) =>
      options.found(broken.fault === 'anchor_missing' ? { ...broken, fault: 'copy_missing' } : broken),
    firstNo,
    isSequence: true,
  });
  const here = new DatabaseDigests(rows);
  let open: OpenCopy | null = null;
  for await (const lines of readCopies(options.folder, files)) {
    for (const line of lines) {
      if (line.kind === 'anchor') {
        open = isBefore(line.anchor, firstNo, options)
          ? null
          : await OpenCopy.of(line.anchor, here, rows, options);
      } else if (line.kind === 'leaf') {
        if (open?.add(line.leaf)) await open.lookUp();
      } else if (line.kind === 'end' && open && line.no === open.anchor.no) {
        await open.close(check);
        open = null;
      } else if (line.kind === 'signature' && line.no === check.lastNo) {
        check.later(line.signature);
      }
    }
  }
  check.end();
  await findUncopied(rows, check.lastNo, options);
  return check.count;
}

/** A day's file begins before `since`. */
function isBefore(anchor: SignedAnchor, firstNo: number | null, { since }: VerifyCopiesOptions): boolean {
  if (since === null) return false;
  return firstNo === null ? anchor.at < since : anchor.no < firstNo;
}

/** Digests of the database's anchors, read ahead in portions. */
class DatabaseDigests {
  #from = -DIGESTS_AT_ONCE;
  #digests = new Map<number, string>();

  constructor(private readonly rows: RawRows) {}

  /** Hex; null: this snapshot has no such anchor. */
  async of(no: number): Promise<string | null> {
    if (no < this.#from || no >= this.#from + DIGESTS_AT_ONCE) {
      this.#from = no;
      this.#digests = await readDigests(this.rows, no, DIGESTS_AT_ONCE);
    }
    return this.#digests.get(no) ?? null;
  }
}

async function readDigests(rows: RawRows, from: number, count: number): Promise<Map<number, string>> {
  const found = await rows.select(
    `SELECT no::text, encode(digest, 'hex') AS digest FROM public.audit_anchor
      WHERE no >= ${from} AND no < ${from + count}`,
  );
  return new Map(found.map((row) => [Number(row['no']), row['digest'] ?? '']));
}

/** A copy of one anchor while its leaves are read. */
class OpenCopy {
  readonly #tree = new MerkleRoot();
  #waiting: AnchorLeaf[] = [];

  private constructor(
    readonly anchor: SignedAnchor,
    private readonly rows: RawRows,
    private readonly options: VerifyCopiesOptions,
    private readonly looksUp: 'all' | 'payment' | 'nothing',
  ) {}

  static async of(
    anchor: SignedAnchor,
    here: DatabaseDigests,
    rows: RawRows,
    options: VerifyCopiesOptions,
  ): Promise<OpenCopy> {
    const { no } = anchor;
    const digest = Number.isSafeInteger(no) ? await here.of(no) : null;
    if (digest === anchor.digest) {
      const isWhole = await hasItsLeaves(rows, anchor);
      return new OpenCopy(anchor, rows, options, isWhole ? 'payment' : 'all');
    }
    if (digest === null && (await isYounger(anchor, options))) {
      return new OpenCopy(anchor, rows, options, 'nothing');
    }
    options.found({ anchorNo: no, fault: digest === null ? 'missing_in_database' : 'differs_from_copy' });
    return new OpenCopy(anchor, rows, options, 'all');
  }

  /** Takes the next leaf. @returns true when so many wait that `lookUp` is to be called. */
  add(leaf: AnchorLeaf): boolean {
    this.#tree.add(hashOfLeaf(leaf));
    const { paymentId } = this.options;
    if (this.looksUp === 'nothing' || (this.looksUp === 'payment' && leaf.paymentId !== paymentId))
      return false;
    if (paymentId !== null && leaf.paymentId !== paymentId) return false;
    this.#waiting.push(leaf);
    return this.#waiting.length >= LEAVES_AT_ONCE;
  }

  async close(check: AnchorCheck): Promise<void> {
    await this.lookUp();
    check.check(this.anchor, { leaves: this.#tree.count, root: this.#tree.root().toString('hex') });
  }

  /** Compares the leaves that wait with the database. */
  async lookUp(): Promise<void> {
    const leaves = this.#waiting;
    this.#waiting = [];
    if (leaves.length === 0) return;
    const values = leaves.map(
      ({ paymentId, version }, i) => `(${i}, ${literal(paymentId)}, ${Number(version) || 0})`,
    );
    const found = await this.rows.select(
      `SELECT l.i::text, encode(t.hash, 'hex') AS hash, (p.id IS NOT NULL)::text AS is_there
         FROM (VALUES ${values.join(', ')}) l(i, payment_id, version)
         LEFT JOIN public.payment_transition t ON t.payment_id = l.payment_id AND t.seq = l.version
         LEFT JOIN public.payment p ON p.id = l.payment_id ORDER BY l.i`,
    );
    for (const row of found) {
      const leaf = leaves[Number(row['i'])];
      const broken = leaf && brokenLeaf(leaf, row['hash'] ?? null, row['is_there'] === 'true');
      if (broken) this.options.found({ ...broken, anchorNo: this.anchor.no });
    }
  }
}

function brokenLeaf(leaf: AnchorLeaf, hash: string | null, isThere: boolean): BrokenLink | null {
  const { paymentId, version: seq } = leaf;
  if (!isThere) return { paymentId, seq, fault: 'payment_missing' };
  if (hash === null) return { paymentId, seq, fault: 'anchored_version_missing' };
  return hash === leaf.hash ? null : { paymentId, seq, fault: 'anchored_hash_differs' };
}

/** True when the database has this anchor by now. A copy is written after its anchor was committed. */
function isYounger({ no, digest }: SignedAnchor, { later }: VerifyCopiesOptions): Promise<boolean> {
  if (!Number.isSafeInteger(no)) return Promise.resolve(false);
  return later(async (rows) => (await readDigests(rows, no, 1)).get(no) === digest);
}

/** Whoever removes a payment also removes its leaf, and thinks of the copies last. */
async function hasItsLeaves(rows: RawRows, { no, leaves }: SignedAnchor): Promise<boolean> {
  const [row] = await rows.select(
    `SELECT count(*)::text AS leaves FROM public.audit_anchor_leaf WHERE anchor_no = ${Number(no)}`,
  );
  return Number(row?.['leaves']) === leaves;
}

async function findUncopied(
  rows: RawRows,
  lastNo: number | null,
  { found, firstNo }: VerifyCopiesOptions,
): Promise<void> {
  if (firstNo === null) return;
  const from = lastNo ?? firstNo - 1;
  const [row] = await rows.select(
    `SELECT no::text FROM public.audit_anchor
      WHERE no > ${from} AND at < clock_timestamp() - ${COPY_LAG_S} * interval '1 s' ORDER BY no LIMIT 1`,
  );
  if (row?.['no']) found({ anchorNo: Number(row['no']), fault: 'copy_missing' });
}
