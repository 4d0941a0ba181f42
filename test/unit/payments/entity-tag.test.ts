import { describe, expect, it } from 'vitest';
import { entityTag, isNoneMatch, readIfMatch } from '../../../src/payments/entity-tag.js';

describe('If-Match', () => {
  it('is null when absent and the version of one strong tag', () => {
    expect(readIfMatch(undefined)).toBeNull();
    expect(readIfMatch(entityTag(7))).toBe(7);
    expect(readIfMatch(' "v2147483647" ')).toBe(2_147_483_647);
  });

  it.each([
    '',
    '*',
    'v7',
    '"7"',
    'W/"v7"',
    '"v7","v8"',
    '"v0"',
    '"v07"',
    '"v-1"',
    '"v1.0"',
    '"v2147483648"',
    '"v7" x',
  ])('of %j is refused: it must say which version was seen', (header) => {
    expect(() => readIfMatch(header)).toThrow('if_match_invalid');
  });
});

describe('If-None-Match', () => {
  it.each(['"v7"', 'W/"v7"', '"a", "v7"', '"v7","a"', '*', ' * '])('%j names version 7', (header) => {
    expect(isNoneMatch(header, 7)).toBe(true);
  });

  it.each([undefined, '', '"v70"', '"v6", "v8"', 'v7', '7', 'w/"v7"'])('%j does not', (header) => {
    expect(isNoneMatch(header, 7)).toBe(false);
  });
});
