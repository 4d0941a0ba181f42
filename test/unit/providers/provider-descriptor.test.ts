import { describe, expect, it } from 'vitest';
import type { ProviderDescriptor } from '../../../src/providers/payment-provider.js';
import { capabilityClass, validateDescriptor } from '../../../src/providers/provider-descriptor.js';

const HOUR_MS = 3_600_000;
const SOUND: ProviderDescriptor = {
  idempotency: { mode: 'key', life: 24 * HOUR_MS, marginMs: 4 * HOUR_MS, scope: 'account', errors: 'stored' },
  lookup: { by: ['provider_id', 'reference'], consistency: 'strong' },
  maxInFlightMs: 120_000,
  settlesWithinMs: 240 * HOUR_MS,
  phases: 1,
  cancel: 'never',
  lateFailureMs: 0,
  ratePerSecond: 25,
  accountRatePerSecond: 100,
  webhooks: 'none',
  settlement: 'none',
  amount: { minMinor: 1n, maxMinor: 999_999_999_999n, exponents: {} },
};

type Changes = Readonly<Record<string, unknown>>;
const UNKEYED: Changes = {
  'idempotency.mode': 'none',
  'idempotency.life': 1,
  'idempotency.marginMs': 0,
  'idempotency.errors': 'forgotten',
};
const WITHOUT_LOOKUP: Changes = { 'lookup.by': [], 'lookup.consistency': 'none' };
const TWO_PHASES: Changes = { phases: 2, 'idempotency.mode': 'object_state', cancel: 'before_commit' };

/** The sound descriptor with some fields, named by their path, set to other values. */
function descriptor(changes: Changes): ProviderDescriptor {
  const copy = structuredClone(SOUND) as unknown as Record<string, Record<string, unknown>>;
  for (const [path, value] of Object.entries(changes)) {
    const [first = '', second] = path.split('.');
    if (second === undefined) (copy as Record<string, unknown>)[first] = value;
    else copy[first]![second] = value;
  }
  return copy as unknown as ProviderDescriptor;
}
function validate(changes: Changes, smallMarginAllowed = false): void {
  validateDescriptor('bank', descriptor(changes), { smallMarginAllowed });
}

