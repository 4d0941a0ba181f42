import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { base32 } from '../../../src/domain/base32.js';
import { parseIdempotencyKey, type IdempotencyKey } from '../../../src/domain/idempotency-key.js';
import { isPaymentId, paymentId, providerKey, type PaymentId } from '../../../src/domain/payment-id.js';
import { sha1, sha256 } from '../../../src/platform/sha256.js';

const key = (text: string): IdempotencyKey => {
  const parsed = parseIdempotencyKey([text]);
  if (parsed.kind !== 'key') throw new Error(parsed.kind);
  return parsed.key;
};
const idOf = (tenant: string, text: string): PaymentId => paymentId({ tenant, key: key(text), sha256 });

describe('base32', () => {
  it.each([
    ['', ''],
    ['f', 'my'],
    ['fo', 'mzxq'],
    ['foo', 'mzxw6'],
    ['foob', 'mzxw6yq'],
    ['fooba', 'mzxw6ytb'],
    ['foobar', 'mzxw6ytboi'],
  ])('writes %s as %s (the vectors of RFC 4648, lower case, unpadded)', (text, encoded) => {
    expect(base32(Buffer.from(text))).toBe(encoded);
  });

  it('writes every bit: an independent bit string gives the same text', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
        const groups = bits.match(/.{1,5}/g) ?? [];
        const letters = groups.map(
          (group) => 'abcdefghijklmnopqrstuvwxyz234567'[parseInt(group.padEnd(5, '0'), 2)],
        );
        expect(base32(bytes)).toBe(letters.join(''));
      }),
    );
  });
});

describe('a payment id', () => {
  it('is the first 32 characters of base32 over the digest of version, tenant and key', () => {
    const digest = createHash('sha256').update('payment/v1\0tenant_1\0invoice-2041').digest();
    expect(idOf('tenant_1', 'invoice-2041')).toBe(`pay_${base32(digest).slice(0, 32)}`);
    expect(idOf('tenant_1', 'invoice-2041')).toBe('pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk');
  });

  it('ID-04: differs between tenants for the same key', () => {
    expect(idOf('a', '1')).not.toBe(idOf('b', '1'));
  });

  it('ID-07: has 36 characters for the longest key and a long tenant', () => {
    const id = idOf('t'.repeat(200), 'k'.repeat(255));
    expect(id).toHaveLength(36);
    expect(isPaymentId(id)).toBe(true);
  });

  it('cannot confuse where the tenant ends and the key begins', () => {
    expect(idOf('ab', 'c')).not.toBe(idOf('a', 'bc'));
    expect(() => idOf('a\0b', 'c')).toThrow('never holds NUL');
    expect(() => idOf('', 'c')).toThrow('never empty');
  });

  it.each([
    '',
    'pay_',
    'PAY_PS5RXD2C33SDJY3M5VEXUKZAEWRUNYQK',
    `pay_${'a'.repeat(31)}`,
    `pay_${'a'.repeat(33)}`,
    `pay_${'1'.repeat(32)}`,
    ` pay_${'a'.repeat(32)}`,
    `pay_${'a'.repeat(32)}\n`,
  ])('ID-09: "%s" has not the form of an id', (text) => {
    expect(isPaymentId(text)).toBe(false);
  });
});

describe('a provider key', () => {
  const id = idOf('tenant_1', 'invoice-2041');

  it('is UUID version 5 over id and generation under our namespace (checked with another implementation)', () => {
    expect(providerKey(id, 1, sha1)).toBe('271adfe0-dc9b-55c2-8583-e9b5eb788d9e');
    expect(providerKey(id, 12, sha1)).toBe('d5e1507c-6c33-58ec-891e-08e06c99d919');
  });

  it('never changes for a generation and differs between generations and payments', () => {
    expect(providerKey(id, 1, sha1)).toBe(providerKey(id, 1, sha1));
    const keys = [1, 2, 10, 11].map((generation) => providerKey(id, generation, sha1));
    keys.push(providerKey(idOf('tenant_2', 'invoice-2041'), 1, sha1));
    expect(new Set(keys).size).toBe(5);
  });

  it.each([0, -1, 1.5, NaN, Number.MAX_SAFE_INTEGER + 1])(
    'generation %s is a bug and fails',
    (generation) => {
      expect(() => providerKey(id, generation, sha1)).toThrow('generations count from 1');
    },
  );
});
