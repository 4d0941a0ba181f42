import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { issuerSettings } from './local-issuer.js';
import { webhookEndpoints } from './local-webhooks.js';
import { until } from './pacing.js';
import type { StackPorts } from './ports.js';
import type { StackRole } from './postgres/postgres-server.js';
import { StackError } from './stack-error.js';
import type { StackFolder } from './stack-folder.js';
import type { ProcessSpec } from './process/supervised-process.js';
import type { TemporalTarget } from './temporal/temporal-namespace.js';

/** Bearer keys of the simulated providers by profile: each has an account of its own. */
const SIMULATOR_KEYS = {
  A: 'sk_sim_a',
  B: 'sk_sim_b',
  C: 'sk_sim_c',
  D: 'sk_sim_d',
  T: 'sk_sim_t',
} as const;

const PROBE_WITHIN_MS = 2_000;

export interface ServiceContext {
  readonly root: string;
  readonly folder: StackFolder;
  readonly ports: StackPorts;
  /** The environment to start from; ours goes on top of it. */
  readonly env: NodeJS.ProcessEnv;
  /** Connection strings of the roles; null before the database server is set up: the simulator needs none. */
  readonly databaseUrl: ((role: StackRole) => string) | null;
  readonly temporal: TemporalTarget;
  readonly simulatorControlToken: string;
  readonly sendsWebhooks: boolean;
}

/** What the runner of this program left in the environment and no child should see. */
const NOT_INHERITED = /^(npm_|VITEST|NODE_ENV$|NODE_V8_COVERAGE$|PAYMENTS_([A-Z]+_)?DATABASE_URL)/;

/** The environment without the runner's own variables, and with loopback kept away from any proxy. */
export function inheritedEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !NOT_INHERITED.test(name)));
  const noProxy = [env['no_proxy'] ?? env['NO_PROXY'], '127.0.0.1', 'localhost'].filter(Boolean).join(',');
  return { ...kept, no_proxy: noProxy, NO_PROXY: noProxy };
}

/** The settings that API, worker and operations program share (names: src/config/config.ts). */
function sharedSettings(context: ServiceContext): Record<string, string> {
  return {
    PAYMENTS_MODE: 'development',
    PAYMENTS_KEYS_FILE: context.folder.keysFile,
    PAYMENTS_ANCHOR_DIR: context.folder.anchors,
    ...issuerSettings(context.folder),
    PAYMENTS_TEMPORAL_ADDRESS: context.temporal.address,
    PAYMENTS_TEMPORAL_NAMESPACE: context.temporal.namespace,
    // Wide enough for a load test; the default is for a service that is shared.
    PAYMENTS_RATE_LIMIT_CLIENT: '20000/20000',
    PAYMENTS_RATE_LIMIT_TENANT: '20000/20000',
    PAYMENTS_API_HOST: '127.0.0.1',
    PAYMENTS_HEALTH_HOST: '127.0.0.1',
    PAYMENTS_SIMULATOR_URL: `http://127.0.0.1:${context.ports.simulator}`,
    PAYMENTS_SIMULATOR_API_KEY: SIMULATOR_KEYS.A,
    PAYMENTS_SIMULATOR_API_KEY_B: SIMULATOR_KEYS.B,
    PAYMENTS_SIMULATOR_API_KEY_C: SIMULATOR_KEYS.C,
    PAYMENTS_SIMULATOR_API_KEY_D: SIMULATOR_KEYS.D,
    PAYMENTS_SIMULATOR_API_KEY_T: SIMULATOR_KEYS.T,
  };
}

