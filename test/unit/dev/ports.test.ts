import { createServer } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { portsFrom, requireFreePorts, reservePortBlock } from '../../../src/dev/ports.js';
import { projectRoot, readStackSettings } from '../../../src/dev/stack-settings.js';

const settings = readStackSettings(projectRoot());

async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe('ports of a local stack', () => {
  it('never gives one port to two of up to ten APIs and ten workers', () => {
    const ports = portsFrom(settings, 20_000, { apis: 10, workers: 10 });
    const all = [
      ...ports.apis.flatMap((api) => [api.port, api.health]),
      ...ports.workers.map((worker) => worker.health),
      ports.temporal,
      ports.temporalUi,
      ports.simulator,
      ports.simulatorControl,
      ports.postgres,
      20_000 + settings.ports.offsets.reservation,
    ];
    expect(new Set(all).size).toBe(all.length);
    expect(all.every((port) => port >= 20_000 && port < 20_100)).toBe(true);
  });

  it('refuses more of a kind than the block has room for', () => {
    expect(() => portsFrom(settings, 20_000, { apis: 11, workers: 1 })).toThrow('0 to 10 apis, not 11');
    expect(() => portsFrom(settings, 20_000, { apis: 1, workers: -1 })).toThrow('0 to 10 workers, not -1');
  });

  it('names the port that another program holds and what it was wanted for', async () => {
    const reservation = await reservePortBlock(settings);
    onTestFinished(() => reservation.release());
    const ports = portsFrom(settings, reservation.base, { apis: 1, workers: 1 });
    await requireFreePorts(ports);
    const taken = { ...ports, postgres: await takenPort() };
    await expect(requireFreePorts(taken)).rejects.toThrow(`Port ${taken.postgres} (Postgres) is in use`);
    await requireFreePorts(taken, [taken.postgres]);
  });

  it('reserves different blocks for rigs that look at the same time, until they are released', async () => {
    const held = await Promise.all(Array.from({ length: 8 }, () => reservePortBlock(settings)));
    onTestFinished(async () => void (await Promise.all(held.map((each) => each.release()))));
    expect(new Set(held.map((each) => each.base)).size).toBe(held.length);
  });
});
