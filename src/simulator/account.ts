import { hash } from 'node:crypto';

/**
 * How much a provider can tell and promise.
 *
 * A: idempotency keys and lookups. B: keys, no lookups. C: lookups, the key header is ignored.
 * D: neither. T: keys and lookups; creating makes an inert payout, a commit moves the money.
 */
export const PROFILES = ['A', 'B', 'C', 'D', 'T'] as const;
export type Profile = (typeof PROFILES)[number];

export interface Abilities {
  /** The idempotency key header is honoured. */
  readonly keys: boolean;
  /** Payouts can be read and listed. */
  readonly lookups: boolean;
  /** 1: creating moves the money. 2: committing does. */
  readonly phases: 1 | 2;
}

export const ABILITIES: Readonly<Record<Profile, Abilities>> = Object.freeze({
  A: { keys: true, lookups: true, phases: 1 },
  B: { keys: true, lookups: false, phases: 1 },
  C: { keys: false, lookups: true, phases: 1 },
  D: { keys: false, lookups: false, phases: 1 },
  T: { keys: true, lookups: true, phases: 2 },
});

/** Whom one bearer key stands for. */
export interface SimulatedAccount {
  /** Scope of payouts, and usually of idempotency keys; two bearer keys may share one account. */
  readonly account: string;
  readonly profile: Profile;
  /** Tells the bearer keys of one account apart and gives none away. */
  readonly credential: string;
}

/** Twelve hexadecimal digits of a bearer key's digest. */
export function credentialOf(bearerKey: string): string {
  return hash('sha256', bearerKey, 'hex').slice(0, 12);
}

/** What an account's provider promises less than usual: a wrong descriptor is tested with these. */
export interface AccountSwitches {
  /** Milliseconds of the virtual clock after its first use until an idempotency key is forgotten. */
  readonly keyLifeMs: number;
  /** Lookups see the account as it was so many milliseconds of the virtual clock ago. */
  readonly lookupLagMs: number;
  /** api_key: another bearer key of the account has idempotency keys of its own. */
  readonly keyScope: 'account' | 'api_key';
  /**
   * What becomes of an error that would be kept under a key. stored: it is replayed. forgotten: the
   * key is free again, also for other parameters. re_executed: the key keeps its parameters, and a
   * repeat is carried out anew, which pays again where the error came after the money had moved.
   */
  readonly errorReplay: 'stored' | 'forgotten' | 're_executed';
}

const DAY_MS = 24 * 60 * 60 * 1000;

export const USUAL_SWITCHES: AccountSwitches = Object.freeze({
  keyLifeMs: DAY_MS,
  lookupLagMs: 0,
  keyScope: 'account',
  errorReplay: 'stored',
});

const READABLE: Readonly<Record<keyof AccountSwitches, (value: unknown) => boolean>> = {
  keyLifeMs: (value) => Number.isSafeInteger(value) && (value as number) >= 1,
  lookupLagMs: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  keyScope: (value) => value === 'account' || value === 'api_key',
  errorReplay: (value) => value === 'stored' || value === 'forgotten' || value === 're_executed',
};

/**
 * Reads switches by their names; what is absent stays as it is.
 * @returns the switches, or one sentence that says what is wrong.
 */
export function readSwitches(
  given: Readonly<Record<string, unknown>>,
): { readonly switches: Partial<AccountSwitches> } | { readonly wrong: string } {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(READABLE, name)) {
      return { wrong: `"${name}" is no switch. Known: ${Object.keys(READABLE).join(', ')}.` };
    }
    if (!READABLE[name as keyof AccountSwitches](value)) {
      return { wrong: `The switch ${name} has no usable value.` };
    }
  }
  return { switches: given as Partial<AccountSwitches> };
}
