import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCurrency, type CurrencyCode } from '../../../src/domain/currency.js';
import { instantFromMicros, parseInstant, type Instant } from '../../../src/domain/instant.js';
import { money } from '../../../src/domain/money.js';
import {
  canonicalCommand,
  FINGERPRINT_VERSION,
  requestFingerprint,
  type FingerprintedCommand,
} from '../../../src/domain/request-fingerprint.js';
import { sha256 } from '../../../src/platform/sha256.js';

const currency = (code: string): CurrencyCode => {
  const parsed = parseCurrency(code);
  if (parsed.kind !== 'currency') throw new Error(parsed.kind);
  return parsed.currency;
};
const due = parseInstant('2026-12-24T09:00:00Z') as Instant;
const command: FingerprintedCommand = {
  money: money(1999n, currency('EUR')),
  destinationDigest: 'ab'.repeat(32),
  executeAt: due,
  notAfter: parseInstant('2026-12-24T18:00:00Z') as Instant,
  reference: 'invoice-2041',
  description: 'December payout',
  metadata: { team: 'north', area: 'b' },
  provider: 'stripe',
};
const print = (of: FingerprintedCommand): string =>
  Buffer.from(requestFingerprint(of, FINGERPRINT_VERSION, sha256)).toString('hex');

describe('a request fingerprint', () => {
  it('covers a canonical text that never changes within a version', () => {
    expect(canonicalCommand(command, 1)).toBe(
      '["payment-command/v1",["amount","1999"],["currency","EUR"],["destination_digest","' +
        'ab'.repeat(32) +
        '"],["execute_at","2026-12-24T09:00:00.000000Z"],["not_after","2026-12-24T18:00:00.000000Z"],' +
        '["reference","invoice-2041"],["description","December payout"],' +
        '["metadata",[["area","b"],["team","north"]]],["provider","stripe"]]',
    );
    expect(requestFingerprint(command, 1, sha256)).toHaveLength(32);
  });

  it('is the same for two spellings of one instant and two orders of metadata', () => {
    const other = {
      ...command,
      executeAt: parseInstant('2026-12-24T10:00:00.000+01:00') as Instant,
      metadata: { area: 'b', team: 'north' },
    };
    expect(print(other)).toBe(print(command));
  });

  it.each([
    ['amount', { money: money(2000n, currency('EUR')) }],
    ['currency', { money: money(1999n, currency('USD')) }],
    ['destination', { destinationDigest: 'cd'.repeat(32) }],
    ['execution time by one microsecond', { executeAt: instantFromMicros(due + 1n) }],
    ['execution time as the word now', { executeAt: 'now' as const }],
    ['deadline left out', { notAfter: undefined }],
    ['reference', { reference: 'invoice-2042' }],
    ['reference left out', { reference: undefined }],
    ['description', { description: 'december payout' }],
    ['metadata left out', { metadata: undefined }],
    ['metadata empty', { metadata: {} }],
    ['metadata value', { metadata: { team: 'south', area: 'b' } }],
    ['provider left out', { provider: undefined }],
  ])('changes with: %s', (_what, change) => {
    expect(print({ ...command, ...change })).not.toBe(print(command));
  });

  it('keeps members apart: no two different commands share a canonical text', () => {
    const text = fc.string({ unit: 'binary', maxLength: 6 }).filter((s) => s.isWellFormed());
    const arbitrary = fc.record(
      {
        reference: text,
        description: text,
        provider: text,
        metadata: fc.dictionary(text, text, { maxKeys: 3 }),
      },
      { requiredKeys: [] },
    );
    const shape = (of: object): unknown =>
      Object.entries(of)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => [
          name,
          typeof value === 'object' ? Object.entries(value as object).sort() : value,
        ])
        .sort();
    const base = { money: command.money, destinationDigest: command.destinationDigest, executeAt: due };
    fc.assert(
      fc.property(arbitrary, arbitrary, (a, b) => {
        const same = canonicalCommand({ ...base, ...a }, 1) === canonicalCommand({ ...base, ...b }, 1);
        expect(same).toBe(JSON.stringify(shape(a)) === JSON.stringify(shape(b)));
      }),
    );
  });

  it('fails for a version of a newer release instead of guessing', () => {
    expect(() => canonicalCommand(command, 2)).toThrow('not known to this release');
  });
});