describe('a descriptor', () => {
  it.each<[string, Changes]>([
    ['as it should be', {}],
    [
      'with a key that lives for ever and no margin',
      { 'idempotency.life': 'forever', 'idempotency.marginMs': 0 },
    ],
    [
      'with an unpublished life: 15 min',
      { 'idempotency.life': 'unpublished', 'idempotency.marginMs': 150_000 },
    ],
    ['without keys', UNKEYED],
    ['without keys and without lookup', { ...UNKEYED, ...WITHOUT_LOOKUP }],
    ['with references that it takes once', { 'idempotency.mode': 'natural_reference' }],
    ['with a lag', { 'lookup.consistency': { lagMs: 5_000 } }],
    ['without lookup', WITHOUT_LOOKUP],
    ['in two phases', TWO_PHASES],
    ['with minor units of its own', { 'amount.exponents': { ISK: 0, UGX: 2 } }],
  ])('is good: %s', (_title, changes) => {
    expect(() => validate(changes)).not.toThrow();
  });

  it.each([
    'idempotency',
    'idempotency.mode',
    'idempotency.life',
    'idempotency.marginMs',
    'idempotency.scope',
    'idempotency.errors',
    'lookup',
    'lookup.by',
    'lookup.consistency',
    'maxInFlightMs',
    'settlesWithinMs',
    'phases',
    'cancel',
    'lateFailureMs',
    'ratePerSecond',
    'accountRatePerSecond',
    'webhooks',
    'settlement',
    'amount',
    'amount.minMinor',
    'amount.maxMinor',
    'amount.exponents',
  ])('without %s is refused with a sentence that names provider and field', (path) => {
    const sentence = new RegExp(
      `^Provider "bank" does not declare ${path}[.\\w]*; nothing can be sent on a guess\\.$`,
    );
    expect(() => validate({ [path]: undefined })).toThrow(sentence);
  });

  it.each<[string, Changes]>([
    ['idempotency.mode', { 'idempotency.mode': 'hope' }],
    ['idempotency.life', { 'idempotency.life': 0 }],
    ['idempotency.life', { 'idempotency.life': 'long' }],
    ['idempotency.life', { 'idempotency.life': 86_400.5 }],
    ['idempotency.life', { 'idempotency.life': Number.MAX_SAFE_INTEGER }],
    ['idempotency.marginMs', { 'idempotency.marginMs': -1 }],
    ['idempotency.marginMs', { 'idempotency.marginMs': 24 * HOUR_MS }],
    ['idempotency.marginMs', { 'idempotency.marginMs': 4 * HOUR_MS - 1 }],
    ['idempotency.marginMs', { 'idempotency.life': 'unpublished', 'idempotency.marginMs': 149_999 }],
    ['idempotency.mode', { 'idempotency.mode': 'object_state' }],
    ['lookup.by', { 'lookup.by': ['guess'] }],
    ['lookup.by', { 'lookup.by': ['key', 'key'] }],
    ['lookup.by', { 'lookup.by': [] }],
    ['lookup.consistency', { 'lookup.consistency': 'mostly' }],
    ['lookup.consistency', { 'lookup.consistency': { lagMs: 0.5 } }],
    ['maxInFlightMs', { maxInFlightMs: 0 }],
    ['maxInFlightMs', { maxInFlightMs: 8 * 24 * HOUR_MS }],
    ['settlesWithinMs', { settlesWithinMs: '10 d' }],
    ['phases', { phases: 3 }],
    ['cancel', { cancel: 'before_commit' }],
    ['lateFailureMs', { lateFailureMs: -1 }],
    ['ratePerSecond', { ratePerSecond: 0 }],
    ['ratePerSecond', { ratePerSecond: Infinity }],
    ['accountRatePerSecond', { accountRatePerSecond: 24 }],
    ['amount.exponents', { 'amount.exponents': ['EUR'] }],
    ['amount.exponents', { 'amount.exponents': { eur: 2 } }],
    ['amount.exponents', { 'amount.exponents': { EUR: 2.5 } }],
    ['webhooks', { webhooks: 'carrier pigeon' }],
    ['settlement', { settlement: 'pdf' }],
    ['amount.minMinor', { 'amount.minMinor': 0n }],
    ['amount.minMinor', { 'amount.minMinor': 1 }],
    ['amount.maxMinor', { 'amount.maxMinor': 1_000_000_000_000n }],
    ['amount.maxMinor', { 'amount.minMinor': 100n, 'amount.maxMinor': 99n }],
  ])('with an absurd %s is refused (%#)', (path, changes) => {
    expect(() => validate(changes)).toThrow(new RegExp(`^Provider "bank" declares ${path} wrongly: it `));
  });

  it.each<[string, string, Changes]>([
    ['ways to ask, but no promise of an answer', 'lookup.consistency', { 'lookup.consistency': 'none' }],
    ['a promise of answers, but no way to ask', 'lookup.by', { 'lookup.by': [] }],
    ['only a way that needs the id of the lost answer', 'lookup.by', { 'lookup.by': ['provider_id'] }],
    ['errors stored under no key', 'idempotency.errors', { ...UNKEYED, 'idempotency.errors': 'stored' }],
    ['neither key nor reference, but a list', 'lookup.by', { ...UNKEYED, 'lookup.by': ['list_scan'] }],
    [
      'unique references that cannot be asked for',
      'idempotency.mode',
      { 'idempotency.mode': 'natural_reference', ...WITHOUT_LOOKUP },
    ],
    ['object state in one phase', 'idempotency.mode', { 'idempotency.mode': 'object_state' }],
    ['a stop before a commit that there is not', 'cancel', { cancel: 'before_commit' }],
    ['two phases and nothing that admits one commit', 'idempotency.mode', { phases: 2 }],
    ['two phases and no read by id', 'lookup.by', { ...TWO_PHASES, 'lookup.by': ['reference'] }],
    [
      'two phases and old readings',
      'lookup.consistency',
      { ...TWO_PHASES, 'lookup.consistency': { lagMs: 1 } },
    ],
  ])('that claims %s is refused by its %s', (_title, path, changes) => {
    const sentence = new RegExp(`^Provider "bank" declares ${path.replace('.', '[.]')} wrongly: it .+[.]$`);
    expect(() => validate(changes)).toThrow(sentence);
  });

  it('may have a small margin only where that is allowed', () => {
    const changes = { 'idempotency.life': 60_000, 'idempotency.marginMs': 0 };
    expect(() => validate(changes)).toThrow('must be at least a sixth of the life of the key');
    expect(() => validate(changes, true)).not.toThrow();
    expect(() => validate({ ...changes, 'idempotency.marginMs': 60_000 }, true)).toThrow(
      'shorter than the life',
    );
  });
});

describe('the capability class', () => {
  it.each<[string, Changes, string]>([
    ['keys and lookup', {}, 'A'],
    ['references that it takes once, and lookup', { 'idempotency.mode': 'natural_reference' }, 'A'],
    ['keys only', WITHOUT_LOOKUP, 'B'],
    ['lookup only', UNKEYED, 'C'],
    ['lookup with a lag only', { ...UNKEYED, 'lookup.consistency': { lagMs: 1 } }, 'C'],
    ['neither', { ...UNKEYED, ...WITHOUT_LOOKUP }, 'D'],
    ['two phases', TWO_PHASES, 'T'],
  ])('of %s', (_title, changes, expected) => {
    expect(() => validate(changes)).not.toThrow();
    expect(capabilityClass(descriptor(changes))).toBe(expected);
  });
});
