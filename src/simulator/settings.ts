import { PROFILES, USUAL_SWITCHES, credentialOf, readSwitches } from './account.js';
import type { AccountSwitches, Profile, SimulatedAccount } from './account.js';
import { isRecord } from './fault.js';
import { readEndpoint } from './webhooks/webhook-endpoint.js';
import type { WebhookEndpoint } from './webhooks/webhook-endpoint.js';

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
  /** Milliseconds after its first use until an idempotency key is forgotten, in every account. */
  readonly keyLifeMs: number;
  /** What single accounts do otherwise, by account. */
  readonly switches: ReadonlyMap<string, Partial<AccountSwitches>>;
  /** Where events go, by account. */
  readonly webhooks: ReadonlyMap<string, WebhookEndpoint>;
  /** Milliseconds before each repeat of an event that was not taken. */
  readonly webhookRetryDelaysMs: readonly number[];
}

const LONGEST_KEY_LIFE_MS = 365 * 24 * 60 * 60 * 1000;

/**
 * Reads the simulator's environment.
 *
 * `SIMULATOR_PROFILE_KEYS` is a comma-separated list of `key:profile` or `key:profile:account`.
 * Without an account, all keys of one profile share `acct_<profile>`. `SIMULATOR_SWITCHES` is a JSON
 * object: account to its switches. `SIMULATOR_WEBHOOKS` is a JSON list of endpoints.
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
    keyLifeMs: readInteger(env, 'SIMULATOR_KEY_LIFE_MS', {
      min: 1,
      max: LONGEST_KEY_LIFE_MS,
      fallback: USUAL_SWITCHES.keyLifeMs,
    }),
    switches: readAccountSwitches(env['SIMULATOR_SWITCHES'] || '{}'),
    webhooks: readWebhooks(env['SIMULATOR_WEBHOOKS'] || '[]'),
    webhookRetryDelaysMs: readDelays(env['SIMULATOR_WEBHOOK_RETRY_MS'] || '200,1000,5000,15000,30000'),
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
    const [, key, letter, account] = match ?? [];
    if (!key || !letter) throw new Error(`${place} must have the form key:profile or key:profile:acct_name.`);
    const profile = readProfile(letter);
    if (!profile) {
      throw new Error(`${place} names profile ${letter}; this simulator has ${PROFILES.join(', ')}.`);
    }
    if (accounts.has(key)) throw new Error(`${place} repeats a key.`);
    const name = account ?? `acct_${profile.toLowerCase()}`;
    accounts.set(key, { profile, account: name, credential: credentialOf(key) });
  }
  return accounts;
}

function readProfile(letter: string): Profile | undefined {
  return PROFILES.find((profile) => profile === letter);
}

function readAccountSwitches(text: string): ReadonlyMap<string, Partial<AccountSwitches>> {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new Error('SIMULATOR_SWITCHES must be JSON: account to an object of switches.');
  }
  if (!isRecord(given)) throw new Error('SIMULATOR_SWITCHES must be an object: account to its switches.');
  const switches = new Map<string, Partial<AccountSwitches>>();
  for (const [account, entry] of Object.entries(given)) {
    const read = readSwitches(isRecord(entry) ? entry : { [String(entry)]: null });
    if ('wrong' in read) throw new Error(`SIMULATOR_SWITCHES, ${account}: ${read.wrong}`);
    switches.set(account, read.switches);
  }
  return switches;
}

function readWebhooks(text: string): ReadonlyMap<string, WebhookEndpoint> {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    given = null;
  }
  if (!Array.isArray(given)) throw new Error('SIMULATOR_WEBHOOKS must be a JSON list of endpoints.');
  const endpoints = new Map<string, WebhookEndpoint>();
  for (const [index, entry] of given.entries()) {
    const read = readEndpoint(isRecord(entry) ? entry : {});
    if ('wrong' in read) throw new Error(`SIMULATOR_WEBHOOKS, entry ${index + 1}: ${read.wrong}`);
    endpoints.set(read.endpoint.account, read.endpoint);
  }
  return endpoints;
}

function readDelays(text: string): readonly number[] {
  const delays = text.split(',').map((part) => (/^\d{1,9}$/.test(part.trim()) ? Number(part) : NaN));
  if (delays.some(Number.isNaN)) {
    throw new Error('SIMULATOR_WEBHOOK_RETRY_MS must be whole milliseconds, comma-separated.');
  }
  return delays;
}
