/** How a simulator process is set up. */
export interface SimulatorSettings {
  readonly host: string;
  /** 0: any free port; the ready line names the one that was taken. */
  readonly port: number;
  readonly controlPort: number;
  readonly controlToken: string;
  readonly ledgerFile: string;
  /** Bearer key of the provider port to the account behind it. */
  readonly accounts: ReadonlyMap<string, SimulatedAccount>;
  /** Milliseconds after its first use until an idempotency key is forgotten. */
  readonly keyLifeMs: number;
}

/** A: keyed idempotency, one call moves the money. T: create an inert payout, then commit it. */
export type Profile = 'A' | 'T';

export interface SimulatedAccount {
  /** Scope of idempotency keys and payouts; two bearer keys may share one account. */
  readonly account: string;
  readonly profile: Profile;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Reads the simulator's environment.
 *
 * `SIMULATOR_PROFILE_KEYS` is a comma-separated list of `key:profile` or `key:profile:account`.
 * Without an account, all keys of one profile share `acct_<profile>`.
 * @throws Error with one sentence that names the variable; never the value of a secret.
 */
export function readSimulatorSettings(env: NodeJS.ProcessEnv): SimulatorSettings {
  return {
    host: env['SIMULATOR_HOST'] || '127.0.0.1',
    port: readInteger(env, 'SIMULATOR_PORT', { min: 0, max: 65_535 }),
    controlPort: readInteger(env, 'SIMULATOR_CONTROL_PORT', { min: 0, max: 65_535 }),
    controlToken: readControlToken(env),
    ledgerFile: readText(env, 'SIMULATOR_LEDGER_FILE'),
    accounts: readAccounts(readText(env, 'SIMULATOR_PROFILE_KEYS')),
    keyLifeMs: readInteger(env, 'SIMULATOR_KEY_LIFE_MS', { min: 1, max: 365 * DAY_MS, fallback: DAY_MS }),
  };
}

function readText(env: NodeJS.ProcessEnv, name: string): string {
  const text = env[name];
  if (!text) throw new Error(`${name} is not set; the simulator needs it.`);
  return text;
}

function readControlToken(env: NodeJS.ProcessEnv): string {
  const token = readText(env, 'SIMULATOR_CONTROL_TOKEN');
  if (token.length < 8) throw new Error('SIMULATOR_CONTROL_TOKEN must have at least 8 characters.');
  return token;
}

interface IntegerRange {
  readonly min: number;
  readonly max: number;
  readonly fallback?: number;
}

function readInteger(env: NodeJS.ProcessEnv, name: string, range: IntegerRange): number {
  if (!env[name] && range.fallback !== undefined) return range.fallback;
  const text = readText(env, name);
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (!(value >= range.min && value <= range.max)) {
    throw new Error(`${name} must be a whole number from ${range.min} to ${range.max}.`);
  }
  return value;
}

function readAccounts(text: string): ReadonlyMap<string, SimulatedAccount> {
  const accounts = new Map<string, SimulatedAccount>();
  for (const [index, entry] of text.split(',').entries()) {
    const place = `SIMULATOR_PROFILE_KEYS, entry ${index + 1},`;
    const match = /^([\w-]{3,128}):([A-Z])(?::(acct_\w{1,64}))?$/.exec(entry.trim());
    const [, key, profile, account] = match ?? [];
    if (!key || !profile)
      throw new Error(`${place} must have the form key:profile or key:profile:acct_name.`);
    if (profile !== 'A' && profile !== 'T') {
      throw new Error(`${place} names profile ${profile}; this simulator has the profiles A and T.`);
    }
    if (accounts.has(key)) throw new Error(`${place} repeats a key.`);
    accounts.set(key, { profile, account: account ?? `acct_${profile.toLowerCase()}` });
  }
  return accounts;
}
