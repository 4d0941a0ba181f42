import { describe, expect, it } from 'vitest';
import { parseInstant } from '../../../../src/domain/instant.js';
import { fieldErrors } from '../../../../src/http/field-errors.js';
import { ListPayments } from '../../../../src/payments/schemas/list-payments.schema.js';
import { PaymentIdParam } from '../../../../src/payments/schemas/payment-id.schema.js';

const faultsOf = (query: unknown): readonly string[] => {
  const parsed = ListPayments.safeParse(query);
  return parsed.success
    ? []
    : fieldErrors(parsed.error, query).map(({ pointer, code }) => `${pointer} ${code}`);
};

describe('the query of a list', () => {
  it('asks for 25 payments from the newest on when it says nothing', () => {
    expect(ListPayments.parse({})).toEqual({ limit: 25, cursor: null, filter: {} });
  });

  it('becomes a filter in the words of the domain', () => {
    expect(
      ListPayments.parse({
        limit: '100',
        cursor: 'abc_-',
        state: 'held',
        currency: 'EUR',
        provider: 'stripe',
        reference: 'invoice 1/2',
        execute_at_from: '2026-12-24T09:00:00Z',
        execute_at_before: '2026-12-24T10:00:00Z',
        created_at_from: '2026-12-01T00:00:00+01:00',
        created_at_before: '2026-12-02T00:00:00Z',
      }),
    ).toEqual({
      limit: 100,
      cursor: 'abc_-',
      filter: {
        state: 'held',
        currency: 'EUR',
        provider: 'stripe',
        reference: 'invoice 1/2',
        executeAtFrom: parseInstant('2026-12-24T09:00:00Z'),
        executeAtBefore: parseInstant('2026-12-24T10:00:00Z'),
        createdAtFrom: parseInstant('2026-11-30T23:00:00Z'),
        createdAtBefore: parseInstant('2026-12-02T00:00:00Z'),
      },
    });
  });

  it.each(['0', '101', '-1', '1e1', '1.0', '01', '', ' 1', 'abc', '１'])(
    'refuses the limit "%s"',
    (limit) => {
      expect(faultsOf({ limit })).toEqual(['/limit malformed']);
    },
  );

  it('refuses a doubled parameter, an unknown one and a value outside its set', () => {
    expect(faultsOf({ limit: ['1', '2'] })).toEqual(['/limit wrong_type']);
    expect(faultsOf({ offset: '1' })).toEqual([' unknown_member']);
    expect(faultsOf({ state: 'paid' })).toEqual(['/state not_allowed_value']);
    expect(faultsOf({ currency: 'XXX' })).toEqual(['/currency not_allowed_value']);
    expect(faultsOf({ execute_at_from: 'now' })).toEqual(['/execute_at_from malformed']);
    expect(faultsOf({ cursor: 'a b' })).toEqual(['/cursor malformed']);
    expect(faultsOf({ reference: 'a\0' })).toEqual(['/reference control_character']);
  });

  it('reads an object without a prototype, as the query parser makes it', () => {
    const query = Object.assign(Object.create(null) as object, { limit: '2' });
    expect(ListPayments.parse(query).limit).toBe(2);
    expect(faultsOf(Object.defineProperty(query, '__proto__', { value: '1', enumerable: true }))).toEqual([
      ' unknown_member',
    ]);
  });
});

describe('the id of a path', () => {
  it('ID-09: has one form', () => {
    const id = `pay_${'a2'.repeat(16)}`;
    expect(PaymentIdParam.parse(id)).toBe(id);
    for (const text of ['', 'x', '..', `${id} `, `${id}/`, id.toUpperCase(), `${id}a`, 'pay_', '%2F', '\0']) {
      expect(PaymentIdParam.safeParse(text).success).toBe(false);
    }
  });
});
