import { randomBytes } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { request as httpRequest, Agent, type Dispatcher } from 'undici';
import { createApiApp } from '../../src/app.factory.js';
import { createApiKey } from '../../src/auth/api-key.store.js';
import type { Scope } from '../../src/auth/scopes.js';
import { readConfig, type Config, type KeysFile } from '../../src/config/config.js';
import { ensureLanes } from '../../src/lanes/lane.store.js';
import type { Database } from '../../src/persistence/database.js';
import { createLogger } from '../../src/platform/logger.js';
import { registryOf, type ProviderRegistry } from '../../src/providers/provider-registry.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { seedTenant, unique, type TenantSeed } from './builders.js';
import { homeOf, isWorkers, type TestDatabase } from './database.js';
import { createTestIssuer, type TokenSeed } from './people.js';

/** Every scope that a key can hold. */
export const ALL_SCOPES: readonly Scope[] = [
  'payments:create',
  'payments:read',
  'payments:cancel',
  'payments:update',
  'webhooks:manage',
];

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The text as JSON; undefined when it is empty. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; text is sent as it is. */
  readonly body?: unknown;
}

/** One credential's way to the API. */
export interface Client {
  readonly tenant: string;
  readonly key: string;
  get(path: string, headers?: CallOptions['headers']): Promise<ApiAnswer>;
  post(path: string, options?: CallOptions): Promise<ApiAnswer>;
  delete(path: string): Promise<ApiAnswer>;
  /** POST /v1/payments with a valid body, changed by `members`; a key of its own unless given. */
  create(members?: Readonly<Record<string, unknown>>, idempotencyKey?: string): Promise<ApiAnswer>;
}

export interface TestApi {
  readonly url: string;
  readonly app: NestFastifyApplication;
  readonly config: Config;
  readonly keys: KeysFile;
  /** Every line the API has logged. */
  readonly logLines: readonly string[];
  /** How often the outbox was nudged. */
  nudges(): number;
  /** A tenant of its own and a key for it. */
  client(options?: {
    readonly tenant?: TenantSeed | string;
    readonly scopes?: readonly Scope[];
  }): Promise<Client>;
  /** A person of the tenant; the usual one is an operator. Only with the issuer that the rig makes itself. */
  person(tenant: string, seed?: TokenSeed): Promise<Client>;
  /** A way in with any credential, or none. */
  as(key: string | null, tenant?: string): Client;
  close(): Promise<void>;
}

export interface TestApiOptions {
  /**
   * The database under test; its worker's pool stands for it, and the API gets pools of its own roles.
   * Any other pool is the API's own.
   */
  readonly database: Database;
  /** Where tenants and keys are made, for a `database` that no test database made. */
  readonly home?: TestDatabase;
  readonly env?: Readonly<Record<string, string>>;
  readonly keys?: KeysFile;
  readonly providers?: ProviderRegistry;
}

const keySet = () => ({ active: 'test-1', keys: { 'test-1': randomBytes(32).toString('base64') } });

/** Keys of one test; nothing outlives it. */
export function testKeys(): KeysFile {
  return {
    development: true,
    encryption: keySet(),
    digest: keySet(),
    pepper: keySet(),
    cursor: keySet(),
  };
}

/** A body that is accepted: in a day, so nothing is due while a test runs. */
export function validCreate(members: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    amount: 1999,
    currency: 'EUR',
    destination: 'acct_1032D82eZvKYlo2C',
    execute_at: inHours(24),
    ...members,
  };
}

/** A century: tests can name a day without failing on a later one. */
export const FAR_HORIZON = { PAYMENTS_HORIZON_DAYS: '36500' } as const;

/** An instant so many hours from now on this machine's clock, as a client writes it. */
export function inHours(hours: number): string {
  return new Date(Date.now() + hours * 3_600_000).toISOString();
}

