import { z } from 'zod';
import { PEOPLE } from './local-issuer.js';
import type { ProcessCounts, StackPorts } from './ports.js';
import { readJsonFile, writePrivately } from './stack-folder.js';
import type { TemporalTarget } from './temporal/temporal-namespace.js';

/** Keys of older stacks that have no use any more are left out. */
const ApiKeys = z.object({
  /** Creates, reads and cancels payments. */
  client: z.string().min(1),
  client_readonly: z.string().min(1),
  /** A client of another tenant. */
  other_tenant: z.string().min(1),
});
export type ApiKeys = z.infer<typeof ApiKeys>;

/** @throws ZodError when a key is missing. */
export function parseApiKeys(content: unknown): ApiKeys {
  return ApiKeys.parse(content);
}

const StackFile = z.object({
  /** `stopped`: the addresses are those of the last run and nobody answers there. */
  state: z.enum(['running', 'stopped']),
  /** The process that starts and stops the others. */
  supervisor_pid: z.number().int().nullable(),
  api_url: z.string(),
  api_urls: z.array(z.string()),
  health_url: z.string(),
  worker_health_url: z.string(),
  worker_health_urls: z.array(z.string()),
  temporal_address: z.string(),
  temporal_namespace: z.string(),
  /** Null when TEMPORAL_ADDRESS named a server that is not ours. */
  temporal_ui_url: z.string().nullable(),
  simulator_url: z.string(),
  simulator_control_url: z.string(),
  simulator_control_token: z.string(),
  /** A superuser, for looks by hand, tests and measurements: local stacks only. */
  postgres_url: z.string(),
  api_keys: ApiKeys,
  /** Who can log in by `payments token --as <name>`, and the private key that signs. */
  people: z
    .record(z.string(), z.object({ subject: z.string(), tenant: z.string(), roles: z.array(z.string()) }))
    .default({}),
  issuer_key_file: z.string().default(''),
  /** The settings of the operations program on this stack (.env.example). */
  environment: z.record(z.string(), z.string()),
  /** Process ids by name: postgres, temporal, simulator, api, worker, api-2, …; only living ones. */
  pids: z.record(z.string(), z.number().int()),
});

/**
 * What other programs need to know of a local stack: `.local/stack.json`, readable by its owner
 * alone. After a kill of everything `state` still says running: whoever must know asks `api_url`.
 */
export type StackFile = z.infer<typeof StackFile>;

export function writeStackFile(file: string, content: StackFile): void {
  writePrivately(file, content);
}

/** @returns the last run's content, or null when there was none or it has another form. */
export function readStackFile(file: string): StackFile | null {
  const parsed = StackFile.safeParse(readJsonFile(file));
  return parsed.success ? parsed.data : null;
}

/** Says that nothing of the stack runs. Twice, or without a file, changes nothing. */
export function markStopped(file: string): void {
  const content = readStackFile(file);
  if (content) writeStackFile(file, { ...content, state: 'stopped', supervisor_pid: null, pids: {} });
}

export interface StackParts {
  readonly ports: StackPorts;
  readonly counts: ProcessCounts;
  readonly temporal: TemporalTarget;
  readonly postgresUrl: string;
  readonly simulatorControlToken: string;
  readonly apiKeys: ApiKeys;
  readonly issuerKeyFile: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Null: the process does not run now. */
  readonly pids: readonly (readonly [name: string, pid: number | null])[];
}

/** The content of stack.json for a stack that runs. */
export function describeStack(parts: StackParts): StackFile {
  const { ports, counts, temporal } = parts;
  const loopback = (port: number | undefined) => `http://127.0.0.1:${port}`;
  return {
    state: 'running',
    supervisor_pid: process.pid,
    api_url: loopback(ports.apis[0]?.port),
    api_urls: ports.apis.slice(0, counts.apis).map((api) => loopback(api.port)),
    health_url: loopback(ports.apis[0]?.health),
    worker_health_url: loopback(ports.workers[0]?.health),
    worker_health_urls: ports.workers.slice(0, counts.workers).map((worker) => loopback(worker.health)),
    temporal_address: temporal.address,
    temporal_namespace: temporal.namespace,
    temporal_ui_url: temporal.isOurs ? loopback(ports.temporalUi) : null,
    simulator_url: loopback(ports.simulator),
    simulator_control_url: loopback(ports.simulatorControl),
    simulator_control_token: parts.simulatorControlToken,
    postgres_url: parts.postgresUrl,
    api_keys: parts.apiKeys,
    people: Object.fromEntries(
      Object.entries(PEOPLE).map(([name, person]) => [name, { ...person, roles: [...person.roles] }]),
    ),
    issuer_key_file: parts.issuerKeyFile,
    environment: parts.environment,
    pids: Object.fromEntries(parts.pids.filter((entry): entry is [string, number] => entry[1] !== null)),
  };
}