/** Whose log-in each variable holds. The first is that of whoever works on payments. */
const LOG_INS = {
  api: { PAYMENTS_DATABASE_URL: 'payments_api', PAYMENTS_RELAY_DATABASE_URL: 'payments_relay' },
  worker: {
    PAYMENTS_DATABASE_URL: 'payments_worker',
    PAYMENTS_RELAY_DATABASE_URL: 'payments_relay',
    PAYMENTS_READ_DATABASE_URL: 'payments_read',
  },
  operations: {
    PAYMENTS_DATABASE_URL: 'payments_worker',
    PAYMENTS_READ_DATABASE_URL: 'payments_read',
    PAYMENTS_ADMIN_DATABASE_URL: 'payments_admin',
    PAYMENTS_AUDITOR_DATABASE_URL: 'payments_auditor',
    PAYMENTS_OWNER_DATABASE_URL: 'payments_owner',
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, StackRole>>>>;

function logIns({ databaseUrl }: ServiceContext, of: keyof typeof LOG_INS): Record<string, string> {
  if (databaseUrl === null) return {};
  return Object.fromEntries(Object.entries(LOG_INS[of]).map(([name, role]) => [name, databaseUrl(role)]));
}

/** The settings of the command line: those of the processes, and every log-in that a command has use for. */
export function operationsSettings(context: ServiceContext): Record<string, string> {
  return { ...sharedSettings(context), ...logIns(context, 'operations') };
}

/** The environment of the operations program. */
export function operationsEnvironment(context: ServiceContext): NodeJS.ProcessEnv {
  return { ...inheritedEnvironment(context.env), ...operationsSettings(context) };
}

function program(context: ServiceContext, name: string): string {
  const file = join(context.root, 'dist', 'src', `${name}.js`);
  if (!existsSync(file)) throw new StackError(`${file} is missing. Run \`npm run build\`.`);
  return file;
}

/** The provider simulator; ready when it says so, with both ports open. */
export function simulatorSpec(context: ServiceContext): ProcessSpec {
  const { ports } = context;
  const apiPort = ports.apis[0]?.port;
  if (apiPort === undefined) throw new Error('No port is planned for the first API.');
  const profiles = Object.entries(SIMULATOR_KEYS).map(([profile, key]) => `${key}:${profile}`);
  return {
    name: 'simulator',
    command: process.execPath,
    args: [program(context, 'main-simulator')],
    env: {
      ...inheritedEnvironment(context.env),
      SIMULATOR_HOST: '127.0.0.1',
      SIMULATOR_PORT: String(ports.simulator),
      SIMULATOR_CONTROL_PORT: String(ports.simulatorControl),
      SIMULATOR_CONTROL_TOKEN: context.simulatorControlToken,
      SIMULATOR_LEDGER_FILE: context.folder.simulatorLedger,
      SIMULATOR_PROFILE_KEYS: profiles.join(','),
      SIMULATOR_WEBHOOKS: context.sendsWebhooks ? webhookEndpoints(context.folder, apiPort) : '[]',
    },
    cwd: context.root,
    ready: (output, signal) => until(() => /"ready":\s*true/.test(output.text()), signal),
    readyWithinMs: 30_000,
    stopSignal: 'SIGTERM',
    stopWithinMs: 5_000,
  };
}

/** "api", "api-2", "api-3", … */
export function numbered(name: string, index: number): string {
  return index === 0 ? name : `${name}-${index + 1}`;
}

interface PaymentsProcess {
  readonly name: string;
  readonly program: string;
  readonly logIns: keyof typeof LOG_INS;
  /** Of Node, before the program. */
  readonly flags: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly health: number;
  readonly stopWithinMs: number;
}

/** Ready when /readyz on its health port answers 200. */
function paymentsSpec(context: ServiceContext, own: PaymentsProcess): ProcessSpec {
  return {
    name: own.name,
    command: process.execPath,
    args: [...own.flags, program(context, own.program)],
    env: {
      ...inheritedEnvironment(context.env),
      ...sharedSettings(context),
      ...logIns(context, own.logIns),
      PAYMENTS_HEALTH_PORT: String(own.health),
      ...own.env,
    },
    cwd: context.root,
    ready: (_output, signal) => until(() => answersOk(`http://127.0.0.1:${own.health}/readyz`), signal),
    readyWithinMs: 60_000,
    stopSignal: 'SIGTERM',
    stopWithinMs: own.stopWithinMs,
  };
}

/** One API process of the stack. */
export function apiSpec(context: ServiceContext, index: number): ProcessSpec {
  const own = context.ports.apis[index];
  if (!own) throw new Error(`No port is planned for API ${index}.`);
  return paymentsSpec(context, {
    name: numbered('api', index),
    program: 'main-api',
    logIns: 'api',
    flags: [],
    env: {
      PAYMENTS_API_PORT: String(own.port),
      PAYMENTS_WEBHOOK_SECRETS_FILE: context.folder.webhookSecretsFile,
    },
    health: own.health,
    stopWithinMs: 15_000,
  });
}

/**
 * Young objects in 48 MiB: what 2,000 payments leave behind when they were armed stays resident otherwise.
 * Half of that makes a burst of 500 a fifth later. As .env.example says of workers that are started by hand.
 */
const WORKER_FLAGS = ['--max-semi-space-size=16'];

/** One worker of the stack. It may finish its provider calls when it is stopped. */
export function workerSpec(context: ServiceContext, index: number): ProcessSpec {
  const own = context.ports.workers[index];
  if (!own) throw new Error(`No port is planned for worker ${index}.`);
  return paymentsSpec(context, {
    name: numbered('worker', index),
    program: 'main-worker',
    logIns: 'worker',
    flags: WORKER_FLAGS,
    env: {},
    health: own.health,
    stopWithinMs: 45_000,
  });
}

async function answersOk(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(PROBE_WITHIN_MS) });
    await answer.body?.cancel();
    return answer.status === 200;
  } catch {
    return false; // Not listening yet, or busy: the caller's limit decides.
  }
}
