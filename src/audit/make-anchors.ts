import type { AnchorKeySet } from '../config/key-file.js';
import type { Sql, Transactions } from '../persistence/database.js';
import { anchorDigest, hashOfLeaf, type Anchor, type SignedAnchor } from './anchor.js';
import { isSignedBy, publicKeysOf, signAnchor } from './anchor-keys.js';
import {
  collectLeaves,
  insertAnchor,
  insertSignatures,
  lockAnchors,
  prepareAnchoring,
  readCut,
  readLastAnchor,
  readLeaves,
  startAfter,
} from './anchor.store.js';
import { MerkleRoot } from './merkle.js';

/** An anchor takes about so many transitions, so that what piled up becomes several short ones. */
const MOST_TRANSITIONS = 50_000;
/** A run ends after so many anchors; the next one goes on. */
const MOST_ANCHORS = 100;

/** Why no anchor could be made. Each needs a person; the runbook says what to do. */
export type AnchorRefusal =
  /** The newest anchor is not what one of our keys signed: it was changed, or its key is gone from the file. */
  | 'last_anchor_unproven'
  /** The server's transaction counter is below the last cut: a copy that began to count anew. */
  | 'counter_reset';

export type AnchorRun =
  | { readonly kind: 'anchored'; readonly anchors: readonly SignedAnchor[] }
  /** Another worker made one a moment ago. */
  | { readonly kind: 'young' }
  | { readonly kind: 'refused'; readonly reason: AnchorRefusal };

export interface AnchorOptions {
  readonly keys: AnchorKeySet;
  /** No anchor is made while the newest is younger (ms, database's clock). */
  readonly youngMs: number;
  /** Absent: `MOST_TRANSITIONS`. */
  readonly mostTransitions?: number;
}

/**
 * Anchors what changed since the last anchor, also nothing: an anchor a minute bounds what can be cut
 * off unseen. Each is a commit of its own, and only one caller at a time makes any.
 * @throws LockTimeout while another one is at it; faults of storage: what is committed stays, call again.
 * Twice: the second finds a young anchor.
 */
export async function makeAnchors(database: Transactions, options: AnchorOptions): Promise<AnchorRun> {
  const anchors: SignedAnchor[] = [];
  for (let i = 0; i < MOST_ANCHORS; i++) {
    const step = await database.transaction((tx) => makeOne(tx, options, anchors.length > 0));
    if (step.kind !== 'made') return anchors.length > 0 ? { kind: 'anchored', anchors } : step;
    anchors.push(step.anchor);
    if (step.isWhole) break;
  }
  return { kind: 'anchored', anchors };
}

type Step =
  | { readonly kind: 'made'; readonly anchor: SignedAnchor; readonly isWhole: boolean }
  | Exclude<AnchorRun, { readonly kind: 'anchored' }>;

async function makeOne(tx: Sql, options: AnchorOptions, isCatchingUp: boolean): Promise<Step> {
  await lockAnchors(tx);
  await prepareAnchoring(tx);
  const last = await readLastAnchor(tx, options.youngMs);
  if (last?.isYoung === true && !isCatchingUp) return { kind: 'young' };
  if (last && !isProven(last.anchor, options.keys))
    return { kind: 'refused', reason: 'last_anchor_unproven' };
  const { no, from, previous } = startAfter(last?.anchor ?? null);
  const reach = await readCut(tx, from, options.mostTransitions ?? MOST_TRANSITIONS);
  if (reach === null) return { kind: 'refused', reason: 'counter_reset' };
  if (last) await handOver(tx, last.anchor, options.keys);
  await collectLeaves(tx, no, from, reach.cut);
  const tree = new MerkleRoot();
  for await (const leaves of readLeaves(tx, no)) for (const leaf of leaves) tree.add(hashOfLeaf(leaf));
  const root = tree.root().toString('hex');
  const anchor: Anchor = { no, at: reach.at, cut: reach.cut, leaves: tree.count, root, previous };
  const signed = { ...anchor, digest: anchorDigest(anchor), signatures: signAnchor(anchor, options.keys) };
  await insertAnchor(tx, signed);
  await insertSignatures(tx, no, signed.signatures);
  return { kind: 'made', anchor: signed, isWhole: reach.isWhole };
}

/** Whoever builds on an anchor vouches for it, so it must be what a key of ours signed. */
function isProven(anchor: SignedAnchor, keys: AnchorKeySet): boolean {
  if (anchorDigest(anchor) !== anchor.digest) return false;
  const known = publicKeysOf(keys);
  const verdicts = anchor.signatures.map((signature) => isSignedBy(anchor, signature, known));
  return verdicts.includes(true) && !verdicts.includes(false);
}

/** A key that becomes active signs the last anchor of those before it: who trusts it can trust them. */
async function handOver(tx: Sql, last: SignedAnchor, keys: AnchorKeySet): Promise<void> {
  const missing = keys.active.filter((id) => !last.signatures.some(({ keyId }) => keyId === id));
  await insertSignatures(tx, last.no, signAnchor(last, keys, missing));
}
