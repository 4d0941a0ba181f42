import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CURRENCY_CODES } from '../../../../src/domain/currency.js';
import { DomainError } from '../../../../src/domain/domain-error.js';
import { formatInstant, parseInstant } from '../../../../src/domain/instant.js';
import { fieldErrors } from '../../../../src/http/field-errors.js';
import { parseStrictJson } from '../../../../src/http/strict-json.js';
import { CreatePayment } from '../../../../src/payments/schemas/create-payment.schema.js';
import { ReschedulePayment } from '../../../../src/payments/schemas/reschedule-payment.schema.js';

const VALID = {
  amount: 1999,
  currency: 'EUR',
  destination: 'acct_1032D82eZvKYlo2C',
  execute_at: '2026-12-24T09:00:00Z',
};

/** As a body comes in: text, then our parser, then the schema. Faults as `pointer code`. */
function faultsOf(body: unknown): readonly string[] {
  const value = parseStrictJson(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), 8);
  const parsed = CreatePayment.safeParse(value);
  return parsed.success
    ? []
    : fieldErrors(parsed.error, value).map(({ pointer, code }) => `${pointer} ${code}`);
}
const withMember = (name: string, value: unknown): readonly string[] => faultsOf({ ...VALID, [name]: value });

describe('the body of a create', () => {
  it('with every member becomes a command in the words of the domain', () => {
    const command = CreatePayment.parse({
      ...VALID,
      not_after: '2026-12-24T19:00:00+01:00',
      reference: 'invoice-2041',
      description: 'December payout',
      metadata: { team: 'north', constructor: 'x' },
      provider: 'stripe',
    });
    expect(command).toEqual({
      money: { amountMinor: 1999n, currency: 'EUR' },
      destination: 'acct_1032D82eZvKYlo2C',
      executeAt: parseInstant('2026-12-24T09:00:00Z'),
      notAfter: parseInstant('2026-12-24T18:00:00Z'),
      reference: 'invoice-2041',
      description: 'December payout',
      metadata: { team: 'north', constructor: 'x' },
      provider: 'stripe',
    });
  });

  it('leaves absent what was left out', () => {
    expect(Object.keys(CreatePayment.parse(VALID)).sort()).toEqual(['destination', 'executeAt', 'money']);
  });

  it('SE-02: takes no member beyond its own, at any depth, whatever else is right', () => {
    for (const name of [
      'state',
      'id',
      'created_at',
      'tenant_id',
      'version',
      'provider_key',
      'constructor',
      'toString',
      'Amount',
      'amount ',
    ]) {
      expect(withMember(name, 'x')).toEqual([' unknown_member']);
    }
    expect(withMember('metadata', { constructor: { prototype: { x: 'y' } } })).toEqual([
      '/metadata wrong_type',
    ]);
    expect(() => faultsOf(`{"__proto__":{},${JSON.stringify(VALID).slice(1)}`)).toThrow(
      'body_forbidden_member',
    );
  });

  it('names every fault once, by pointer and code', () => {
    expect(faultsOf({})).toEqual([
      '/amount required',
      '/currency required',
      '/destination required',
      '/execute_at required',
    ]);
    expect(faultsOf([])).toEqual([' wrong_type']);
    expect(faultsOf('null')).toEqual([' wrong_type']);
    expect(faultsOf({ a: 1, b: 2, ...VALID, amount: 0 })).toEqual([
      '/amount out_of_range',
      ' unknown_member',
    ]);
  });

  it.each([
    'amount',
    'currency',
    'destination',
    'execute_at',
    'not_after',
    'reference',
    'description',
    'metadata',
    'provider',
  ])('takes null for no value of %s', (name) => {
    expect(withMember(name, null)).toEqual([`/${name} wrong_type`]);
  });
});

