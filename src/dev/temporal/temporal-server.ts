import type { ResolvedBinary } from './binary-resolver.js';
import type { StackFolder } from '../stack-folder.js';
import type { StackSettings } from '../stack-settings.js';
import type { ProcessSpec } from '../process/supervised-process.js';
import { namespaceAnswers } from './temporal-namespace.js';

export interface TemporalServerOptions {
  readonly binary: ResolvedBinary;
  readonly folder: StackFolder;
  readonly port: number;
  readonly uiPort: number;
  readonly namespace: string;
  readonly settings: StackSettings['temporal'];
}

/** Arguments of the development server. A database file, because without one a kill is a wipe. */
export function temporalArguments(options: TemporalServerOptions): string[] {
  const { settings } = options;
  const pairs = (flag: string, values: Readonly<Record<string, unknown>>, show: (value: unknown) => string) =>
    Object.entries(values).flatMap(([key, value]) => [flag, `${key}=${show(value)}`]);
  return [
    'server',
    'start-dev',
    ...['--ip', '127.0.0.1', '--port', String(options.port)],
    ...['--ui-ip', '127.0.0.1', '--ui-port', String(options.uiPort)],
    ...['--namespace', options.namespace],
    ...['--db-filename', options.folder.temporalDatabase],
    ...['--log-level', 'warn'],
    ...pairs('--sqlite-pragma', settings.sqlite_pragmas, String),
    ...pairs('--search-attribute', settings.search_attributes, String),
    ...pairs('--dynamic-config-value', settings.dynamic_config, JSON.stringify),
  ];
}

/** How the development server is run. Its readiness is an answer over gRPC for the namespace. */
export function temporalSpec(options: TemporalServerOptions): ProcessSpec {
  const address = `127.0.0.1:${options.port}`;
  const target = { address, namespace: options.namespace, isOurs: true };
  return {
    name: 'temporal',
    command: options.binary.path,
    args: temporalArguments(options),
    env: { ...process.env, TEMPORAL_VERSION_CHECK_DISABLED: 'true' },
    cwd: options.folder.path,
    ready: (_output, signal) => namespaceAnswers(target, signal),
    readyWithinMs: 60_000,
    stopSignal: 'SIGTERM',
    stopWithinMs: 15_000,
  };
}
