import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ChainCheck, ROW_KIND, type BrokenLink } from '../../../src/audit/chain-check.js';
import type { RawRow } from '../../../src/persistence/copy-out.js';

type Field = Buffer | null;
const text = (value: string | null): Field => (value === null ? null : Buffer.from(value, 'utf8'));
function number(value: bigint, size: 2 | 4 | 8): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes.subarray(8 - size);
}

/** A row as Postgres sends it: each field behind its length. */
function rowOf(fields: readonly Field[]): RawRow {
  const parts: Buffer[] = [];
  const start = new Int32Array(32);
  const length = new Int32Array(32);
  let at = 0;
  fields.forEach((field, i) => {
    at += 4;
    start[i] = at;
    length[i] = field?.length ?? -1;
    parts.push(Buffer.alloc(4), field ?? Buffer.alloc(0));
    at += field?.length ?? 0;
  });
  return { bytes: Buffer.concat(parts), start, length };
}

interface Step {
  readonly payment: string;
  readonly seq: number;
  readonly actor?: string;
  /** Microseconds since 2000. */
  readonly at?: bigint;
}
const shown = (us: bigint): string => {
  const ms = Date.UTC(2000, 0, 1) + Number(us / 1_000n);
  return `${new Date(ms).toISOString().slice(0, 23)}${String(us % 1_000n).padStart(3, '0')}Z`;
};

/** Hashes as anybody computes them, apart from the product. */
function transition({ payment, seq, actor = 'person:é', at = 847_000_000_123_456n }: Step, previous: Buffer) {
  const lines = [
    'transition/v1',
    payment,
    seq,
    't',
    seq === 1 ? 'none' : 'a',
    'a',
    'cause',
    actor,
    shown(at),
    '{}',
  ];
  const hash = createHash('sha256').update(previous).update(lines.join('\n'), 'utf8').digest();
  const row = rowOf([
    number(BigInt(ROW_KIND.transition), 2), text(payment), number(BigInt(seq), 4), text('t'),
    text(seq === 1 ? null : 'a'), text('a'), text('cause'), text(actor), number(at, 8), text('{}'), hash, number(5n, 8),
  ]); // prettier-ignore
  return { row, hash };
}
const head = (payment: string, version: number, state = 'a'): RawRow =>
  rowOf([number(BigInt(ROW_KIND.head), 2), text(payment), number(BigInt(version), 4), null, null, text(state),
    null, null, null, null, null, null]); // prettier-ignore

function check(feed: (take: (row: RawRow) => void) => void): { broken: BrokenLink[]; done: ChainCheck } {
  const broken: BrokenLink[] = [];
  const done = new ChainCheck((link) => broken.push(link), 0);
  feed((row) => done.row(row));
  done.end();
  return { broken, done };
}

function history(payment: string, count: number, take: (row: RawRow) => void, at?: bigint): void {
  let previous: Buffer = Buffer.alloc(0);
  for (let seq = 1; seq <= count; seq++) {
    const { row, hash } = transition({ payment, seq, ...(at === undefined ? {} : { at }) }, previous);
    previous = hash;
    take(row);
  }
  take(head(payment, count));
}

describe('the check of chains', () => {
  it('reproduces hashes of times with and without a fraction, at the ends of days and years', () => {
    const day = 86_400_000_000n;
    for (const at of [0n, 1n, day - 1n, day, 847_000_000_000_000n, 9_999n * day + 3_599_999_999n]) {
      expect(check((take) => history('pay_x', 12, take, at)).broken, shown(at)).toEqual([]);
    }
  });

  it('keeps nothing of the rows that it has seen', () => {
    const { broken, done } = check((take) => {
      for (let i = 0; i < 5_000; i++) history(`pay_${i}`, 4, take);
    });
    expect(broken).toEqual([]);
    expect(done).toMatchObject({ transitions: 20_000, payments: 5_000 });
    // Whatever it holds is of fixed size: none of its members grew with the rows.
    for (const value of Object.values(done)) expect(Array.isArray(value) || value instanceof Map).toBe(false);
  });

  it('names the first bad link of each payment, once', () => {
    const { broken } = check((take) => {
      const first = transition({ payment: 'pay_1', seq: 1 }, Buffer.alloc(0));
      take(first.row);
      take(transition({ payment: 'pay_1', seq: 2, actor: 'x' }, Buffer.alloc(32)).row);
      take(transition({ payment: 'pay_1', seq: 3 }, Buffer.alloc(32, 1)).row);
      take(head('pay_1', 3));
      history('pay_2', 2, take);
      take(transition({ payment: 'pay_3', seq: 1 }, Buffer.alloc(0)).row);
      take(head('pay_3', 1, 'b'));
      take(transition({ payment: 'pay_4', seq: 2 }, Buffer.alloc(0)).row);
      take(head('pay_4', 2));
      take(transition({ payment: 'pay_5', seq: 1 }, Buffer.alloc(0)).row);
    });
    expect(broken).toEqual([
      { paymentId: 'pay_1', seq: 2, fault: 'hash_differs' },
      { paymentId: 'pay_3', seq: 1, fault: 'head_state_differs' },
      { paymentId: 'pay_4', seq: 1, fault: 'transition_missing' },
      { paymentId: 'pay_5', seq: 1, fault: 'payment_missing' },
    ]);
  });

  it('takes a text longer than any before, and a short one after it', () => {
    const { broken } = check((take) => {
      const long = transition({ payment: 'pay_1', seq: 1, actor: 'x'.repeat(50_000) }, Buffer.alloc(0));
      take(long.row);
      take(transition({ payment: 'pay_1', seq: 2 }, long.hash).row);
      take(head('pay_1', 2));
    });
    expect(broken).toEqual([]);
  });
});
