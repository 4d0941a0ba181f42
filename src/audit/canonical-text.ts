import { hash } from 'node:crypto';
import type { RawRow } from '../persistence/copy-out.js';

/** Where each column stands in the rows of the verification. */
export const FIELD = {
  kind: 0, payment: 1, seq: 2, tenant: 3, from: 4, to: 5, cause: 6, actor: 7, at: 8, detail: 9, hash: 10, xact: 11,
} as const; // prettier-ignore
/** In the order of the text that is hashed; the number and the time are written between them. */
const AFTER_SEQ = [FIELD.tenant, FIELD.from, FIELD.to, FIELD.cause, FIELD.actor] as const;

export const HASH_BYTES = 32;
const PREFIX = Buffer.from('transition/v1\n');
const NONE = Buffer.from('none\n');
const ZULU = Buffer.from('Z\n');
const ZERO = 48;
const COLON = 58;
const POINT = 46;
const LINE_FEED = 10;
/** Days whose text is kept. */
const MOST_DAYS = 4_096;
const DAY_US = 86_400_000_000;
/** Postgres counts microseconds from 2000-01-01 in UTC. */
const EPOCH_MS = Date.UTC(2000, 0, 1);
/** Every text of the table fits: names, ids, and details of a few hundred bytes; longer ones grow it. */
const FIRST_TEXT_BYTES = 16_384;

/** Big-endian, without the driver's checks for each byte. */
export function int32(bytes: Buffer, at: number): number {
  return (
    ((bytes[at] ?? 0) << 24) |
    ((bytes[at + 1] ?? 0) << 16) |
    ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)
  );
}

/** A bigint that fits a float exactly: transactions and microseconds do for centuries. NaN: null. */
export function int64({ bytes, start, length }: RawRow, field: number): number {
  if (length[field] !== 8) return Number.NaN;
  const at = start[field] ?? 0;
  return int32(bytes, at) * 4_294_967_296 + (int32(bytes, at + 4) >>> 0);
}

/** A copy of a field, in bytes that are used again: the driver's own buffer goes with the row. */
export class Bytes {
  bytes: Buffer;
  length = 0;

  constructor(size: number) {
    this.bytes = Buffer.alloc(size);
  }

  clear(): void {
    this.length = 0;
  }

  take({ bytes, start, length }: RawRow, field: number): void {
    const size = Math.max(0, length[field] ?? 0);
    if (size > this.bytes.length) this.bytes = Buffer.alloc(size);
    const from = start[field] ?? 0;
    for (let i = 0; i < size; i++) this.bytes[i] = bytes[from + i] ?? 0;
    this.length = size;
  }

  isField({ bytes, start, length }: RawRow, field: number): boolean {
    if (length[field] !== this.length) return false;
    const from = start[field] ?? 0;
    // Ids differ most at their end.
    for (let i = this.length - 1; i >= 0; i--) if (bytes[from + i] !== this.bytes[i]) return false;
    return true;
  }

  equals(other: Bytes): boolean {
    if (other.length !== this.length) return false;
    for (let i = 0; i < this.length; i++) if (other.bytes[i] !== this.bytes[i]) return false;
    return true;
  }

  text(): string {
    return this.bytes.toString('utf8', 0, this.length);
  }
}

/** The bytes that are hashed for one row. */
export class CanonicalText {
  #bytes = Buffer.alloc(FIRST_TEXT_BYTES);
  #used = 0;
  /** Views of the first n bytes: most texts have one of a few lengths. */
  #views: (Buffer | undefined)[] = [];
  /** Rows of one payment lie days apart, and so do those of the next. */
  readonly #days = new Map<number, Buffer>();

