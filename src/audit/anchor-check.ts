import { anchorDigest, type AnchorSignature, type SignedAnchor } from './anchor.js';
import { isSignedBy, type AnchorPublicKeys } from './anchor-keys.js';
import type { BrokenLink } from './chain-check.js';

/** What is wrong with an anchor. */
export type AnchorFault =
  /** The number before it is missing. */
  | 'anchor_missing'
  /** It does not build on the anchor before. */
  | 'previous_differs'
  /** Its parts do not give its digest. */
  | 'digest_differs'
  /** Its leaves are not as many as it says. */
  | 'leaves_missing'
  /** Its leaves do not give its root. */
  | 'root_differs'
  | 'unsigned'
  /** A key that we trust did not make this signature. */
  | 'signature_forged'
  /** Neither it nor an anchor that builds on it is signed by a key that we trust. */
  | 'key_unknown'
  /** The copies have it, the database does not. */
  | 'missing_in_database'
  /** The database has another one than the copies. */
  | 'differs_from_copy'
  /** The database has it, the copies do not. */
  | 'copy_missing';

export interface BrokenAnchor {
  readonly anchorNo: number;
  readonly fault: AnchorFault;
}

/** Anything that a verification finds. */
export type Broken = BrokenLink | BrokenAnchor;

/** What was recomputed from the leaves. */
export interface FoundTree {
  readonly leaves: number;
  /** As hex. */
  readonly root: string;
}

export interface AnchorCheckOptions {
  readonly publicKeys: AnchorPublicKeys;
  readonly found: (broken: BrokenAnchor) => void;
  /** The number that must come first; null: any. */
  readonly firstNo: number | null;
  /** Whether every number must follow the one before. */
  readonly isSequence: boolean;
}

/**
 * Judges anchors in order. A signature covers all anchors before it, so an anchor of a key that is not
 * trusted any more, or not yet, is good if a later one that builds on it is signed by one that is.
 */
export class AnchorCheck {
  count = 0;
  #last: SignedAnchor | null = null;
  /** The first of the anchors that no trusted key vouches for so far. */
  #unproven: number | null = null;

  constructor(private readonly options: AnchorCheckOptions) {}

  get lastNo(): number | null {
    return this.#last?.no ?? null;
  }

  check(anchor: SignedAnchor, tree: FoundTree): void {
    this.count++;
    const fault = this.#place(anchor) ?? this.#content(anchor, tree) ?? this.#signatures(anchor);
    if (fault) this.options.found({ anchorNo: anchor.no, fault });
    this.#last = anchor;
  }

  /** One that was made after the anchor, by the next key. */
  later(signature: AnchorSignature): void {
    const last = this.#last;
    if (!last) return;
    const verdict = isSignedBy(last, signature, this.options.publicKeys);
    if (verdict === true) this.#unproven = null;
    if (verdict === false) this.options.found({ anchorNo: last.no, fault: 'signature_forged' });
  }

  end(): void {
    if (this.#unproven !== null) this.options.found({ anchorNo: this.#unproven, fault: 'key_unknown' });
    this.#unproven = null;
  }

  #place(anchor: SignedAnchor): AnchorFault | null {
    const last = this.#last;
    const expected = last ? last.no + 1 : this.options.firstNo;
    if (!this.options.isSequence || expected === null) return null;
    if (anchor.no !== expected) return 'anchor_missing';
    if (last && (anchor.previous !== last.digest || anchor.cut < last.cut)) return 'previous_differs';
    return null;
  }

  #content(anchor: SignedAnchor, tree: FoundTree): AnchorFault | null {
    if (anchorDigest(anchor) !== anchor.digest) return 'digest_differs';
    if (tree.leaves !== anchor.leaves) return 'leaves_missing';
    return tree.root === anchor.root ? null : 'root_differs';
  }

  #signatures(anchor: SignedAnchor): AnchorFault | null {
    if (anchor.signatures.length === 0) return 'unsigned';
    const verdicts = anchor.signatures.map((each) => isSignedBy(anchor, each, this.options.publicKeys));
    if (verdicts.includes(false)) return 'signature_forged';
    if (verdicts.includes(true)) this.#unproven = null;
    else this.#unproven ??= anchor.no;
    return null;
  }
}
