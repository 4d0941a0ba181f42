import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { StackError, systemCode } from './stack-error.js';
import type { StackSettings } from './stack-settings.js';

/** Every port of one stack; all on 127.0.0.1. */
export interface StackPorts {
  readonly apis: readonly { readonly port: number; readonly health: number }[];
  readonly workers: readonly { readonly health: number }[];
  readonly temporal: number;
  readonly temporalUi: number;
  readonly simulator: number;
  readonly simulatorControl: number;
  readonly postgres: number;
}

/** As many processes of one kind as a block of ports has room for. */
export const MOST_OF_A_KIND = 10;

export interface ProcessCounts {
  readonly apis: number;
  readonly workers: number;
}

/** The ports of a stack whose block begins at `base`. */
export function portsFrom(settings: StackSettings, base: number, counts: ProcessCounts): StackPorts {
  for (const [kind, count] of Object.entries(counts)) {
    if (!Number.isInteger(count) || count < 0 || count > MOST_OF_A_KIND) {
      throw new StackError(`A local stack has 0 to ${MOST_OF_A_KIND} ${kind}, not ${count}.`);
    }
  }
  const offset = settings.ports.offsets;
  return {
    apis: Array.from({ length: counts.apis }, (_, i) => ({
      port: base + offset.api + i,
      health: base + offset.api_health + i,
    })),
    workers: Array.from({ length: counts.workers }, (_, i) => ({ health: base + offset.worker_health + i })),
    temporal: base + offset.temporal,
    temporalUi: base + offset.temporal_ui,
    simulator: base + offset.simulator,
    simulatorControl: base + offset.simulator_control,
    postgres: base + offset.postgres,
  };
}

/** Listens on a port of the loopback address, or answers null when another program has it. */
async function tryListen(port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error) => (systemCode(error) === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => resolve(server));
  });
}

async function isFree(port: number): Promise<boolean> {
  const server = await tryListen(port);
  if (server) await new Promise((resolve) => server.close(resolve));
  return server !== null;
}

function named(ports: StackPorts): [string, number][] {
  return [
    ...ports.apis.flatMap((api): [string, number][] => [
      ['API', api.port],
      ['API health', api.health],
    ]),
    ...ports.workers.map((worker): [string, number] => ['worker health', worker.health]),
    ['Temporal', ports.temporal],
    ['Temporal Web UI', ports.temporalUi],
    ['simulator', ports.simulator],
    ['simulator control', ports.simulatorControl],
    ['Postgres', ports.postgres],
  ];
}

/**
 * Looks whether every port is free right now.
 * @throws StackError naming each port that another program holds.
 */
export async function requireFreePorts(ports: StackPorts, except: readonly number[] = []): Promise<void> {
  const taken: string[] = [];
  for (const [name, port] of named(ports)) {
    if (!except.includes(port) && !(await isFree(port))) taken.push(`${port} (${name})`);
  }
  if (taken.length === 0) return;
  const subject = taken.length === 1 ? `Port ${taken[0]} is` : `Ports ${taken.join(', ')} are`;
  throw new StackError(
    `${subject} in use by another program. Stop it, or move the whole stack: PAYMENTS_PORT_BASE=7500 npm start.`,
  );
}

export interface PortReservation {
  readonly base: number;
  /** Gives the block back. */
  release(): Promise<void>;
}

// Below the ports that Linux hands to outgoing connections (from 32768), so that none of those can
// take a port between our look and a server's start.
const FIRST_BLOCK = 100;
const LAST_BLOCK = 320;
const BLOCK = 100;
const TRIES = 50;

/**
 * Finds a block of free ports for a test rig and holds its last port until released, so that two
 * rigs at once get two blocks.
 * @throws StackError when no block is free after fifty tries.
 */
export async function reservePortBlock(settings: StackSettings): Promise<PortReservation> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const base = randomInt(FIRST_BLOCK, LAST_BLOCK) * BLOCK;
    const guard = await tryListen(base + settings.ports.offsets.reservation);
    if (!guard) continue;
    guard.unref();
    const release = () => new Promise<void>((resolve) => guard.close(() => resolve()));
    const all = portsFrom(settings, base, { apis: MOST_OF_A_KIND, workers: MOST_OF_A_KIND });
    try {
      await requireFreePorts(all);
      return { base, release };
    } catch (error) {
      await release();
      if (!(error instanceof StackError)) throw error;
    }
  }
  throw new StackError(`No block of ${BLOCK} free ports was found on 127.0.0.1.`);
}
