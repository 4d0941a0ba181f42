import type { RawRow } from '../persistence/copy-out.js';
import { Bytes, CanonicalText, FIELD, HASH_BYTES, int32, int64 } from './canonical-text.js';

/** What is wrong with a payment's history, first of all that is. */
export type ChainFault =
  /** The row's text does not give its hash: it, or the row before, was changed or swapped. */
  | 'hash_differs'
  /** The row before is missing. */
  | 'transition_missing'
  /** The head row says another version: the end was cut off, or more was added. */
  | 'head_version_differs'
  | 'head_state_differs'
  /** There are transitions or anchors of a payment that is gone. */
  | 'payment_missing'
  /** An anchor holds a version that is gone. */
  | 'anchored_version_missing'
  /** An anchor holds another hash of this version: the history was written anew. */
  | 'anchored_hash_differs'
  /** Old enough for an anchor and in none: it was slipped in. */
  | 'not_anchored'
  /** A field holds what the schema does not allow. */
  | 'unreadable';

export interface BrokenLink {
  readonly paymentId: string;
  /** The transition at which it shows. */
  readonly seq: number;
  readonly fault: ChainFault;
  /** The anchor that tells, where one does. */
  readonly anchorNo?: number;
}

/** The kinds of rows that the verification merges by payment and version. */
export const ROW_KIND = { transition: 1, head: 2, leaf: 3 } as const;

/**
 * Recomputes hash chains from rows that arrive in the order of payment and version. The canonical text
 * is put together here, from the columns: the functions in the database, which whoever changed the rows
 * may have changed too, take no part. Holds one payment's last row, whatever the number of rows, and
 * makes no object for a row: a million of them are judged in little more time than their hashes take.
 *
 * hash = SHA-256(hash of the row before, canonical text); the text is `payment_transition_canonical`'s.
 */
export class ChainCheck {
  /** Transitions whose hash was recomputed. */
  transitions = 0;
  payments = 0;
  readonly #text = new CanonicalText();
  readonly #payment = new Bytes(64);
  #seq = 0;
  readonly #state = new Bytes(32);
  readonly #hash = new Bytes(HASH_BYTES);
  /** Version of the head row; 0: none came yet. */
  #headVersion = 0;
  readonly #headState = new Bytes(32);
  /** Transitions that an anchor must hold, up to this version. */
  #anchorDue = 0;
  #anchored = 0;
  /** A leaf that came before the transition of the same version; 0: none. */
  #leafVersion = 0;
  #leafAnchor = 0;
  readonly #leafHash = new Bytes(HASH_BYTES);
  #broken: BrokenLink | null = null;
  #hasRows = false;

  /**
   * @param found called for the first broken link of each payment.
   * @param cut transactions below it must be anchored; 0: anchors are not looked at.
   */
  constructor(
    private readonly found: (link: BrokenLink) => void,
    private readonly cut: number,
  ) {}

  /** Takes the next row. */
  row(row: RawRow): void {
    if (!this.#hasRows || !this.#payment.isField(row, FIELD.payment)) this.#begin(row);
    const seq = int32(row.bytes, row.start[FIELD.seq] ?? 0);
    const kind = row.bytes[(row.start[FIELD.kind] ?? 0) + 1];
    if (kind === ROW_KIND.transition) this.#transition(row, seq);
    else if (kind === ROW_KIND.head) this.#takeHead(row, seq);
    else this.#takeLeaf(row, seq);
  }

  /** Ends the last payment. */
  end(): void {
    if (!this.#hasRows) return;
    this.#hasRows = false;
    this.#finish();
    if (this.#broken) this.found(this.#broken);
  }

  #begin(row: RawRow): void {
    this.end();
    this.#hasRows = true;
    this.payments++;
    this.#payment.take(row, FIELD.payment);
    this.#seq = 0;
    this.#state.clear();
    this.#hash.clear();
    this.#headVersion = 0;
    this.#anchorDue = 0;
    this.#anchored = 0;
    this.#leafVersion = 0;
    this.#broken = null;
  }

  #takeHead(row: RawRow, version: number): void {
    this.#headVersion = version;
    this.#headState.take(row, FIELD.to);
  }

  #transition(row: RawRow, seq: number): void {
    this.transitions++;
    if (seq !== this.#seq + 1) this.#break(this.#seq + 1, 'transition_missing');
    if (!this.#text.write(row, seq, this.#hash)) this.#break(seq, 'unreadable');
    else if (!this.#text.hasHash(row)) this.#break(seq, 'hash_differs');
    this.#seq = seq;
    this.#state.take(row, FIELD.to);
    this.#hash.take(row, FIELD.hash);
    if (this.cut > 0 && int64(row, FIELD.xact) < this.cut) this.#anchorDue = seq;
    if (this.#leafVersion > 0) this.#compareLeaf();
  }

  #takeLeaf(row: RawRow, version: number): void {
    if (this.#leafVersion > 0) this.#compareLeaf();
    if (version > this.#anchored) this.#anchored = version;
    this.#leafVersion = version;
    this.#leafHash.take(row, FIELD.hash);
    this.#leafAnchor = int64(row, FIELD.xact);
    if (this.#seq >= version) this.#compareLeaf();
  }

  /** Rows of one version come in any order; those of a later one show that a transition is gone. */
  #compareLeaf(): void {
    const version = this.#leafVersion;
    if (version === 0) return;
    this.#leafVersion = 0;
    if (this.#seq !== version) this.#break(version, 'anchored_version_missing', this.#leafAnchor);
    else if (!this.#hash.equals(this.#leafHash))
      this.#break(version, 'anchored_hash_differs', this.#leafAnchor);
  }

  #finish(): void {
    this.#compareLeaf();
    const head = this.#headVersion;
    if (head === 0) return this.#missing();
    if (head !== this.#seq) return this.#break(Math.min(head, this.#seq) + 1, 'head_version_differs');
    if (!this.#headState.equals(this.#state)) return this.#break(this.#seq, 'head_state_differs');
    if (this.#anchorDue > this.#anchored) this.#break(this.#anchored + 1, 'not_anchored');
  }

  /** Nothing but anchors, or a history without its head: what broke first is that the payment is gone. */
  #missing(): void {
    const anchorNo = this.#broken?.anchorNo;
    if (this.#seq === 0) this.#broken = null;
    this.#break(Math.max(1, this.#seq), 'payment_missing', anchorNo);
  }

  #break(seq: number, fault: ChainFault, anchorNo?: number): void {
    const paymentId = this.#payment.text();
    this.#broken ??= { paymentId, seq, fault, ...(anchorNo === undefined ? {} : { anchorNo }) };
  }
}
