import type { LookupPath, ProviderDescriptor } from './payment-provider.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** A life that the provider does not publish counts as this (the shortest published one is 30 min). */
export const UNPUBLISHED_LIFE_MS = 15 * MINUTE_MS;

/** No provider here needs a longer promise; more is a mistake in the unit. */
const LONGEST_LIFE_MS = 3_660 * DAY_MS;
const LONGEST_FLIGHT_MS = 7 * DAY_MS;
const LONGEST_SETTLEMENT_MS = 400 * DAY_MS;
const HIGHEST_RATE = 1_000_000;
/** Payments have at most 12 digits. */
const LARGEST_AMOUNT_MINOR = 999_999_999_999n;

const MODES = ['none', 'key', 'natural_reference', 'object_state'];
const SCOPES = ['account', 'api_key', 'region', 'global'];
const ERRORS = ['stored', 'forgotten', 're-executed'];
const LOOKUPS = ['provider_id', 'key', 'reference', 'list_scan'];
const CANCELS = ['never', 'before_commit', 'while_pending'];
const WEBHOOKS = ['none', 'simulated_v1', 'standard_webhooks', 'stripe_v1'];
const SETTLEMENTS = ['none', 'csv'];

type Fields = Readonly<Record<string, unknown>>;

/**
 * What may be done at a provider when a call's outcome is not known.
 * A: idempotent, with lookup. B: idempotent only. C: lookup only. D: neither. T: two phases, the
 * object's own state admits one commit.
 */
export type CapabilityClass = 'A' | 'B' | 'C' | 'D' | 'T';

/**
 * The class that a sound descriptor's claims come to. A provider that refuses a repeated reference
 * (`natural_reference`) is idempotent. Pure.
 */
export function capabilityClass({
  phases,
  idempotency,
  lookup,
}: Pick<ProviderDescriptor, 'phases' | 'idempotency' | 'lookup'>): CapabilityClass {
  if (phases === 2) return 'T';
  const hasLookup = lookup.consistency !== 'none';
  if (idempotency.mode === 'none') return hasLookup ? 'C' : 'D';
  return hasLookup ? 'A' : 'B';
}

/**
 * Refuses a descriptor with a missing or absurd field: every rule about resending rests on it.
 * @param smallMarginAllowed true only for the simulator: everybody else keeps a sixth of the key's
 * life as margin, which covers a wrong clock and a slow shift.
 * @throws Error naming provider and field. Twice: the same.
 */
export function validateDescriptor(
  provider: string,
  descriptor: ProviderDescriptor,
  { smallMarginAllowed }: { readonly smallMarginAllowed: boolean },
): void {
  const check = new DescriptorCheck(provider, descriptor as unknown as Fields);
  check.word('idempotency.mode', MODES);
  check.word('idempotency.scope', SCOPES);
  check.word('idempotency.errors', ERRORS);
  checkLife(check, smallMarginAllowed);
  checkLookup(check);
  check.whole('maxInFlightMs', { min: 1, max: LONGEST_FLIGHT_MS });
  check.whole('settlesWithinMs', { min: 1, max: LONGEST_SETTLEMENT_MS });
  check.that('phases', (value) => value === 1 || value === 2, 'must be 1 or 2');
  check.word('cancel', CANCELS);
  check.whole('lateFailureMs', { min: 0, max: LONGEST_LIFE_MS });
  check.that(
    'ratePerSecond',
    (v) => isNumber(v) && v > 0 && v <= HIGHEST_RATE,
    'must be calls per second above 0',
  );
  check.word('webhooks', WEBHOOKS);
  check.word('settlement', SETTLEMENTS);
  check.that(
    'accountRatePerSecond',
    (v) => isNumber(v) && v >= descriptor.ratePerSecond && v <= HIGHEST_RATE,
    'must be calls per second, not below ratePerSecond',
  );
  checkAmount(check);
  checkClaims(check, descriptor);
}

class DescriptorCheck {
  constructor(
    private readonly provider: string,
    private readonly descriptor: Fields,
  ) {}

  value(path: string): unknown {
    let value: unknown = this.descriptor;
    for (const name of path.split('.')) {
      value = typeof value === 'object' && value !== null ? (value as Fields)[name] : undefined;
    }
    return value;
  }

  that(path: string, fits: (value: unknown) => boolean, complaint: string): void {
    const value = this.value(path);
    if (value === undefined || value === null) {
      throw new Error(
        `Provider "${this.provider}" does not declare ${path}; nothing can be sent on a guess.`,
      );
    }
    if (!fits(value)) this.refuse(path, complaint);
  }

  word(path: string, words: readonly string[]): void {
    this.that(path, (value) => words.includes(value as string), `must be one of ${words.join(', ')}`);
  }

  whole(path: string, { min, max }: { readonly min: number; readonly max: number }): void {
    const fits = (value: unknown): boolean => Number.isInteger(value) && within(value as number, min, max);
    this.that(path, fits, `must be a whole number from ${min} to ${max}`);
  }

  refuse(path: string, complaint: string): never {
    throw new Error(`Provider "${this.provider}" declares ${path} wrongly: it ${complaint}.`);
  }
}

