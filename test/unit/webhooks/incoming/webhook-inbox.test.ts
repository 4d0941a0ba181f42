import { describe, expect, it } from 'vitest';
import { waitAfterTries } from '../../../../src/webhooks/incoming/webhook-inbox.js';

describe('an event that could not be processed', () => {
  it('waits for 1 s, doubling to an hour, however often it was tried', () => {
    expect([1, 2, 3, 4, 12, 13, 100, 2_000_000].map(waitAfterTries)).toEqual([
      1_000, 2_000, 4_000, 8_000, 2_048_000, 3_600_000, 3_600_000, 3_600_000,
    ]);
  });
});
