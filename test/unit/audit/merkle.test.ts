import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { EMPTY_ROOT, leafHash, merkleProof, MerkleRoot, rootFromProof } from '../../../src/audit/merkle.js';

const leaves = (count: number): Buffer[] => Array.from({ length: count }, (_, i) => leafHash(`leaf ${i}`));

/** RFC 6962, section 2.1, word by word. */
function rootByDefinition(hashes: readonly Buffer[]): Buffer {
  if (hashes.length === 0) return createHash('sha256').digest();
  const [only] = hashes;
  if (hashes.length === 1 && only) return only;
  let k = 1;
  while (k * 2 < hashes.length) k *= 2;
  return createHash('sha256')
    .update(Buffer.of(1))
    .update(rootByDefinition(hashes.slice(0, k)))
    .update(rootByDefinition(hashes.slice(k)))
    .digest();
}

const rootOf = (hashes: readonly Buffer[]): Buffer => {
  const tree = new MerkleRoot();
  for (const each of hashes) tree.add(each);
  return tree.root();
};

describe('a Merkle tree', () => {
  it('has the root of RFC 6962 for every number of leaves up to 70', () => {
    for (let count = 0; count <= 70; count++) {
      expect(rootOf(leaves(count)).equals(rootByDefinition(leaves(count))), String(count)).toBe(true);
    }
    expect(rootOf([]).equals(EMPTY_ROOT)).toBe(true);
  });

  it('proves each of its leaves, and no other leaf, place or number of leaves', () => {
    for (const count of [1, 2, 3, 5, 8, 13, 33]) {
      const hashes = leaves(count);
      const root = rootOf(hashes);
      for (const [index, leaf] of hashes.entries()) {
        const proof = merkleProof(hashes, index);
        const proves = (of: Partial<Parameters<typeof rootFromProof>[0]>): boolean =>
          rootFromProof({ leaf, index, count, proof, ...of })?.equals(root) ?? false;
        expect(proves({})).toBe(true);
        expect(proves({ leaf: leafHash('another') })).toBe(false);
        expect(proves({ proof: [...proof, root] })).toBe(false);
        if (count > 1) {
          expect(proves({ index: (index + 1) % count })).toBe(false);
          expect(proves({ proof: proof.slice(1) })).toBe(false);
        }
      }
    }
  });

  it('refuses a leaf that it does not have', () => {
    expect(() => merkleProof(leaves(3), 3)).toThrow('no such leaf');
    expect(rootFromProof({ leaf: leafHash('x'), index: 3, count: 3, proof: [] })).toBeNull();
  });
});
