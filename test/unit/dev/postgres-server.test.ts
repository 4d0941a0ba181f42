import { describe, expect, it } from 'vitest';
import { sharedBuffers } from '../../../src/dev/postgres/postgres-server.js';

const GIB = 1_073_741_824;

describe('the cache of the local database server', () => {
  it.each([
    [0.5, '128MB'],
    [1, '128MB'],
    [2, '256MB'],
    [4, '512MB'],
    [64, '512MB'],
  ])('on a machine with %s GiB is %s', (gib, expected) => {
    expect(sharedBuffers(gib * GIB)).toBe(expected);
  });
});
