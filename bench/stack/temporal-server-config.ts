import { stringify } from 'yaml';

/** Every port of one full server, all on 127.0.0.1. */
export interface TemporalServerPorts {
  readonly frontend: number;
  readonly frontendHttp: number;
  readonly history: number;
  readonly matching: number;
  readonly worker: number;
  /** Gossip of frontend, history, matching and worker, in this order. */
  readonly membership: readonly [number, number, number, number];
}

export interface TemporalServerConfig {
  readonly ports: TemporalServerPorts;
  readonly database: { readonly port: number; readonly user: string; readonly password: string };
  readonly databases: { readonly temporal: string; readonly visibility: string };
  readonly dynamicConfigFile: string;
}

/** Fixed for the life of a cluster. The default of 4 caps what one server does at once. */
export const HISTORY_SHARDS = 512;
const CONNECTIONS = { temporal: 20, visibility: 5 } as const;

/** The server's configuration file: all four services in one process, both stores in one Postgres. */
export function temporalServerYaml(config: TemporalServerConfig): string {
  const { ports } = config;
  const store = (name: 'temporal' | 'visibility'): unknown => ({
    sql: {
      pluginName: 'postgres12_pgx',
      databaseName: config.databases[name],
      connectAddr: `127.0.0.1:${config.database.port}`,
      connectProtocol: 'tcp',
      user: config.database.user,
      password: config.database.password,
      maxConns: CONNECTIONS[name],
      maxIdleConns: CONNECTIONS[name],
      maxConnLifetime: '1h',
    },
  });
  const service = (grpcPort: number, membershipPort: number, more: object = {}): unknown => ({
    rpc: { grpcPort, membershipPort, bindOnIP: '127.0.0.1', ...more },
  });
  const [frontendGossip, historyGossip, matchingGossip, workerGossip] = ports.membership;
  return stringify({
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: HISTORY_SHARDS,
      datastores: { default: store('temporal'), visibility: store('visibility') },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services: {
      frontend: service(ports.frontend, frontendGossip, { httpPort: ports.frontendHttp }),
      history: service(ports.history, historyGossip),
      matching: service(ports.matching, matchingGossip),
      worker: service(ports.worker, workerGossip),
    },
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: {
          enabled: true,
          initialFailoverVersion: 1,
          rpcName: 'frontend',
          rpcAddress: `127.0.0.1:${ports.frontend}`,
        },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    dynamicConfigClient: { filepath: config.dynamicConfigFile, pollInterval: '10s' },
  });
}

/** The same limits as the local stack's server, in the form of the full server's file. */
export function dynamicConfigYaml(values: Readonly<Record<string, string | number | boolean>>): string {
  return stringify(
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, [{ value, constraints: {} }]])),
  );
}
