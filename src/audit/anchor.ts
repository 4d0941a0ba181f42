import { sha256 } from '../platform/sha256.js';
import { leafHash } from './merkle.js';

/** A payment as an anchor saw it: the hash of a version covers every version before it. */
export interface AnchorLeaf {
  readonly paymentId: string;
  readonly version: number;
  /** Of the transition with `seq = version`: 32 bytes as hex. */
  readonly hash: string;
}

/**
 * What is signed each minute: the root over every payment that changed since the anchor before, and
 * that anchor's digest. Whoever holds one anchor can tell whether anything before it changed.
 */
export interface Anchor {
  /** 1, 2, 3 and so on, without a gap. */
  readonly no: number;
  /** The database's clock, ISO 8601 in UTC with six digits. */
  readonly at: string;
  /** It covers the transactions below this one, from the cut of the anchor before. */
  readonly cut: bigint;
  /** How many payments changed. */
  readonly leaves: number;
  /** 32 bytes as hex. */
  readonly root: string;
  /** Digest of the anchor before, as hex; 64 zeros for the first. */
  readonly previous: string;
}

export interface AnchorSignature {
  readonly keyId: string;
  /** 64 bytes of Ed25519 over `anchorText`, as base64. */
  readonly signature: string;
}

export interface SignedAnchor extends Anchor {
  readonly digest: string;
  readonly signatures: readonly AnchorSignature[];
}

/** What the first anchor names as the digest of the one before. */
export const NO_ANCHOR = '0'.repeat(64);

/** The text of a leaf, whose hash enters the tree. */
export function leafText({ paymentId, version, hash }: AnchorLeaf): string {
  return `anchor-leaf/v1\n${paymentId}\n${version}\n${hash}`;
}

export function hashOfLeaf(leaf: AnchorLeaf): Buffer {
  return leafHash(leafText(leaf));
}

/** The text that is signed. Lines, since no part holds a line break. */
export function anchorText({ no, at, cut, leaves, root, previous }: Anchor): string {
  return ['anchor/v1', no, at, cut, leaves, root, previous].join('\n');
}

/** SHA-256 of `anchorText` as hex. */
export function anchorDigest(anchor: Anchor): string {
  return Buffer.from(sha256(anchorText(anchor))).toString('hex');
}
