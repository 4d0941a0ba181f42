import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FOREIGN_BODY_BYTES, foreignBodyOf } from '../../../src/providers/foreign-body.js';

describe('what is kept of a foreign answer', () => {
  it('is the whole of a short one, and the first 4 KiB of 5 MB', () => {
    expect(foreignBodyOf('<html>Bad gateway</html>')).toBe('<html>Bad gateway</html>');
    expect(foreignBodyOf('x'.repeat(5_000_000))).toBe('x'.repeat(4_096));
  });

  it('ends between two characters, and holds no NUL', () => {
    expect(foreignBodyOf(`x${'ä'.repeat(4_096)}`)).toBe(`x${'ä'.repeat(2_047)}`);
    expect(foreignBodyOf('a\0b')).toBe('a?b');
  });

  it('is never longer than 4 KiB and is the beginning, whatever came', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 6_000, size: 'max' }), (body) => {
        const kept = foreignBodyOf(body);
        expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(FOREIGN_BODY_BYTES);
        expect(body.replaceAll('\0', '?').startsWith(kept)).toBe(true);
      }),
    );
  });
});