  /** @returns false when a field that is never null is, or the time is none. */
  write(row: RawRow, seq: number, previous: Bytes): boolean {
    const { length } = row;
    let size = HASH_BYTES + 256;
    for (let i: number = FIELD.payment; i <= FIELD.detail; i++) size += Math.max(0, length[i] ?? 0);
    if (size > this.#bytes.length) {
      this.#bytes = Buffer.alloc(size * 2);
      this.#views = [];
    }
    this.#used = 0;
    this.#copy(previous.bytes, 0, previous.length);
    this.#copy(PREFIX, 0, PREFIX.length);
    if (!this.#field(row, FIELD.payment)) return false;
    this.#number(seq);
    for (const field of AFTER_SEQ) {
      if (field === FIELD.from && length[field] === -1) this.#copy(NONE, 0, NONE.length);
      else if (!this.#field(row, field)) return false;
    }
    if (!this.#time(int64(row, FIELD.at)) || !this.#field(row, FIELD.detail)) return false;
    // No line feed behind the last line.
    this.#used--;
    return true;
  }

  /** Whether SHA-256 of what was written is the row's hash. */
  hasHash({ bytes, start, length }: RawRow): boolean {
    if (length[FIELD.hash] !== HASH_BYTES) return false;
    const view = (this.#views[this.#used] ??= this.#bytes.subarray(0, this.#used));
    // As text, one character for each byte: a buffer of its own for each hash would cost more than the hash.
    const digest = hash('sha256', view, 'latin1' as 'hex');
    const from = start[FIELD.hash] ?? 0;
    for (let i = 0; i < HASH_BYTES; i++) if (digest.charCodeAt(i) !== bytes[from + i]) return false;
    return true;
  }

  /** Byte by byte: the fields are short, and a call costs more than its bytes. */
  #copy(source: Buffer, from: number, size: number): void {
    const target = this.#bytes;
    let used = this.#used;
    for (let i = from; i < from + size; i++) target[used++] = source[i] ?? 0;
    this.#used = used;
  }

  /** A field and a line feed. */
  #field({ bytes, start, length }: RawRow, field: number): boolean {
    const size = length[field] ?? -1;
    if (size < 0) return false;
    this.#copy(bytes, start[field] ?? 0, size);
    this.#bytes[this.#used++] = LINE_FEED;
    return true;
  }

  /** A positive number and a line feed. */
  #number(value: number): void {
    let digits = 1;
    for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) digits++;
    this.#digits(value, digits);
    this.#bytes[this.#used++] = LINE_FEED;
  }

  #digits(value: number, count: number): void {
    let rest = value;
    for (let i = this.#used + count - 1; i >= this.#used; i--) {
      this.#bytes[i] = ZERO + (rest % 10);
      // Whole numbers below 2^31.
      rest = (rest / 10) | 0;
    }
    this.#used += count;
  }

  /** As to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') in UTC, and a line feed. */
  #time(us: number): boolean {
    if (!Number.isSafeInteger(us)) return false;
    const day = Math.floor(us / DAY_US);
    const dayText = this.#days.get(day) ?? this.#readDay(day);
    if (dayText === null) return false;
    const inDay = us - day * DAY_US;
    const seconds = Math.floor(inDay / 1_000_000);
    this.#copy(dayText, 0, dayText.length);
    this.#digits(Math.floor(seconds / 3_600), 2);
    this.#bytes[this.#used++] = COLON;
    this.#digits(Math.floor(seconds / 60) % 60, 2);
    this.#bytes[this.#used++] = COLON;
    this.#digits(seconds % 60, 2);
    this.#bytes[this.#used++] = POINT;
    this.#digits(inDay - seconds * 1_000_000, 6);
    this.#copy(ZULU, 0, ZULU.length);
    return true;
  }

  /** Years of four digits only: any other is no time of this service. */
  #readDay(day: number): Buffer | null {
    const ms = EPOCH_MS + day * 86_400_000;
    if (!(ms >= Date.UTC(1970, 0, 1) && ms < Date.UTC(9999, 0, 1))) return null;
    if (this.#days.size >= MOST_DAYS) this.#days.clear();
    const text = Buffer.from(new Date(ms).toISOString().slice(0, 11));
    this.#days.set(day, text);
    return text;
  }
}