function checkLife(check: DescriptorCheck, smallMarginAllowed: boolean): void {
  check.that(
    'idempotency.life',
    (life) =>
      life === 'forever' ||
      life === 'unpublished' ||
      (Number.isInteger(life) && within(life as number, 1, LONGEST_LIFE_MS)),
    'must be whole milliseconds, forever or unpublished',
  );
  check.whole('idempotency.marginMs', { min: 0, max: LONGEST_LIFE_MS });
  const life = check.value('idempotency.life');
  if (life === 'forever' || check.value('idempotency.mode') === 'none') return;
  const lifeMs = life === 'unpublished' ? UNPUBLISHED_LIFE_MS : (life as number);
  const marginMs = check.value('idempotency.marginMs') as number;
  if (marginMs >= lifeMs) check.refuse('idempotency.marginMs', 'must be shorter than the life of the key');
  if (marginMs * 6 < lifeMs && !smallMarginAllowed) {
    check.refuse('idempotency.marginMs', 'must be at least a sixth of the life of the key');
  }
}

function checkLookup(check: DescriptorCheck): void {
  check.that(
    'lookup.by',
    (by) =>
      Array.isArray(by) &&
      by.every((way) => LOOKUPS.includes(way as string)) &&
      new Set(by).size === by.length,
    `must be a list of different words of ${LOOKUPS.join(', ')}`,
  );
  check.that(
    'lookup.consistency',
    (consistency) => consistency === 'strong' || consistency === 'none' || isLag(consistency),
    'must be strong, none, or lagMs in whole milliseconds',
  );
}

function checkAmount(check: DescriptorCheck): void {
  const isAmount = (value: unknown): boolean =>
    typeof value === 'bigint' && value >= 1n && value <= LARGEST_AMOUNT_MINOR;
  check.that('amount.minMinor', isAmount, 'must be a bigint of minor units with at most 12 digits');
  check.that('amount.maxMinor', isAmount, 'must be a bigint of minor units with at most 12 digits');
  if ((check.value('amount.maxMinor') as bigint) < (check.value('amount.minMinor') as bigint)) {
    check.refuse('amount.maxMinor', 'is below amount.minMinor');
  }
  check.that(
    'amount.exponents',
    (exponents) =>
      typeof exponents === 'object' &&
      !Array.isArray(exponents) &&
      Object.entries(exponents as Fields).every(
        ([currency, digits]) =>
          /^[A-Z]{3}$/.test(currency) && Number.isInteger(digits) && within(digits as number, 0, 4),
      ),
    'must map currency codes to their number of decimal digits, 0 to 4',
  );
}

/** Ways to find a payment whose answer, and with it the provider's id, was lost. */
const WAYS_WITHOUT_ID: readonly LookupPath[] = ['key', 'reference', 'list_scan'];

/** Claims that cannot be true together: whoever reads the class would send on a wrong promise. */
function checkClaims(
  check: DescriptorCheck,
  { phases, idempotency, lookup, cancel }: ProviderDescriptor,
): void {
  const { mode } = idempotency;
  if (lookup.by.length === 0 && lookup.consistency !== 'none') {
    check.refuse('lookup.by', 'is empty, yet lookup.consistency promises answers');
  }
  if (lookup.by.length > 0 && lookup.consistency === 'none') {
    check.refuse('lookup.consistency', 'is none, yet lookup.by names ways to ask');
  }
  if (phases === 2) return checkTwoPhases(check, idempotency, lookup);
  if (mode === 'object_state') check.refuse('idempotency.mode', 'is object_state, which needs two phases');
  if (cancel === 'before_commit') check.refuse('cancel', 'is before_commit, which needs two phases');
  if (lookup.by.length > 0 && !lookup.by.some((way) => WAYS_WITHOUT_ID.includes(way))) {
    check.refuse('lookup.by', 'holds no way to find a payment whose answer was lost');
  }
  if (mode === 'none' && idempotency.errors === 'stored') {
    check.refuse('idempotency.errors', 'is stored, yet there is no key to store them under');
  }
  const asksByReference = lookup.by.includes('reference');
  if (mode === 'natural_reference' && !asksByReference) {
    check.refuse('idempotency.mode', 'is natural_reference, which lookup.by must then name as reference');
  }
  if (mode === 'none' && lookup.by.length > 0 && !asksByReference) {
    check.refuse(
      'lookup.by',
      'must name reference: without a key nothing else tells our payment from another',
    );
  }
}

/** The object's own state admits one commit, and a strong read by id says what became of it. */
function checkTwoPhases(
  check: DescriptorCheck,
  { mode }: ProviderDescriptor['idempotency'],
  { by, consistency }: ProviderDescriptor['lookup'],
): void {
  if (mode !== 'object_state') {
    check.refuse('idempotency.mode', 'must be object_state in two phases: the commit is what moves money');
  }
  if (!by.includes('provider_id')) {
    check.refuse('lookup.by', 'must name provider_id in two phases: an open commit is read by id');
  }
  if (consistency !== 'strong') {
    check.refuse(
      'lookup.consistency',
      'must be strong in two phases: an old reading would allow a second commit',
    );
  }
}

function isLag(value: unknown): boolean {
  const lagMs = typeof value === 'object' && value !== null ? (value as Fields)['lagMs'] : undefined;
  return Number.isInteger(lagMs) && within(lagMs as number, 0, LONGEST_FLIGHT_MS);
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function within(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}
