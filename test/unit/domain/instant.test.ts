import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatInstant,
  instantFromMicros,
  instantFromPostgres,
  instantToPostgres,
  parseInstant,
  shiftInstant,
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  type Instant,
} from '../../../src/domain/instant.js';

const at = (text: string): Instant => {
  const instant = parseInstant(text);
  if (instant === null) throw new Error(`refused: ${text}`);
  return instant;
};
const anyInstant = fc
  .bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n })
  .map((micros) => instantFromMicros(micros));

describe('an instant read from a request', () => {
  it.each([
    ['2026-12-24T09:00:00Z', '2026-12-24T09:00:00.000000Z'],
    ['2026-12-24T09:00:00.1Z', '2026-12-24T09:00:00.100000Z'],
    ['2026-12-24T09:00:00.000001Z', '2026-12-24T09:00:00.000001Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000000Z'],
    ['1969-12-31T23:59:59.999999Z', '1969-12-31T23:59:59.999999Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000000Z'],
    ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999999Z'],
    ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000000Z'],
  ])('%s is %s', (text, shown) => {
    expect(formatInstant(at(text))).toBe(shown);
  });

  it('TM-02: the leap day of 2028 is kept', () => {
    expect(formatInstant(at('2028-02-29T12:00:00Z'))).toBe('2028-02-29T12:00:00.000000Z');
  });

  it.each([
    '2027-02-30T00:00:00Z',
    '2027-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2026-11-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-12-00T00:00:00Z',
    '2026-12-32T00:00:00Z',
  ])('TM-02: %s does not exist and is refused', (text) => {
    expect(parseInstant(text)).toBeNull();
  });

  it.each([
    '2026-W49',
    '2026-W49-1T00:00:00Z',
    '2026-335',
    '2026-12-01',
    '1',
    '',
    'Dec 1 2026',
    '2026-12-01T00:00:00Z ',
    ' 2026-12-01T00:00:00Z',
    '2026-12-01T00:00:00Z\n',
    '2026-12-01T00:00:00Zxyz',
    '2026-12-01t00:00:00Z',
    '2026-12-01T00:00:00z',
    '2026-12-01 00:00:00Z',
    '2026-12-01T00:00:00.1234567Z',
    '2026-12-01T00:00:00.123456789Z',
    '2026-12-01T00:00:00.Z',
    '2026-12-01T00:00:00,5Z',
    '2026-12-01T00:00:00+0100',
    '2026-12-01T00:00:00+01',
    '2026-12-01T00:00:00+1:00',
    '2026-12-01T00:00Z',
    '20261201T000000Z',
    '+02026-12-01T00:00:00Z',
    '-2026-12-01T00:00:00Z',
    '12026-12-01T00:00:00Z',
    '2026-12-01T00:00:00[UTC]',
    '２026-12-01T00:00:00Z',
    '٢026-12-01T00:00:00Z',
    'infinity',
    '-infinity',
    'now',
    'epoch',
    'NaN',
  ])('TM-03: "%s" is not the one form and is refused', (text) => {
    expect(parseInstant(text)).toBeNull();
  });

  it('TM-05: a number of seconds, milliseconds or microseconds as text is refused', () => {
    for (const text of ['1798102800', '1798102800000', '1798102800000000'])
      expect(parseInstant(text)).toBeNull();
  });

  it('TM-05: a past moment is an instant; the clock refuses it later, not the parser', () => {
    expect(formatInstant(at('2001-09-09T01:46:40Z'))).toBe('2001-09-09T01:46:40.000000Z');
  });

  it.each([
    ['2026-12-01T12:00:00+14:00', '2026-11-30T22:00:00.000000Z'],
    ['2026-12-01T12:00:00+14:01', '2026-11-30T21:59:00.000000Z'],
    ['2026-12-01T12:00:00-12:00', '2026-12-02T00:00:00.000000Z'],
    ['2026-12-01T12:00:00+23:59', '2026-11-30T12:01:00.000000Z'],
    ['2026-12-01T12:00:00-23:59', '2026-12-02T11:59:00.000000Z'],
    ['2026-12-01T12:00:00-00:00', '2026-12-01T12:00:00.000000Z'],
    ['2026-12-01T12:00:00+00:00', '2026-12-01T12:00:00.000000Z'],
  ])('TM-06: %s is turned to UTC as %s', (text, shown) => {
    expect(formatInstant(at(text))).toBe(shown);
  });

  it.each([
    '2026-12-01T12:00:00+24:00',
    '2026-12-01T12:00:00+25:00',
    '2026-12-01T12:00:00+10:60',
    '2026-12-01T24:00:00Z',
    '2026-12-01T23:60:00Z',
    '2026-12-01T23:59:60Z',
    '2016-12-31T23:59:60Z',
  ])('TM-06: %s is refused', (text) => {
    expect(parseInstant(text)).toBeNull();
  });

  it.each([
    ['9999-12-31T23:59:59.999999-00:01', null],
    ['9999-12-31T23:59:59+00:01', '9999-12-31T23:58:59.000000Z'],
    ['0001-01-01T00:00:00+00:01', null],
    ['0000-12-31T23:59:00-00:01', '0001-01-01T00:00:00.000000Z'],
    ['0000-06-01T00:00:00Z', null],
  ])('the bounds are of the UTC moment: %s', (text, shown) => {
    const instant = parseInstant(text);
    expect(instant === null ? null : formatInstant(instant)).toBe(shown);
  });

  it('TM-07: a local time without an offset is refused, in a gap as anywhere', () => {
    expect(parseInstant('2027-03-28T02:30:00')).toBeNull();
    expect(formatInstant(at('2027-03-28T02:30:00+01:00'))).toBe('2027-03-28T01:30:00.000000Z');
  });

  it('TM-07: the two readings of an overlapping local time are 3,600 s apart', () => {
    const summer = at('2027-10-31T02:30:00+02:00');
    const winter = at('2027-10-31T02:30:00+01:00');
    expect(winter - summer).toBe(3_600n * MICROS_PER_SECOND);
  });

  it('agrees with the engine on every millisecond that both can express', () => {
    fc.assert(
      fc.property(
        fc.date({
          min: new Date('0001-01-01T00:00:00Z'),
          max: new Date('9999-12-31T23:59:59.999Z'),
          noInvalidDate: true,
        }),
        (date) => {
          expect(at(date.toISOString())).toBe(BigInt(date.getTime()) * 1_000n);
        },
      ),
    );
  });

  it('never throws, whatever the text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9T:.Z+-]{0,40}$/)), (text) => {
        const instant = parseInstant(text);
        if (instant !== null) expect(parseInstant(formatInstant(instant))).toBe(instant);
      }),
    );
  });
});

