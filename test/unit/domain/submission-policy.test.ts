import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ABSENCE_SPACING_MS,
  CALL_DEADLINE_MS,
  CLASS_RULES,
  inFlightDelayMs,
  INQUIRY_LADDER_MS,
  isLadderSpent,
  LOOK_BEFORE_SEND_MS,
  MAX_ATTEMPTS,
  MAX_UNSENT_ATTEMPTS,
  nextInquiryMs,
  nextPollMs,
  retryDelayMs,
} from '../../../src/domain/submission-policy.js';

describe('the wait after a call that was proven not sent', () => {
  it('is 1 s doubling to 60 s', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((no) => retryDelayMs(no, null))).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000,
    ]);
  });

  it('is what the provider asked for when that is longer, and at most 15 min however absurd', () => {
    expect(retryDelayMs(1, 7_000)).toBe(7_000);
    expect(retryDelayMs(5, 7_000)).toBe(16_000);
    expect(retryDelayMs(1, 0)).toBe(1_000);
    expect(retryDelayMs(1, 86_400_000)).toBe(900_000);
    expect(retryDelayMs(1, Number.MAX_SAFE_INTEGER)).toBe(900_000);
  });

  it('is from 1 s to 15 min for every attempt and every word of the provider', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000 }), fc.option(fc.integer({ min: 0 })), (no, asked) => {
        expect(retryDelayMs(no, asked)).toBeGreaterThanOrEqual(1_000);
        expect(retryDelayMs(no, asked)).toBeLessThanOrEqual(900_000);
      }),
    );
  });
});

describe('the wait while a request is still executed', () => {
  it('is 2 s doubling to 30 s, the provider’s word within that', () => {
    expect([1, 2, 3, 4, 5, 6].map((no) => inFlightDelayMs(no, null))).toEqual([
      2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
    expect(inFlightDelayMs(1, 7_000)).toBe(7_000);
    expect(inFlightDelayMs(1, 86_400_000)).toBe(30_000);
    expect(inFlightDelayMs(3, 10)).toBe(8_000);
  });
});

describe('the classes', () => {
  it('send again only where a key or an object’s state keeps a second payment out', () => {
    const resending = Object.entries(CLASS_RULES).flatMap(([name, rules]) => (rules.resends ? [name] : []));
    expect(resending).toEqual(['A', 'B', 'T']);
  });

  it('look before every send only where nothing else keeps a second one out, and leave time to send', () => {
    const looking = Object.entries(CLASS_RULES).flatMap(([name, rules]) =>
      rules.looksBeforeSend ? [name] : [],
    );
    expect(looking).toEqual(['C']);
    expect(LOOK_BEFORE_SEND_MS).toBeLessThan(CALL_DEADLINE_MS / 2);
  });

  it('believe a silence only where they can ask, and never in two phases', () => {
    for (const [name, rules] of Object.entries(CLASS_RULES)) {
      if (rules.provesAbsence) expect(rules.looksUp).toBe(true);
      if (name === 'T') expect(rules.provesAbsence).toBe(false);
    }
  });

  it('can complete the absence proof within the ladder, for a flight of two minutes', () => {
    const landed = INQUIRY_LADDER_MS.filter((step) => step >= CALL_DEADLINE_MS + 120_000);
    expect((landed.at(-1) ?? 0) - (landed[0] ?? 0)).toBeGreaterThanOrEqual(ABSENCE_SPACING_MS);
  });
});

describe('the inquiry ladder', () => {
  it('is spent for sends when the last attempt ended beyond its last step', () => {
    expect(isLadderSpent(839_999, 1)).toBe(false);
    expect(isLadderSpent(840_000, 1)).toBe(true);
    expect(isLadderSpent(84_000, 10)).toBe(true);
  });

  it('has steps 5 s, 15 s, 1, 3 and 14 min after the first ambiguous end', () => {
    expect(INQUIRY_LADDER_MS).toEqual([5_000, 15_000, 60_000, 180_000, 840_000]);
    expect(nextInquiryMs(0, 1)).toBe(5_000);
    expect(nextInquiryMs(5_000, 1)).toBe(10_000);
    expect(nextInquiryMs(15_000, 1)).toBe(45_000);
    expect(nextInquiryMs(60_000, 1)).toBe(120_000);
    expect(nextInquiryMs(180_000, 1)).toBe(660_000);
  });

  it('ends with people when the last step has passed, within 15 min', () => {
    expect(nextInquiryMs(840_000, 1)).toBeNull();
    expect(nextInquiryMs(1e9, 1)).toBeNull();
    expect(INQUIRY_LADDER_MS.at(-1)).toBeLessThanOrEqual(900_000);
  });

  it('goes on where the clock stands when steps were missed', () => {
    expect(nextInquiryMs(100_000, 1)).toBe(80_000);
  });

  it('runs faster by the divisor of a rig', () => {
    expect(nextInquiryMs(0, 10)).toBe(500);
    expect(nextInquiryMs(84_000, 10)).toBeNull();
  });

  it('always comes to its end when each wait is kept', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 900_000 }),
        fc.integer({ min: 1, max: 1_000 }),
        (start, divisor) => {
          let since = start;
          for (let steps = 0; steps <= INQUIRY_LADDER_MS.length; steps++) {
            const wait = nextInquiryMs(since, divisor);
            if (wait === null) return;
            expect(wait).toBeGreaterThan(0);
            // Rounded to whole milliseconds, and never early.
            since += wait + 1;
          }
          expect.unreachable();
        },
      ),
    );
  });
});

describe('the polls of an acknowledged payment', () => {
  it('come after 30 s, then double with its age, at most an hour apart', () => {
    expect(nextPollMs(0, 1)).toBe(30_000);
    expect(nextPollMs(30_000, 1)).toBe(30_000);
    expect(nextPollMs(60_000, 1)).toBe(60_000);
    expect(nextPollMs(1_000_000, 1)).toBe(1_000_000);
    expect(nextPollMs(1e10, 1)).toBe(3_600_000);
  });

  it('stay in the hundreds over 30 days (TP-02)', () => {
    let polls = 0;
    for (let since = 0; since < 30 * 86_400_000; since += nextPollMs(since, 1)) polls++;
    expect(polls).toBeLessThan(800);
  });
});

describe('the numbers of the protocol', () => {
  it('are those that other limits are built on', () => {
    expect(MAX_ATTEMPTS).toBe(10);
    expect(MAX_UNSENT_ATTEMPTS).toBe(10);
    expect(CALL_DEADLINE_MS).toBe(25_000);
  });
});