describe('the amount', () => {
  it.each([1, 500, 1234, 999_999_999_999])('AM-01: %i is exact', (amount) => {
    expect(CreatePayment.parse({ ...VALID, amount }).money.amountMinor).toBe(BigInt(amount));
  });

  it.each(['19.99', '8.20', '78.4', '"19.99"', '0.30000000000000004', '1.005'])(
    'AM-02: %s is refused',
    (literal) => {
      expect(faultsOf(JSON.stringify(VALID).replace('1999', literal))).toEqual(['/amount wrong_type']);
    },
  );

  it.each([
    ['-1', 'out_of_range'],
    ['0', 'out_of_range'],
    ['-0', 'wrong_type'],
    ['1e3', 'wrong_type'],
    ['1.0', 'wrong_type'],
    ['1e21', 'wrong_type'],
    ['"100"', 'wrong_type'],
    ['"1e3"', 'wrong_type'],
    ['"１００"', 'wrong_type'],
    ['1000000000000', 'out_of_range'],
    ['9007199254740993', 'wrong_type'],
    ['true', 'wrong_type'],
    ['null', 'wrong_type'],
    ['[]', 'wrong_type'],
    ['{}', 'wrong_type'],
  ])('AM-03: %s is refused as %s', (literal, code) => {
    expect(faultsOf(JSON.stringify(VALID).replace('1999', literal))).toEqual([`/amount ${code}`]);
  });

  it('arrives as it was written for every value and currency', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1n, max: 999_999_999_999n }),
        fc.constantFrom(...CURRENCY_CODES),
        (amount, currency) => {
          const text = `{"amount":${amount},"currency":"${currency}","destination":"a","execute_at":"now"}`;
          const { money } = CreatePayment.parse(parseStrictJson(Buffer.from(text)));
          expect(money).toEqual({ amountMinor: amount, currency });
        },
      ),
    );
  });
});

describe('the currency', () => {
  it.each(['usd', 'UsD', 'USD ', 'US', 'USDX', '', '978'])('AM-04: "%s" has the wrong form', (currency) => {
    expect(withMember('currency', currency)).toEqual(['/currency malformed']);
  });

  it.each(['XXX', 'XTS', 'XAU', 'BTC', 'ZWL', 'CLF'])(
    'AM-04: %s is understood and not supported',
    (currency) => {
      try {
        faultsOf({ ...VALID, currency });
        expect.unreachable();
      } catch (error) {
        expect(error).toBeInstanceOf(DomainError);
        expect(error).toMatchObject({ code: 'currency_unsupported', status: 422 });
      }
    },
  );
});

describe('the destination', () => {
  it('is 1 to 128 of its characters', () => {
    for (const destination of ['a', 'A-Z.a_z:0-9', 'x'.repeat(128)])
      expect(withMember('destination', destination)).toEqual([]);
    for (const destination of ['', 'x'.repeat(129), 'a b', 'a/b', 'é', 'a\n', '🔑', 'a%00']) {
      expect(withMember('destination', destination)).toEqual(['/destination malformed']);
    }
  });

  it('TP-03: of 1 MB is refused', () => {
    expect(withMember('destination', 'x'.repeat(1_000_000))).toEqual(['/destination malformed']);
  });
});

describe('the times', () => {
  it('TM-05: numbers and numeric strings are refused, the word now is not', () => {
    for (const value of [1_798_102_800, 1_798_102_800_000, 1.5]) {
      expect(withMember('execute_at', value)).toEqual(['/execute_at wrong_type']);
    }
    for (const value of ['1798102800', 'NOW', 'now ', '']) {
      expect(withMember('execute_at', value)).toEqual(['/execute_at malformed']);
    }
    expect(CreatePayment.parse({ ...VALID, execute_at: 'now' }).executeAt).toBe('now');
    expect(withMember('not_after', 'now')).toEqual(['/not_after malformed']);
  });

  it('TM-02: a day that does not exist is refused; TM-06: an offset is turned to UTC', () => {
    expect(withMember('execute_at', '2027-02-30T00:00:00Z')).toEqual(['/execute_at malformed']);
    const { executeAt } = CreatePayment.parse({ ...VALID, execute_at: '2027-10-31T02:30:00+23:59' });
    expect(executeAt === 'now' ? executeAt : formatInstant(executeAt)).toBe('2027-10-30T02:31:00.000000Z');
  });
});