describe('an instant written', () => {
  it('reads back as the same microsecond, from our own form and through Postgres', () => {
    fc.assert(
      fc.property(anyInstant, (instant) => {
        expect(at(formatInstant(instant))).toBe(instant);
        expect(instantFromPostgres(instantToPostgres(instant))).toBe(instant);
        expect(instantFromPostgres(formatInstant(instant))).toBe(instant);
      }),
    );
  });

  it('sorts as text in the order of time', () => {
    fc.assert(
      fc.property(anyInstant, anyInstant, (a, b) => {
        expect(formatInstant(a) < formatInstant(b)).toBe(a < b);
      }),
    );
  });
});

describe('an instant from Postgres', () => {
  it.each([
    ['2026-12-24 09:00:00.123456+00', '2026-12-24T09:00:00.123456Z'],
    ['2026-12-24 09:00:00+00', '2026-12-24T09:00:00.000000Z'],
    ['2026-12-24 09:00:00.5+00', '2026-12-24T09:00:00.500000Z'],
    ['2026-12-24 09:00:00+00:00', '2026-12-24T09:00:00.000000Z'],
  ])('%s is %s', (text, shown) => {
    expect(formatInstant(instantFromPostgres(text))).toBe(shown);
  });

  it.each([
    '2026-12-24 09:00:00',
    '2026-12-24 10:00:00+01',
    '2026-12-24 09:00:00+05:30',
    'infinity',
    '0001-01-01 00:00:00+00 BC',
    '10000-01-01 00:00:00+00',
    '',
  ])('%s fails loudly: the session or the column is not ours', (text) => {
    expect(() => instantFromPostgres(text)).toThrow('Postgres answered a time');
  });
});

describe('shifting an instant', () => {
  it('moves by exact microseconds and back', () => {
    const start = at('2027-03-27T23:00:00Z');
    expect(formatInstant(shiftInstant(start, MICROS_PER_DAY))).toBe('2027-03-28T23:00:00.000000Z');
    expect(shiftInstant(shiftInstant(start, -1n), 1n)).toBe(start);
  });

  it('refuses to leave the years 0001 to 9999', () => {
    expect(() => shiftInstant(at('9999-12-31T23:59:59.999999Z'), 1n)).toThrow('between the years');
    expect(() => instantFromMicros(-62_135_596_800_000_001n)).toThrow('between the years');
  });
});
