import { hash } from 'node:crypto';

/**
 * Merkle trees as of RFC 6962, section 2.1: a leaf is hashed behind a zero byte and a node behind a one,
 * so that neither passes for the other; the left half of n leaves is the largest power of two below n.
 */

const LEAF = '\0';
const NODE = 1;
const HASH_BYTES = 32;

/** By a text of one character for each byte: a buffer out of the hash itself costs twice the hash. */
const sha256 = (data: string | Buffer): Buffer =>
  Buffer.from(hash('sha256', data, 'latin1' as 'hex'), 'latin1');

/** The bytes of a node, used again for each: a verification hashes as many nodes as leaves. */
const nodeBytes = Buffer.alloc(1 + 2 * HASH_BYTES);

function nodeOf(left: Buffer, right: Buffer): Buffer {
  const size = 1 + left.length + right.length;
  // Steps of a proof that somebody wrote may have any length.
  const bytes = size === nodeBytes.length ? nodeBytes : Buffer.alloc(size);
  bytes[0] = NODE;
  left.copy(bytes, 1);
  right.copy(bytes, 1 + left.length);
  return sha256(bytes);
}

/** SHA-256 of nothing: the root of a tree without leaves. */
export const EMPTY_ROOT: Buffer = sha256('');

/** The hash of a leaf with this content: 32 bytes. */
export function leafHash(content: string): Buffer {
  return sha256(LEAF + content);
}

/** Takes leaf hashes in order and keeps one hash per level: as many leaves as one likes. */
export class MerkleRoot {
  /** Roots of complete trees, largest first; `height` of each. */
  readonly #parts: { hash: Buffer; readonly height: number }[] = [];
  #count = 0;

  add(leaf: Buffer): void {
    let part = { hash: leaf, height: 0 };
    for (let last = this.#parts.at(-1); last?.height === part.height; last = this.#parts.at(-1)) {
      this.#parts.pop();
      part = { hash: nodeOf(last.hash, part.hash), height: part.height + 1 };
    }
    this.#parts.push(part);
    this.#count++;
  }

  get count(): number {
    return this.#count;
  }

  /** The root over the leaves so far. */
  root(): Buffer {
    const [last, ...before] = this.#parts.toReversed();
    if (last === undefined) return EMPTY_ROOT;
    return before.reduce((right, { hash: left }) => nodeOf(left, right), last.hash);
  }
}

function rootOf(leaves: readonly Buffer[]): Buffer {
  const tree = new MerkleRoot();
  for (const leaf of leaves) tree.add(leaf);
  return tree.root();
}

/** The largest power of two below `count`, which is at least 2. */
const split = (count: number): number => 2 ** Math.floor(Math.log2(count - 1));

/**
 * What it takes to get from one leaf to the root: the hashes beside its way, lowest first.
 * @param index of the leaf, from 0. @throws Error when there is no such leaf.
 */
export function merkleProof(leaves: readonly Buffer[], index: number): readonly Buffer[] {
  if (!(Number.isInteger(index) && index >= 0 && index < leaves.length)) throw new Error('no such leaf');
  if (leaves.length === 1) return [];
  const half = split(leaves.length);
  return index < half
    ? [...merkleProof(leaves.slice(0, half), index), rootOf(leaves.slice(half))]
    : [...merkleProof(leaves.slice(half), index - half), rootOf(leaves.slice(0, half))];
}

/** A proof of more steps than this is of no tree that this product makes. */
const MOST_STEPS = 64;

/** The root that the proof leads to from this leaf, or null when it has too few or too many steps. */
export function rootFromProof(of: {
  readonly leaf: Buffer;
  /** From 0. */
  readonly index: number;
  readonly count: number;
  readonly proof: readonly Buffer[];
}): Buffer | null {
  const { leaf, index, count, proof } = of;
  if (!(index >= 0 && index < count) || proof.length > MOST_STEPS) return null;
  if (count === 1) return proof.length === 0 ? leaf : null;
  const beside = proof.at(-1);
  if (beside === undefined) return null;
  const half = split(count);
  const rest = proof.slice(0, -1);
  if (index < half) {
    const left = rootFromProof({ leaf, index, count: half, proof: rest });
    return left && nodeOf(left, beside);
  }
  const right = rootFromProof({ leaf, index: index - half, count: count - half, proof: rest });
  return right && nodeOf(beside, right);
}
