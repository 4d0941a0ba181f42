import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { newUuid } from '../../../src/platform/ids.js';
import { sha1, sha256, sha256Hex } from '../../../src/platform/sha256.js';

describe('a new UUID', () => {
  it('has the form of version 7 and holds the given time', () => {
    const id = newUuid(1_798_102_800_123);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(parseInt(id.replace('-', '').slice(0, 12), 16)).toBe(1_798_102_800_123);
  });

  it('never repeats within one millisecond, also across refills of the random pool', () => {
    const ids = Array.from({ length: 5_000 }, () => newUuid(1));
    expect(new Set(ids).size).toBe(5_000);
  });
});

describe('the hashes', () => {
  it('agree with the library on text beyond ASCII and on bytes', () => {
    const text = 'naïve 🔑';
    expect(Buffer.from(sha256(text)).toString('hex')).toBe(createHash('sha256').update(text).digest('hex'));
    expect(sha256Hex(text)).toBe(createHash('sha256').update(text).digest('hex'));
    expect(sha256Hex(Buffer.from(text))).toBe(sha256Hex(text));
    expect(Buffer.from(sha1(Buffer.from('abc'))).toString('hex')).toBe(
      'a9993e364706816aba3e25717850c26c9cd0d89d',
    );
  });
});
