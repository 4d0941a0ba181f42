import { startTemporaryStack, type TemporaryStack } from '../../src/dev/temporary-stack.js';
import type { TemporalKind } from '../bench-options.js';
import { PaymentRows } from '../judge/payment-rows.js';
import { SimulatorLedger } from '../judge/simulator-ledger.js';
import { WorkflowRuns } from '../judge/workflow-runs.js';
import { PaymentCreator } from '../load/payment-creator.js';
import { LoadSampler } from '../sampling/load-sampler.js';
import { ProcessGroup } from '../sampling/process-group.js';
import type { World } from '../scenario.js';
import { productCpuMs, settle } from '../scenarios/payments-due.js';
import { pauseFor } from '../waiting.js';
import type { FullTemporal } from './full-temporal.js';

const WARM_UP = 20;
const WARM_UP_DUE_IN_MS = 6_000;
/** After the warm-up: until garbage is collected and connections rest, then the look at idle CPU. */
const SETTLE_MS = 2_000;
const IDLE_MS = 5_000;

export interface WorldOptions {
  readonly temporal: TemporalKind;
  /** The full server, when the run is on Postgres. */
  readonly full: FullTemporal | null;
  readonly workers: number;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/**
 * Starts a fresh stack, pays a few payments on it so that every path has run once, gives it to `use`
 * and takes everything down again, whatever happened.
 */
export async function withWorld<T>(options: WorldOptions, use: (world: World) => Promise<T>): Promise<T> {
  const { full, signal } = options;
  const closing: (() => Promise<void> | void)[] = [];
  try {
    if (full) {
      options.say('starting the Temporal server');
      closing.push(() => full.stopServer());
      await full.startServer();
    }
    options.say('starting the stack');
    const env = { ...options.env, ...(full ? { TEMPORAL_ADDRESS: full.address } : {}) };
    const stack = await startTemporaryStack({ workers: options.workers, env });
    closing.push(() => stack.stop());
    signal.throwIfAborted();
    const load = new LoadSampler(processGroups(stack, full));
    closing.push(() => load.stop());
    const creator = new PaymentCreator(stack.api_url, stack.api_keys.client, 'bench');
    closing.push(() => creator.close());
    const rows = new PaymentRows(stack.postgres_url);
    closing.push(() => rows.close());
    const runs = await WorkflowRuns.connect(stack.temporal_address, stack.temporal_namespace);
    closing.push(() => runs.close());
    const ledger = new SimulatorLedger({
      url: stack.simulator_control_url,
      token: stack.simulator_control_token,
    });
    const { temporal, say } = options;
    const parts = { stack, temporal, creator, ledger, rows, runs, load, signal, say };
    const cold: World = { ...parts, warmUpIds: [], idleCores: null };
    const warmUpIds = await warmUp(cold);
    return await use({ ...cold, warmUpIds, idleCores: await idleCores(load, signal) });
  } finally {
    await closeAll(closing.reverse());
  }
}

/** Closes the rest too when one fails. @throws the first failure. */
async function closeAll(closing: readonly (() => Promise<void> | void)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const close of closing) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function warmUp(world: World): Promise<readonly string[]> {
  const payments = await world.creator.createAll(WARM_UP, Date.now() + WARM_UP_DUE_IN_MS, world.signal);
  await world.ledger.expect(new Map(payments.map((payment) => [payment.id, payment.dueAt])));
  const { failures } = await settle(world, payments);
  if (failures.length > 0) throw new Error(`The warm-up did not end well. ${failures.join('. ')}.`);
  return payments.map((payment) => payment.id);
}

async function idleCores(load: LoadSampler, signal: AbortSignal): Promise<number | null> {
  await pauseFor(SETTLE_MS, signal);
  const from = load.mark();
  await pauseFor(IDLE_MS, signal);
  const share = load.between(from, load.mark());
  return share.foreignCores === null ? null : productCpuMs(share) / 1_000 / share.seconds;
}

function processGroups(stack: TemporaryStack, full: FullTemporal | null): Record<string, ProcessGroup> {
  const named = (pattern: RegExp) => (): readonly number[] =>
    Object.entries(stack.pids).flatMap(([name, pid]) => (pattern.test(name) ? [pid] : []));
  const group = (roots: () => readonly number[]): ProcessGroup => new ProcessGroup(roots, 'with children');
  return {
    api: group(named(/^api/)),
    worker: group(named(/^worker/)),
    postgres: group(named(/^postgres$/)),
    temporal: group(full ? () => full.pids.server : named(/^temporal$/)),
    ...(full ? { 'temporal-postgres': group(() => full.pids.postgres) } : {}),
    simulator: group(named(/^simulator$/)),
    bench: new ProcessGroup(() => [process.pid], 'alone'),
  };
}