/** A test may ask as often as it likes, unless limits are what it is about. */
const WIDE_LIMITS = {
  PAYMENTS_RATE_LIMIT_CLIENT: '100000/100000',
  PAYMENTS_RATE_LIMIT_TENANT: '100000/100000',
} as const;

/** Starts the API of this process's code on a free port of the loopback, on the given database. */
export async function startTestApi(options: TestApiOptions): Promise<TestApi> {
  const issuer = await createTestIssuer();
  const config = readConfig({
    PAYMENTS_DATABASE_URL: 'postgres://127.0.0.1/never-used',
    PAYMENTS_KEYS_FILE: 'never-read',
    ...issuer.env,
    ...WIDE_LIMITS,
    ...options.env,
  });
  const keys = options.keys ?? testKeys();
  const logLines: string[] = [];
  const log = createLogger({
    level: 'debug',
    name: 'api',
    destination: { write: (line) => void logLines.push(line) },
  });
  // Nothing listens there: a create must not need the provider.
  const providers =
    options.providers ??
    registryOf([new SimulatedProvider({ baseUrl: 'http://127.0.0.1:9', apiKey: 'sk_test' })]);
  let nudges = 0;
  const outbox = { nudge: () => void nudges++ };
  const home = options.home ?? homeOf(options.database);
  const database = home && isWorkers(options.database) ? home.as('payments_api', 'api') : options.database;
  const relayDatabase = home?.as('payments_relay', 'api-relay', 3) ?? options.database;
  const app = await createApiApp({ config, keys, log, database, relayDatabase, providers, outbox });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  let admin: Database | null = null;
  const dispatcher = new Agent({ connections: 64 });
  const as = (key: string | null, tenant = 'none'): Client => clientOf({ url, key, tenant, dispatcher });
  return {
    url,
    app,
    config,
    keys,
    logLines,
    nudges: () => nudges,
    as,
    client: async ({ tenant, scopes = ALL_SCOPES } = {}) => {
      if (!home) throw new Error('The API of this test has no database to make a tenant in.');
      const id = typeof tenant === 'string' ? tenant : await seedTenant(home.database, tenant);
      admin ??= home.as('payments_admin', 'admin', 2);
      const made = await createApiKey(admin, keys, {
        tenantId: id,
        name: unique('key'),
        scopes,
        mode: 'test',
      });
      await ensureLanes(
        home.database,
        providers.names().flatMap((name) => providers.get(name) ?? []),
      );
      return as(made.text, id);
    },
    person: async (tenant, seed = {}) => {
      if (config.oidc?.keySetUrl !== issuer.env['PAYMENTS_OIDC_JWKS']) {
        throw new Error('This API knows another issuer: sign with that one.');
      }
      return as(await issuer.token({ tenant, ...seed }), tenant);
    },
    close: async () => {
      issuer.close();
      await dispatcher.destroy();
      await app.close();
      await providers.closeAll();
    },
  };
}

function clientOf(of: {
  readonly url: string;
  readonly key: string | null;
  readonly tenant: string;
  readonly dispatcher: Dispatcher;
}): Client {
  const send = async (
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    { headers = {}, body }: CallOptions,
  ) => {
    const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await httpRequest(of.url + path, {
      method,
      dispatcher: of.dispatcher,
      headers: {
        ...(of.key === null ? {} : { authorization: `Bearer ${of.key}` }),
        ...(text === null ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: text,
    });
    const received = await answer.body.text();
    return {
      status: answer.statusCode,
      headers: answer.headers,
      text: received,
      body: received === '' ? undefined : (JSON.parse(received) as unknown),
    };
  };
  return {
    tenant: of.tenant,
    key: of.key ?? '',
    get: (path, headers = {}) => send('GET', path, { headers }),
    post: (path, options = {}) => send('POST', path, options),
    delete: (path) => send('DELETE', path, {}),
    create: (members = {}, idempotencyKey = unique('order')) =>
      send('POST', '/v1/payments', {
        headers: { 'idempotency-key': idempotencyKey },
        body: validCreate(members),
      }),
  };
}
