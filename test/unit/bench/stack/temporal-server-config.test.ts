import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { dynamicConfigYaml, temporalServerYaml } from '../../../../bench/stack/temporal-server-config.js';

const ports = {
  frontend: 1,
  frontendHttp: 2,
  history: 3,
  matching: 4,
  worker: 5,
  membership: [6, 7, 8, 9],
} as const;

interface Service {
  readonly rpc: { readonly bindOnIP: string; readonly grpcPort: number; readonly membershipPort: number };
}

describe('the configuration of the full Temporal server', () => {
  const config = parse(
    temporalServerYaml({
      ports,
      database: { port: 10, user: 'temporal', password: '0123' },
      databases: { temporal: 'temporal_7', visibility: 'visibility_7' },
      dynamicConfigFile: '/some/file.yaml',
    }),
  ) as {
    persistence: { numHistoryShards: number; datastores: Record<string, { sql: Record<string, unknown> }> };
    services: Record<string, Service>;
  };

  it('binds every service to the loopback address, each on ports of its own', () => {
    const services = Object.values(config.services);
    expect(services.map((service) => service.rpc.bindOnIP)).toEqual(Array(4).fill('127.0.0.1'));
    const taken = services.flatMap(({ rpc }) => [rpc.grpcPort, rpc.membershipPort]);
    expect(new Set(taken).size).toBe(8);
  });

  it('keeps both stores in the databases of the run, under 512 shards', () => {
    expect(config.persistence.numHistoryShards).toBe(512);
    const { default: store, visibility } = config.persistence.datastores;
    expect(store?.sql).toMatchObject({ databaseName: 'temporal_7', connectAddr: '127.0.0.1:10' });
    expect(visibility?.sql).toMatchObject({ databaseName: 'visibility_7' });
    // A password of digits alone must stay text.
    expect(store?.sql['password']).toBe('0123');
  });

  it("takes over the local stack's limits in the server's own form", () => {
    expect(parse(dynamicConfigYaml({ 'frontend.rps': 20_000 }))).toEqual({
      'frontend.rps': [{ value: 20_000, constraints: {} }],
    });
  });
});