describe('reference and description', () => {
  it.each([
    ['reference', 64],
    ['description', 140],
  ])('%s holds up to %i code points of one line in NFC', (name, max) => {
    for (const text of ['a', ' ', 'é', '"\\/', 'x'.repeat(max), '🔑'.repeat(max)])
      expect(withMember(name, text)).toEqual([]);
    expect(withMember(name, '')).toEqual([`/${name} too_short`]);
    expect(withMember(name, 'x'.repeat(max + 1))).toEqual([`/${name} too_long`]);
    expect(withMember(name, '🔑'.repeat(max + 1))).toEqual([`/${name} too_long`]);
    expect(withMember(name, 'e\u0301')).toEqual([`/${name} not_normalized`]);
    for (const control of ['\n', '\t', '\x7f', '\x85', '\x1b[31m']) {
      expect(withMember(name, `a${control}b`)).toEqual([`/${name} control_character`]);
    }
  });
});

describe('metadata', () => {
  const pairs = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));

  it('holds up to 20 pairs of strings', () => {
    for (const value of [
      {},
      pairs(20),
      { k: '' },
      { k: 'two\nlines' },
      { ['k'.repeat(40)]: 'v'.repeat(200) },
    ]) {
      expect(withMember('metadata', value)).toEqual([]);
    }
    for (const [value, code] of [
      [pairs(21), 'too_many'],
      [{ ['k'.repeat(41)]: 'v' }, 'too_long'],
      [{ k: 'v'.repeat(201) }, 'too_long'],
      [{ '': 'v' }, 'too_short'],
      [{ 'a\nb': 'v' }, 'control_character'],
      [{ k: 1 }, 'wrong_type'],
      [{ k: null }, 'wrong_type'],
      [['a'], 'wrong_type'],
      ['text', 'wrong_type'],
    ] as const) {
      expect(withMember('metadata', value)).toEqual([`/metadata ${code}`]);
    }
  });

  it.each([
    '4111111111111111',
    '4111 1111 1111 1111',
    '4111-1111-1111-1111',
    '378282246310005',
    '4222222222222',
    '6304000000000000',
    '6304000000000000000',
  ])('refuses the card number %s', (value) => {
    expect(withMember('metadata', { card: value })).toEqual(['/metadata card_number']);
  });

  it.each([
    '4111111111111112',
    '411111111111',
    '41111111111111111111',
    '4111.1111.1111.1111',
    'x4111111111111111',
    'DE89370400440532013000',
  ])('takes %s, which is no card number', (value) => {
    expect(withMember('metadata', { note: value })).toEqual([]);
  });

  it('refuses exactly the strings of digits whose check digit is right', () => {
    const checksum = (digits: string): number =>
      [...digits].reverse().reduce((sum, digit, i) => {
        const value = Number(digit) * (i % 2 === 0 ? 1 : 2);
        return sum + Math.floor(value / 10) + (value % 10);
      }, 0);
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9]{11,21}$/), (digits) => {
        const isCard = digits.length >= 13 && digits.length <= 19 && checksum(digits) % 10 === 0;
        expect(withMember('metadata', { k: digits })).toEqual(isCard ? ['/metadata card_number'] : []);
      }),
    );
  });
});

describe('the body of a reschedule', () => {
  it('needs a time and takes a deadline, nothing else', () => {
    expect(ReschedulePayment.parse({ execute_at: 'now' })).toEqual({ executeAt: 'now' });
    expect(
      ReschedulePayment.parse({ execute_at: '2026-12-24T09:00:00Z', not_after: '2026-12-25T09:00:00Z' }),
    ).toEqual({
      executeAt: parseInstant('2026-12-24T09:00:00Z'),
      notAfter: parseInstant('2026-12-25T09:00:00Z'),
    });
    for (const body of [
      {},
      { execute_at: null },
      { execute_at: 'now', amount: 1 },
      { not_after: '2026-12-25T09:00:00Z' },
    ]) {
      expect(ReschedulePayment.safeParse(body).success).toBe(false);
    }
  });
});
