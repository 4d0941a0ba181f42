import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderResult } from '../../src/providers/payment-provider.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { Simulator, simulatorEntry, startSimulator } from '../support/simulator.js';

let folder: string;
let simulator: Simulator;
let provider: SimulatedProvider;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'simulator-process-'));
  simulator = await startSimulator({ ledgerFile: join(folder, 'ledger.jsonl') });
  provider = new SimulatedProvider({ baseUrl: simulator.url, apiKey: simulator.apiKeys.A });
});
afterEach(async () => {
  await provider.close();
  await simulator.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Order {
  readonly paymentId: string;
  readonly providerKey: string;
}
const newOrder = (): Order => ({
  paymentId: `pay_${randomUUID().replaceAll('-', '')}`,
  providerKey: randomUUID(),
});

function pay({ paymentId, providerKey }: Order): Promise<ProviderResult> {
  const payment = {
    paymentId,
    generation: 1,
    providerKey,
    amountMinor: 500n,
    currency: 'EUR',
    destination: 'acct_destination',
    reference: null,
    description: null,
  };
  const attempt = {
    paymentId,
    generation: 1,
    attempt: 1,
    commitTry: 1,
    providerKey,
    deadlineMs: 10_000,
    mayWrite: () => true,
  };
  return provider.submit(provider.prepare(payment), attempt);
}

describe('the process of the simulator', () => {
  it('CR-01: kill -9 under load loses no charge that was answered and no key: repeats pay nothing twice', async () => {
    const submit = [
      { kind: 'slow', rate: 0.3, afterMs: 60_000 },
      { kind: 'hang', rate: 0.2 },
    ];
    await simulator.plan({ random: { seed: 1, rates: { submit } } });
    const orders = Array.from({ length: 400 }, newOrder);
    const load = Promise.all(orders.map(pay));
    await expect.poll(async () => (await simulator.allEffects()).count).toBeGreaterThan(50);
    await simulator.kill('SIGKILL');
    const results = await load;
    await simulator.start();

    const charges = (await simulator.allEffects()).charges;
    const kept = new Set(charges.map(({ reference }) => reference.split('/')[0]));
    const answered = orders.filter((_, i) => results[i]!.class === 'accepted');
    expect(answered.filter(({ paymentId }) => !kept.has(paymentId))).toEqual([]);
    // Some were charged and never answered, some never charged: both kinds are in the repeat.
    expect(kept.size).toBeGreaterThan(answered.length);
    expect(kept.size).toBeLessThan(orders.length);

    const repeats = await Promise.all(orders.map(pay));
    expect(new Set(repeats.map((result) => result.class))).toEqual(new Set(['accepted']));
    for (const [i, { paymentId }] of orders.entries()) expect(repeats[i]!.replayed).toBe(kept.has(paymentId));
    expect(await simulator.allEffects()).toMatchObject({ count: 400, payments: 400, duplicates: [] });
  });

  it.each([
    ['kill_before', 0],
    ['kill_after', 1],
  ] as const)('F6: %s ends the process unanswered, with %i charges in the ledger', async (fault, count) => {
    const order = newOrder();
    await simulator.script(order.paymentId, 'submit', fault);
    expect((await pay(order)).class).toBe('ambiguous');
    expect(await simulator.untilEnded()).toBe('SIGKILL');
    await simulator.start();
    expect((await simulator.effects(order.paymentId)).count).toBe(count);
    expect(await pay(order)).toMatchObject({ class: 'accepted', replayed: count === 1 });
    expect((await simulator.effects(order.paymentId)).count).toBe(1);
  });

  it('keeps registered times over a kill', async () => {
    const order = newOrder();
    await simulator.expect({ [order.paymentId]: new Date(Date.now() + 3_600_000).toISOString() });
    await simulator.restart();
    await pay(order);
    expect(await simulator.early()).toMatchObject({ count: 1, unregistered: 0 });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 on %s, also while a request hangs', async (signal) => {
    const order = newOrder();
    await simulator.script(order.paymentId, 'submit', 'hang');
    const hung = pay(order);
    await simulator.untilRequests(order.paymentId, (seen) => seen.length === 1);
    expect(await simulator.kill(signal)).toBe(0);
    expect((await hung).class).toBe('ambiguous');
  });

  it('a frozen provider takes connections and answers nothing: the deadline makes it ambiguous', async () => {
    expect((await pay(newOrder())).class).toBe('accepted');
    simulator.freeze();
    const order = newOrder();
    const { paymentId, providerKey } = order;
    const expected = { amountMinor: 500n, currency: 'EUR', destination: 'acct_destination' };
    const refs = { providerRef: null, providerKey, paymentId, generation: 1, sentSince: null };
    const question = { ...refs, by: 'any', deadlineMs: 200, expected } as const;
    expect(await provider.lookup(question)).toEqual({ kind: 'cannot_tell', code: 'deadline' });
    simulator.thaw();
    expect((await pay(order)).class).toBe('accepted');
  });

  it('a closed port is not_sent, and open again it pays', async () => {
    await simulator.suspend();
    const order = newOrder();
    expect(await pay(order)).toMatchObject({ class: 'not_sent', code: 'connect_refused' });
    await simulator.resume();
    expect((await pay(order)).class).toBe('accepted');
  });

  it('does not start on a damaged ledger, on a port that is taken, or without its settings', async () => {
    const taken = new Simulator({ env: {} });
    const settings = {
      SIMULATOR_PORT: new URL(simulator.url).port,
      SIMULATOR_CONTROL_PORT: '0',
      SIMULATOR_CONTROL_TOKEN: 'control-token',
      SIMULATOR_LEDGER_FILE: taken.ledgerFile,
      SIMULATOR_PROFILE_KEYS: 'sk_a:A',
    };
    expect(run(settings)).toMatch(/^The simulator did not start\. .*EADDRINUSE.*\n$/);
    expect(run({ ...settings, SIMULATOR_CONTROL_TOKEN: '' })).toBe(
      'The simulator did not start. SIMULATOR_CONTROL_TOKEN is not set; the simulator needs it.\n',
    );
    appendFileSync(taken.ledgerFile, 'nonsense\n');
    expect(run({ ...settings, SIMULATOR_PORT: '0' })).toMatch(/^The simulator did not start\. Line 1 of /);
    await taken.stop();
  });
});

/** Runs a simulator that must end at once with code 1. @returns what it says. */
function run(env: Record<string, string>): string {
  const { status, stderr } = spawnSync(process.execPath, [simulatorEntry()], {
    env,
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(status).toBe(1);
  return stderr;
}
