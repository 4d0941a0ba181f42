import { hash } from 'node:crypto';
import type { RawRow } from '../persistence/copy-out.js';

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

/** The kinds of rows that `CHAIN_COLUMNS` merges by payment and version. */
export const ROW_KIND = { transition: 1, head: 2, leaf: 3 } as const;

const FIELD = {
  kind: 0, payment: 1, seq: 2, tenant: 3, from: 4, to: 5, cause: 6, actor: 7, at: 8, detail: 9, hash: 10, xact: 11,
} as const; // prettier-ignore
/** In the order of the text that is hashed; the number and the time are written between them. */
const AFTER_SEQ = [FIELD.tenant, FIELD.from, FIELD.to, FIELD.cause, FIELD.actor] as const;

const HASH_BYTES = 32;
const PREFIX = Buffer.from('transition/v1\n');
const NONE = Buffer.from('none');
const LINE_FEED = 10;
const DAY_US = 86_400_000_000;
/** Postgres counts microseconds from 2000-01-01 in UTC. */
const EPOCH_MS = Date.UTC(2000, 0, 1);
/** Every text of the table fits: names, ids, and details of a few hundred bytes; longer ones grow it. */
const FIRST_TEXT_BYTES = 16_384;

/**
 * Recomputes hash chains from rows that arrive in the order of payment and version. The canonical text
 * is put together here, from the columns: the functions in the database, which whoever changed the rows
 * may have changed too, take no part. Holds one payment's last row, whatever the number of rows.
 *
 * hash = SHA-256(hash of the row before, canonical text); the text is `payment_transition_canonical`'s.
 */
export class ChainCheck {
  /** Transitions whose hash was recomputed. */
  transitions = 0;
  payments = 0;
  readonly #text = new TextBuffer();
  #payment = '';
  #seq = 0;
  #state = '';
  #hash = '';
  #head: { readonly version: number; readonly state: string } | null = null;
  /** Transitions that an anchor must hold, up to this version. */
  #anchorDue = 0;
  #anchored = 0;
  /** Leaves that came before the transition of the same version. */
  #leaf: { readonly version: number; readonly hash: string; readonly anchorNo: number } | null = null;
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
    const { bytes, start, length } = row;
    const at = start[FIELD.payment] ?? 0;
    const payment = bytes.toString('latin1', at, at + (length[FIELD.payment] ?? 0));
    if (payment !== this.#payment || !this.#hasRows) this.#begin(payment);
    const seq = bytes.readInt32BE(start[FIELD.seq]);
    const kind = bytes[(start[FIELD.kind] ?? 0) + 1];
    if (kind === ROW_KIND.transition) this.#transition(row, seq);
    else if (kind === ROW_KIND.head) this.#head = { version: seq, state: textOf(row, FIELD.to) };
    else this.#takeLeaf(seq, hashOf(row), numberOf(row, FIELD.xact));
  }

