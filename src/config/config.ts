import { z } from 'zod';
import { DatabaseEnvironment, databaseSettingsOf, type DatabaseSettings } from './database-settings.js';
import { EdgeEnvironment, edgeSettingsOf, type EdgeSettings } from './edge-settings.js';
import { refuseDevelopmentValues, type ProductionValues } from './production-refusals.js';
import { withSecretFiles } from './secret-files.js';
import { StripeEnvironment, stripeSettingsOf } from './stripe-settings.js';
import type { StripeSettings } from './stripe-settings.js';
import { TemporalEnvironment, temporalSettingsOf, type TemporalSettings } from './temporal-settings.js';
import {
  WebhookOutEnvironment,
  webhookOutSettingsOf,
  type WebhookOutSettings,
} from './webhook-out-settings.js';

export { readKeysFile, type KeysFile } from './key-file.js';

/**
 * Reads and validates the environment once. Every process takes its settings from the one typed
 * object that `readConfig` returns; nothing else reads `process.env`.
 */

const port = z.coerce.number().int().min(1).max(65_535);
const positive = z.coerce.number().positive();
const integer = z.coerce.number().int().nonnegative();

const Environment = z.object({
  PAYMENTS_MODE: z.enum(['development', 'production']).default('development'),
  ...DatabaseEnvironment,
  PAYMENTS_KEYS_FILE: z.string().min(1),
  PAYMENTS_ANCHOR_DIR: z.string().min(1).optional(),
  ...TemporalEnvironment,
  PAYMENTS_API_HOST: z.string().min(1).default('127.0.0.1'),
  PAYMENTS_API_PORT: port.default(3000),
  PAYMENTS_HEALTH_HOST: z.string().min(1).default('127.0.0.1'),
  PAYMENTS_HEALTH_PORT: port.default(3001),
  PAYMENTS_LOG_LEVEL: z.enum(['silent', 'fatal', 'error', 'warn', 'info', 'debug']).default('info'),
  PAYMENTS_PROVIDER: z.string().min(1).default('simulated'),
  PAYMENTS_SIMULATOR_URL: z.url({ protocol: /^https?$/ }).optional(),
  PAYMENTS_SIMULATOR_API_KEY: z.string().min(1).optional(),
  PAYMENTS_SIMULATOR_API_KEY_B: z.string().min(1).optional(),
  PAYMENTS_SIMULATOR_API_KEY_C: z.string().min(1).optional(),
  PAYMENTS_SIMULATOR_API_KEY_D: z.string().min(1).optional(),
  PAYMENTS_SIMULATOR_API_KEY_T: z.string().min(1).optional(),
  ...StripeEnvironment,
  PAYMENTS_OIDC_ISSUER: z.url({ protocol: /^https?$/ }).optional(),
  PAYMENTS_OIDC_AUDIENCE: z.string().min(1).optional(),
  PAYMENTS_OIDC_JWKS: z.url({ protocol: /^(https?|file)$/ }).optional(),
  PAYMENTS_OIDC_MFA_ACR: z.string().optional(),
  PAYMENTS_WEBHOOK_SECRETS: z.string().optional(),
  ...WebhookOutEnvironment,
  ...EdgeEnvironment,
  PAYMENTS_HORIZON_DAYS: positive.default(366),
  PAYMENTS_MAX_ARMED: integer.min(1).default(5_000),
  PAYMENTS_LADDER_DIVISOR: positive.default(1),
});

/** The simulated providers: one for each profile whose key is set; A always is. */
export interface SimulatorConfig {
  readonly url: string;
  /** By profile; no two are equal: an account promises one thing. */
  readonly apiKeys: Readonly<Partial<Record<'A' | 'B' | 'C' | 'D' | 'T', string>>>;
}

export interface Config {
  readonly mode: 'development' | 'production';
  readonly database: DatabaseSettings;
  readonly keysFile: string;
  /** Where workers copy anchors to, outside the database; null: nowhere. */
  readonly anchorFolder: string | null;
  readonly temporal: TemporalSettings;
  readonly api: { readonly host: string; readonly port: number };
  /** /livez, /readyz and /metrics: never the API's own port. */
  readonly health: { readonly host: string; readonly port: number };
  readonly logLevel: 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug';
  /** The provider a payment gets when its create names none. */
  readonly defaultProvider: string;
  readonly simulator: SimulatorConfig | null;
  /** null: Stripe is no provider of this process. */
  readonly stripe: StripeSettings | null;
  /** Whose tokens let people in; null: nobody's, and only API keys open anything. */
  readonly oidc: OidcConfig | null;
  /**
   * `<provider>/<account>` to the secrets that sign its events: one, or two while one is replaced. An
   * account without an entry has no webhooks here.
   */
  readonly webhookSecrets: ReadonlyMap<string, readonly string[]>;
  /** Where events may be sent to clients, and by which way. */
  readonly webhookOut: WebhookOutSettings;
  /** How fast callers may call the API, and which proxies it believes. */
  readonly edge: EdgeSettings;
  /** How far ahead `execute_at` may lie, in days. */
  readonly horizonDays: number;
  /** Payments that one worker holds armed at once; each takes two activity slots. */
  readonly maxArmed: number;
  /** Test rigs divide the times of the inquiry ladder by this; 1 everywhere else. */
  readonly ladderDivisor: number;
}

export interface OidcConfig {
  /** The exact `iss` of its tokens. */
  readonly issuer: string;
  /** The `aud` that names this service. */
  readonly audience: string;
  /** Where its key set (RFC 7517) is read: https, file, or http outside production. */
  readonly keySetUrl: string;
  /** Values of `acr` that mean a second factor, beside `amr` with `mfa`. */
  readonly secondFactorAcr: readonly string[];
}

