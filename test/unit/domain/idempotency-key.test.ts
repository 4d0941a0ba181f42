import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseIdempotencyKey } from '../../../src/domain/idempotency-key.js';

const read = (...values: string[]): string => {
  const parsed = parseIdempotencyKey(values);
  return parsed.kind === 'key' ? `key ${parsed.key}` : parsed.kind;
};

describe('an idempotency key', () => {
  it('ID-06: 255 visible ASCII characters are a key, 256 are not', () => {
    expect(read('k'.repeat(255))).toBe(`key ${'k'.repeat(255)}`);
    expect(read('k'.repeat(256))).toBe('invalid');
  });

  it('ID-06: length is counted without the quotes and without the outer spaces', () => {
    expect(read(`"${'k'.repeat(255)}"`)).toBe(`key ${'k'.repeat(255)}`);
    expect(read(`  ${'k'.repeat(255)}  `)).toBe(`key ${'k'.repeat(255)}`);
    expect(read(`"${'k'.repeat(256)}"`)).toBe('invalid');
  });

  it.each(['ключ', '🔑', 'e\u0301', '\u00e9', 'k\u00a0', '\u200bk', 'ｋ'])(
    'ID-06: "%s" is not ASCII and is refused',
    (value) => {
      expect(read(value)).toBe('invalid');
    },
  );

  it('ID-08: bare, quoted and outer-spaced k are one key', () => {
    for (const value of ['k', '"k"', ' k', 'k ', '  k  ', ' "k" ', '\tk\t'])
      expect(read(value)).toBe('key k');
  });

  it('ID-08: leading zeros and letter case make other keys', () => {
    const keys = ['k', 'K', '0k', '00k', 'k0'].map((value) => read(value));
    expect(new Set(keys).size).toBe(5);
  });

  it.each([
    ['an inner space', 'a b'],
    ['an inner space in quotes', '"a b"'],
    ['a space inside the quotes', '" k"'],
    ['an inner tab', 'a\tb'],
    ['nothing', ''],
    ['only spaces', '   '],
    ['empty quotes', '""'],
    ['a carriage return and line feed', 'a\r\nb'],
    ['a trailing line feed', 'k\n'],
    ['NUL', 'a\0b'],
    ['DEL', 'a\x7fb'],
    ['10,000 characters', 'k'.repeat(10_000)],
    ['an opening quote alone', '"k'],
    ['a closing quote alone', 'k"'],
    ['one quote', '"'],
    ['a quote in quotes without a backslash', '"a"b"'],
    ['a backslash that escapes nothing', '"a\\b"'],
    ['a backslash at the end of the quotes', '"k\\"'],
  ])('ID-08: %s is refused', (_what, value) => {
    expect(read(value)).toBe('invalid');
  });

  it('ID-08: two headers are refused, even when equal; none is missing', () => {
    expect(read('k', 'k')).toBe('invalid');
    expect(read('k', 'l')).toBe('invalid');
    expect(read()).toBe('missing');
  });

  it('a quote or a backslash inside is the same key bare and escaped', () => {
    expect(read('a"b')).toBe('key a"b');
    expect(read('"a\\"b"')).toBe('key a"b');
    expect(read('a\\b')).toBe(read('"a\\\\b"'));
  });

  it('a comma does not split one header into two keys', () => {
    expect(read('a,b')).toBe('key a,b');
  });

  it('whatever is read is 1 to 255 visible ASCII characters and reads back as itself when quoted', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: 'binary' })), (value) => {
        const parsed = parseIdempotencyKey([value]);
        if (parsed.kind !== 'key') return;
        expect(parsed.key).toMatch(/^[!-~]{1,255}$/);
        const quoted = `"${parsed.key.replace(/["\\]/g, '\\$&')}"`;
        expect(parseIdempotencyKey([quoted])).toEqual(parsed);
      }),
    );
  });
});
