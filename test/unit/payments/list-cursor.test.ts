import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { instantFromMicros } from '../../../src/domain/instant.js';
import { ListCursors } from '../../../src/payments/list-cursor.js';

const key = (fill: number): string => Buffer.alloc(32, fill).toString('base64');
const cursors = new ListCursors({ active: 'c2', keys: { c1: key(1), c2: key(2) } });
const position = { createdAt: instantFromMicros(1_795_000_000_123_456n), id: `pay_${'a'.repeat(32)}` };

describe('a list cursor', () => {
  it('carries microseconds and id there and back', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n }), (micros) => {
        const at = { ...position, createdAt: instantFromMicros(micros) };
        expect(cursors.read(cursors.write(at, 't', {}), 't', {})).toEqual(at);
      }),
    );
  });

  it('is read for the same filters in whatever order, and for no others', () => {
    const filter = { state: 'held', currency: 'EUR', createdAtFrom: instantFromMicros(5n) } as const;
    const cursor = cursors.write(position, 't', filter);
    const turned = {
      createdAtFrom: instantFromMicros(5n),
      currency: 'EUR',
      state: 'held',
      provider: undefined,
    } as const;
    expect(cursors.read(cursor, 't', turned as never)).toEqual(position);
    for (const other of [
      {},
      { ...filter, currency: 'USD' },
      { ...filter, createdAtFrom: instantFromMicros(6n) },
      { ...filter, provider: 'x' },
    ]) {
      expect(cursors.read(cursor, 't', other)).toBeNull();
    }
    expect(cursors.read(cursor, 'u', filter)).toBeNull();
  });

  it('under an older key is read as long as the key is there', () => {
    const old = new ListCursors({ active: 'c1', keys: { c1: key(1) } }).write(position, 't', {});
    expect(cursors.read(old, 't', {})).toEqual(position);
    expect(new ListCursors({ active: 'c2', keys: { c2: key(2) } }).read(old, 't', {})).toBeNull();
    expect(new ListCursors({ active: 'c1', keys: { c1: key(9) } }).read(old, 't', {})).toBeNull();
  });

  it('with any character changed is nobody’s', () => {
    const cursor = cursors.write(position, 't', {});
    for (let at = 0; at < cursor.length; at++) {
      for (const other of ['A', 'B', '_', '9']) {
        if (cursor[at] === other) continue;
        expect(cursors.read(cursor.slice(0, at) + other + cursor.slice(at + 1), 't', {})).toBeNull();
      }
    }
  });

  it('of any other text is refused without an error', () => {
    fc.assert(fc.property(fc.string({ maxLength: 600 }), (text) => cursors.read(text, 't', {}) === null));
    for (const text of ['', '=', `${cursors.write(position, 't', {})}=`, 'a'.repeat(100_000)]) {
      expect(cursors.read(text, 't', {})).toBeNull();
    }
  });
});