/**
 * @param env the environment to read, usually `process.env`.
 * @throws Error naming every variable that is missing or wrong; never their values.
 */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const parsed = Environment.safeParse(withSecretFiles(env));
  if (!parsed.success) {
    const wrong = parsed.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`);
    throw new Error(`The environment is not usable. ${wrong.join('; ')}. See .env.example.`);
  }
  const e = parsed.data;
  const config: Config = Object.freeze({
    mode: e.PAYMENTS_MODE,
    database: databaseSettingsOf(e),
    keysFile: e.PAYMENTS_KEYS_FILE,
    anchorFolder: e.PAYMENTS_ANCHOR_DIR ?? null,
    temporal: temporalSettingsOf(e, e.PAYMENTS_MODE),
    api: { host: e.PAYMENTS_API_HOST, port: e.PAYMENTS_API_PORT },
    health: { host: e.PAYMENTS_HEALTH_HOST, port: e.PAYMENTS_HEALTH_PORT },
    logLevel: e.PAYMENTS_LOG_LEVEL,
    defaultProvider: e.PAYMENTS_PROVIDER,
    simulator: simulatorOf(e),
    stripe: stripeSettingsOf(e, e.PAYMENTS_MODE),
    oidc: oidcOf(e),
    webhookSecrets: webhookSecretsOf(e),
    webhookOut: webhookOutSettingsOf(e, e.PAYMENTS_MODE),
    edge: edgeSettingsOf(e, e.PAYMENTS_MODE),
    horizonDays: e.PAYMENTS_HORIZON_DAYS,
    maxArmed: e.PAYMENTS_MAX_ARMED,
    ladderDivisor: e.PAYMENTS_LADDER_DIVISOR,
  });
  if (config.mode === 'production') refuseDevelopmentValues(productionValuesOf(e));
  return config;
}

function productionValuesOf(e: z.infer<typeof Environment>): ProductionValues {
  const urls = Object.entries(e).filter((entry) => /^PAYMENTS_([A-Z]+_)?DATABASE_URL$/.test(entry[0]));
  return {
    databaseUrls: Object.fromEntries(urls.filter((entry): entry is [string, string] => Boolean(entry[1]))),
    defaultProvider: e.PAYMENTS_PROVIDER,
    hasSimulator: Object.entries(e).some(
      ([name, value]) => name.startsWith('PAYMENTS_SIMULATOR_') && value !== undefined,
    ),
    oidcIssuer: e.PAYMENTS_OIDC_ISSUER,
    ladderDivisor: e.PAYMENTS_LADDER_DIVISOR,
  };
}

function oidcOf(e: z.infer<typeof Environment>): OidcConfig | null {
  const issuer = e.PAYMENTS_OIDC_ISSUER;
  const audience = e.PAYMENTS_OIDC_AUDIENCE;
  const keySetUrl = e.PAYMENTS_OIDC_JWKS;
  if (issuer === undefined && audience === undefined && keySetUrl === undefined) return null;
  if (issuer === undefined || audience === undefined || keySetUrl === undefined) {
    throw new Error(
      'PAYMENTS_OIDC_ISSUER, PAYMENTS_OIDC_AUDIENCE and PAYMENTS_OIDC_JWKS go together: set all or none.',
    );
  }
  if (e.PAYMENTS_MODE === 'production' && keySetUrl.startsWith('http:')) {
    throw new Error('PAYMENTS_OIDC_JWKS is http: in production, where anybody on the way could change keys.');
  }
  const secondFactorAcr = (e.PAYMENTS_OIDC_MFA_ACR ?? '').split(' ').filter((acr) => acr !== '');
  return Object.freeze({ issuer, audience, keySetUrl, secondFactorAcr });
}

function simulatorOf(e: z.infer<typeof Environment>): SimulatorConfig | null {
  const apiKeys = {
    A: e.PAYMENTS_SIMULATOR_API_KEY,
    B: e.PAYMENTS_SIMULATOR_API_KEY_B,
    C: e.PAYMENTS_SIMULATOR_API_KEY_C,
    D: e.PAYMENTS_SIMULATOR_API_KEY_D,
    T: e.PAYMENTS_SIMULATOR_API_KEY_T,
  };
  const given = Object.values(apiKeys).filter((key) => key !== undefined);
  const url = e.PAYMENTS_SIMULATOR_URL;
  if (url === undefined && given.length === 0) return null;
  if (url === undefined || apiKeys.A === undefined) {
    throw new Error(
      'PAYMENTS_SIMULATOR_URL and PAYMENTS_SIMULATOR_API_KEY go together: set both or none, and the keys ' +
        'of other profiles (PAYMENTS_SIMULATOR_API_KEY_B, _C, _D, _T) only beside them.',
    );
  }
  if (new Set(given).size < given.length) {
    throw new Error('Two profiles of the simulator have one API key. Each needs a key of its own.');
  }
  return { url, apiKeys };
}

const WebhookSecrets = z.record(
  z.string().regex(/^[a-z0-9_-]+\/[\w.-]+$/),
  z.array(z.string().min(16).max(512)).min(1).max(2),
);

function webhookSecretsOf(e: z.infer<typeof Environment>): ReadonlyMap<string, readonly string[]> {
  let json: unknown;
  try {
    json = JSON.parse(e.PAYMENTS_WEBHOOK_SECRETS ?? '{}');
  } catch {
    // The parser's own words quote the text.
    throw new Error('The webhook secrets are not JSON. See .env.example.');
  }
  const parsed = WebhookSecrets.safeParse(json);
  if (!parsed.success) {
    throw new Error('The webhook secrets do not have the expected form. See .env.example.');
  }
  return new Map(Object.entries(parsed.data));
}
