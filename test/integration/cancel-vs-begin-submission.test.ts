import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { move, type MoveResult } from '../../src/payments/gate.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import type { Database } from '../../src/persistence/database.js';
import { beginSubmissions } from '../../src/submission/begin-submission.store.js';
import { EngineRig, pair, type TestEngine } from '../support/engine.js';
import { seedWorker } from '../support/payment-states.js';
import { preparedFor } from '../support/prepared.js';
import { until } from '../support/until.js';

let rig: EngineRig;
let one: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
});
afterAll(() => rig.stop());

const cancel = (on: Database, { id }: PaymentRow): Promise<MoveResult> =>
  move(on, { rule: 'T5', tenant: rig.tenant, paymentId: id, actor: 'api_key:test', announce: 'cancel' });

/** The order of the numbers below `n`, mixed, the same in every run. */
function mixed(n: number, seed: number): number[] {
  let state = seed;
  const random = (): number => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648);
  return Array.from({ length: n }, (_, i) => ({ i, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ i }) => i);
}

const sleepUntil = (atMs: number): Promise<void> =>
  new Promise((next) => setTimeout(next, Math.max(0, atMs - performance.now())));

interface Race {
  readonly payment: PaymentRow;
  readonly cancels: readonly MoveResult[];
  readonly started: boolean;
}

/** Two cancels of each payment race submission starts of the whole group, each on its own connection. */
async function raceGroup(
  group: readonly PaymentRow[],
  seed: number,
  on: readonly Database[],
): Promise<Race[]> {
  const [api, workerA, workerB] = on as [Database, Database, Database];
  const owner = await seedWorker(rig.db.database);
  const begin = (worker: Database): ReturnType<typeof beginSubmissions> =>
    beginSubmissions(worker, rig.lane, owner, 100, group.map((p) => preparedFor(one, p))); // prettier-ignore
  const cancels = new Map<string, Promise<MoveResult>[]>(group.map((p) => [p.id, []]));
  const order = mixed(group.length, seed);
  const starts: ReturnType<typeof beginSubmissions>[] = [];
  for (const [place, i] of order.entries()) {
    const payment = group[i] as PaymentRow;
    cancels.get(payment.id)?.push(cancel(api, payment));
    // Somewhere in the middle, another place each time, so that either side comes first for some.
    if (place === Math.floor((group.length * (1 + (seed % 3))) / 4))
      starts.push(begin(workerA), begin(workerB));
  }
  for (const payment of group) cancels.get(payment.id)?.push(cancel(api, payment));
  const moved = (await Promise.all(starts)).flatMap((r) => (r.kind === 'open' ? [...r.moved] : []));
  expect(new Set(moved).size).toBe(moved.length);
  return Promise.all(
    group.map(async (payment) => ({
      payment,
      cancels: await Promise.all(cancels.get(payment.id) ?? []),
      started: moved.includes(payment.id),
    })),
  );
}

describe('cancel and submission start of one payment', () => {
  it('never both win: 1,200 payments raced by two cancels and two starts each (CX-01)', async () => {
    const on = [rig.db.connect('api', 12), rig.db.connect('worker-a', 2), rig.db.connect('worker-b', 2)];
    const races: Race[] = [];
    for (let group = 0; group < 40; group++) {
      const payments = await Promise.all(Array.from({ length: 30 }, () => rig.pay()));
      races.push(...(await raceGroup(payments, group + 1, on)));
    }
    let cancelsWon = 0;
    for (const { payment, cancels, started } of races) {
      const won = cancels.filter((result) => result.kind === 'moved');
      const history = await rig.history(payment.id);
      expect(won.length + Number(started)).toBe(1);
      expect(history).toEqual(['scheduled', started ? 'submitting' : 'cancelled']);
      // Whoever lost was told the state that the winner made.
      for (const lost of cancels.filter((result) => result.kind !== 'moved')) {
        expect(lost).toMatchObject({ kind: 'lost', state: history[1], version: 2 });
      }
      cancelsWon += won.length;
    }
    expect(races).toHaveLength(1_200);
    expect(cancelsWon).toBeGreaterThan(races.length * 0.2);
    expect(cancelsWon).toBeLessThan(races.length * 0.8);
    const [attempts] = await rig.db.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM submission_attempt a JOIN payment p ON p.id = a.payment_id
        WHERE p.state = 'cancelled'`,
    );
    expect(attempts?.count).toBe(0);
    expect(await rig.breaches([10])).toEqual([]);
  });

  it('agree with the ledger: who was told "cancelled" is never charged, everybody else once (CX-01)', async () => {
    const payments = await rig.payMany(240, 2_500);
    await rig.expectNotBefore(payments);
    const dueAtMs = await rig.localDueMs(payments[0] as PaymentRow);
    const api = rig.db.connect('api', 8);
    const pairs = payments.map((p) => pair(one, p));
    const firstCall = until('the first call', () => one.events.count('callStarted'), (n) => n > 0); // prettier-ignore
    const answers = await Promise.all(
      mixed(payments.length, 7).map(async (i, place) => {
        const payment = payments[i] as PaymentRow;
        // A third just before the due time, a third at it, a third when the first call has arrived.
        const third = Math.floor((3 * place) / payments.length);
        if (third === 2) await firstCall;
        else await sleepUntil(dueAtMs - (third === 0 ? 60 - place / 2 : 0));
        return { payment, results: await Promise.all([cancel(api, payment), cancel(api, payment)]) };
      }),
    );
    await Promise.all(pairs.flatMap(({ begin, submit }) => [begin, submit]));
    for (const { payment, results } of answers) {
      const told = results.filter((r) => r.kind === 'moved').length;
      expect(told).toBeLessThanOrEqual(1);
      expect((await rig.simulator.effects(payment.id)).count).toBe(1 - told);
      expect(await rig.state(payment.id)).toBe(told === 1 ? 'cancelled' : 'succeeded');
    }
    const cancelled = answers.filter(({ results }) => results.some((r) => r.kind === 'moved')).length;
    expect(cancelled).toBeGreaterThan(0);
    expect(cancelled).toBeLessThan(payments.length);
    expect((await rig.simulator.early()).count).toBe(0);
  });
});