  /** Ends the last payment. */
  end(): void {
    if (!this.#hasRows) return;
    this.#hasRows = false;
    this.#finish();
    if (this.#broken) this.found(this.#broken);
  }

  #begin(payment: string): void {
    this.end();
    this.#hasRows = true;
    this.payments++;
    this.#payment = payment;
    this.#seq = 0;
    this.#state = '';
    this.#hash = '';
    this.#head = null;
    this.#anchorDue = 0;
    this.#anchored = 0;
    this.#leaf = null;
    this.#broken = null;
  }

  #transition(row: RawRow, seq: number): void {
    this.transitions++;
    if (seq !== this.#seq + 1) this.#break(this.#seq + 1, 'transition_missing');
    const stored = hashOf(row);
    if (!this.#text.write(row, seq, this.#hash)) this.#break(seq, 'unreadable');
    else if (this.#text.hash() !== stored) this.#break(seq, 'hash_differs');
    this.#seq = seq;
    this.#state = textOf(row, FIELD.to);
    this.#hash = stored;
    if (numberOf(row, FIELD.xact) < this.cut) this.#anchorDue = seq;
    if (this.#leaf) this.#compareLeaf();
  }

  #takeLeaf(version: number, leafHash: string, anchorNo: number): void {
    if (this.#leaf) this.#compareLeaf();
    this.#anchored = Math.max(this.#anchored, version);
    this.#leaf = { version, hash: leafHash, anchorNo };
    if (this.#seq >= version) this.#compareLeaf();
  }

  /** Rows of one version come in any order; those of a later one show that a transition is gone. */
  #compareLeaf(): void {
    const leaf = this.#leaf;
    if (!leaf) return;
    this.#leaf = null;
    if (this.#seq !== leaf.version) this.#break(leaf.version, 'anchored_version_missing', leaf.anchorNo);
    else if (this.#hash !== leaf.hash) this.#break(leaf.version, 'anchored_hash_differs', leaf.anchorNo);
  }

  #finish(): void {
    this.#compareLeaf();
    const head = this.#head;
    if (head === null) return this.#missing();
    if (head.version !== this.#seq) {
      return this.#break(Math.min(head.version, this.#seq) + 1, 'head_version_differs');
    }
    if (head.state !== this.#state) return this.#break(this.#seq, 'head_state_differs');
    if (this.#anchorDue > this.#anchored) this.#break(this.#anchored + 1, 'not_anchored');
  }

  /** Nothing but anchors, or a history without its head: what broke first is that the payment is gone. */
  #missing(): void {
    const anchorNo = this.#broken?.anchorNo;
    if (this.#seq === 0) this.#broken = null;
    this.#break(Math.max(1, this.#seq), 'payment_missing', anchorNo);
  }

  #break(seq: number, fault: ChainFault, anchorNo?: number): void {
    this.#broken ??= {
      paymentId: this.#payment,
      seq,
      fault,
      ...(anchorNo === undefined ? {} : { anchorNo }),
    };
  }
}

function textOf({ bytes, start, length }: RawRow, field: number): string {
  const at = start[field] ?? 0;
  return bytes.toString('latin1', at, at + Math.max(0, length[field] ?? 0));
}

/** 32 bytes, each as one character: comparing texts is cheaper than comparing buffers. */
function hashOf(row: RawRow): string {
  return textOf(row, FIELD.hash);
}

/** A bigint that fits a float exactly: transactions and microseconds do for centuries. */
function numberOf({ bytes, start, length }: RawRow, field: number): number {
  if (length[field] !== 8) return Number.NaN;
  const at = start[field] ?? 0;
  return bytes.readInt32BE(at) * 4_294_967_296 + bytes.readUInt32BE(at + 4);
}

/** The bytes that are hashed for one row, in a buffer that is used again and again. */
class TextBuffer {
  #bytes = Buffer.allocUnsafe(FIRST_TEXT_BYTES);
  #used = 0;
  #day = Number.NaN;
  #dayText = '';

  /** @returns false when a field that is never null is, or the time is none. */
  write(row: RawRow, seq: number, previous: string): boolean {
    const { length } = row;
    let size = HASH_BYTES + 256;
    for (let i: number = FIELD.payment; i <= FIELD.detail; i++) size += Math.max(0, length[i] ?? 0);
    if (size > this.#bytes.length) this.#bytes = Buffer.allocUnsafe(size * 2);
    this.#used = this.#bytes.write(previous, 0, 'latin1');
    this.#used += PREFIX.copy(this.#bytes, this.#used);
    if (!this.#field(row, FIELD.payment)) return false;
    this.#ascii(String(seq));
    for (const field of AFTER_SEQ) {
      if (field === FIELD.from && length[field] === -1) this.#none();
      else if (!this.#field(row, field)) return false;
    }
    return this.#time(numberOf(row, FIELD.at)) && this.#last(row);
  }

  /** SHA-256 of what was written, each byte as one character. */
  hash(): string {
    return hash('sha256', this.#bytes.subarray(0, this.#used), 'latin1' as 'hex');
  }

  /** A field and a line feed. Copied byte by byte: they are short, and a call costs more than its bytes. */
  #field({ bytes, start, length }: RawRow, field: number): boolean {
    const size = length[field] ?? -1;
    if (size < 0) return false;
    const from = start[field] ?? 0;
    const target = this.#bytes;
    let used = this.#used;
    for (let i = from; i < from + size; i++) target[used++] = bytes[i] ?? 0;
    target[used++] = LINE_FEED;
    this.#used = used;
    return true;
  }

  #last(row: RawRow): boolean {
    const isWhole = this.#field(row, FIELD.detail);
    this.#used--;
    return isWhole;
  }

  #none(): void {
    this.#used += NONE.copy(this.#bytes, this.#used);
    this.#bytes[this.#used++] = LINE_FEED;
  }

  #ascii(text: string): void {
    this.#used += this.#bytes.write(text, this.#used, 'latin1');
    this.#bytes[this.#used++] = LINE_FEED;
  }

  /** As to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') in UTC. */
  #time(us: number): boolean {
    if (!Number.isSafeInteger(us)) return false;
    const day = Math.floor(us / DAY_US);
    if (day !== this.#day) {
      this.#day = day;
      this.#dayText = new Date(EPOCH_MS + day * 86_400_000).toISOString().slice(0, 11);
      if (this.#dayText.length !== 11 || this.#dayText[10] !== 'T') return false;
    }
    const inDay = us - day * DAY_US;
    const seconds = Math.floor(inDay / 1_000_000);
    const two = (value: number): string => (value < 10 ? `0${value}` : String(value));
    const hour = Math.floor(seconds / 3_600);
    const minute = Math.floor(seconds / 60) % 60;
    const fraction = String(inDay - seconds * 1_000_000).padStart(6, '0');
    this.#ascii(`${this.#dayText}${two(hour)}:${two(minute)}:${two(seconds % 60)}.${fraction}Z`);
    return true;
  }
}
