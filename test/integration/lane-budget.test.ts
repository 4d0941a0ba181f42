import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { laneLimits } from '../../src/lanes/lane.store.js';
import { describeSimulated } from '../../src/providers/simulated/simulated.descriptor.js';
import { ArmedEntry } from '../../src/submission/armed-payments.js';
import { DueGate, type GateAnswer } from '../../src/submission/due-gate.js';
import { LaneRig, preparedByHand } from '../support/lane-rig.js';

/**
 * The budget of a lane under many payments and many workers: due gates as workers run them, on
 * connections of their own, judged by the database's clock alone.
 */

let rig: LaneRig;
beforeAll(async () => {
  rig = await LaneRig.start();
});
afterAll(() => rig.stop());

interface Due {
  readonly id: string;
  readonly dueAtMs: number;
}

/** Due payments, each a millisecond after the one before, written by one statement: ids in that order. */
async function manyDue(lane: string, count: number): Promise<readonly Due[]> {
  const [model] = await rig.due(lane, 1);
  const rows = await rig.db.query<{ id: string; due_ms: number }>(
    `WITH p AS (
       INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency,
           destination, destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at, not_after,
           state, created_by)
       SELECT 'pay_' || md5(m.id || n), m.tenant_id, m.id || n, m.fingerprint, m.fingerprint_version, m.amount, m.currency,
           m.destination, m.destination_key_id, m.destination_digest, m.digest_key_id, m.provider, m.lane,
           m.execute_at - ($2 - n) * interval '1 ms', m.not_after, 'scheduled', 'test'
         FROM payment m CROSS JOIN generate_series(1, $2::integer) n WHERE m.id = $1
       RETURNING id, tenant_id, execute_at),
     t AS (
       INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, detail)
       SELECT id, 1, tenant_id, NULL, 'scheduled', 'create', 'test', '{"rule":"T1"}' FROM p)
     SELECT id, (extract(epoch FROM execute_at) * 1000)::double precision AS due_ms FROM p ORDER BY execute_at`,
    [model?.id, count],
  );
  return rows.map((row) => ({ id: row.id, dueAtMs: row.due_ms }));
}

/** One worker's gate, with its own way to Postgres. */
function gate(name: string): DueGate {
  const clock = { agrees: () => true } as ConstructorParameters<typeof DueGate>[2];
  const lease = { id: rig.worker } as ConstructorParameters<typeof DueGate>[1];
  return new DueGate(rig.db.connect(name, 4), lease, clock, () => undefined);
}

const wait = (through: DueGate, lane: string, payment: Due): Promise<GateAnswer> =>
  through.wait(new ArmedEntry(payment.id, 1, lane), preparedByHand(payment), payment.dueAtMs, 1_000);

/** When each payment was started: seconds on the database's clock, earliest first. */
async function starts(lane: string): Promise<readonly number[]> {
  const rows = await rig.db.query<{ at: number }>(
    `SELECT extract(epoch FROM submission_started_at)::double precision AS at FROM payment
      WHERE lane = $1 AND submission_started_at IS NOT NULL ORDER BY 1`,
    [lane],
  );
  return rows.map((row) => row.at);
}

/** Most starts within one second, wherever it begins. */
function mostWithinASecond(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  for (let last = 0; last < times.length; last++) {
    while ((times[last] ?? 0) - (times[first] ?? 0) >= 1) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

describe('10,000 payments that are due at once', () => {
  it('are started strictly by due time, none is sent away, and few statements are needed (BK-01)', async () => {
    const [rate, burst] = [4_000, 1_000];
    const lane = await rig.addLane({ rate, burst });
    const payments = await manyDue(lane, 10_000);
    const one = gate('one');
    // The newest first: the order of arriving must not matter.
    const answers = await Promise.all([...payments].reverse().map((payment) => wait(one, lane, payment)));
    expect(new Set(answers.map((answer) => answer.kind))).toEqual(new Set(['started']));
    // Each statement is a transaction: within one the order is free, between them it is that of due times.
    const order = await rig.db.query<{ id: string }>(
      `SELECT p.id FROM payment p JOIN payment_transition t ON t.payment_id = p.id AND t.seq = 2
        WHERE p.lane = $1 ORDER BY t.xmin::text::bigint, p.execute_at`,
      [lane],
    );
    expect(order.map((row) => row.id)).toEqual(payments.map((payment) => payment.id));
    expect(one.batches).toBeLessThan(10_000 / 20);
    const once = await rig.db.query(
      `SELECT count(*)::integer AS rows, max(no) AS no FROM submission_attempt a JOIN payment p ON p.id = a.payment_id
        WHERE p.lane = $1`,
      [lane],
    );
    expect(once).toEqual([{ rows: 10_000, no: 1 }]);
  });

  it('on a slow lane go at its rate, and those that wait stay scheduled', async () => {
    const lane = await rig.addLane({ rate: 20, burst: 5 });
    const payments = await manyDue(lane, 200);
    const one = gate('slow');
    const answers = payments.map((payment) => wait(one, lane, payment));
    await Promise.all(answers.slice(0, 30));
    const times = await starts(lane);
    expect(mostWithinASecond(times)).toBeLessThanOrEqual(20 + 5);
    const [rest] = await rig.db.query<{ rows: number }>(
      `SELECT count(*)::integer AS rows FROM payment WHERE lane = $1 AND state = 'scheduled' AND id = ANY ($2)`,
      [lane, payments.slice(60).map((payment) => payment.id)],
    );
    expect(rest?.rows).toBe(140);
    // A token is waited for, not asked for again and again.
    expect(one.batches).toBeLessThanOrEqual(10 * ((times.at(-1) ?? 0) - (times[0] ?? 0)) + 15);
    one.drop(() => true);
  });
});

describe('the budget of a lane', () => {
  it('is shared by six workers: never more than its rate and burst, by the database’s clock', async () => {
    const [rate, burst] = [200, 50];
    const lane = await rig.addLane({ rate, burst });
    const payments = await manyDue(lane, 600);
    const gates = Array.from({ length: 6 }, (_, n) => gate(`worker-${n}`));
    await Promise.all(payments.map((payment, n) => wait(gates[n % 6] as DueGate, lane, payment)));
    const times = await starts(lane);
    expect(times).toHaveLength(600);
    // A start is stamped a moment after its token was counted: up to a hundredth of the rate.
    expect(mostWithinASecond(times)).toBeLessThanOrEqual(rate + burst + rate / 100);
    const took = (times.at(-1) ?? 0) - (times[0] ?? 0);
    expect(took).toBeGreaterThan((600 - burst) / rate - 0.1);
  });

  it('belongs to one account of a provider: another account is not held back', async () => {
    const [empty, full] = [await rig.addLane({ rate: 0.001, burst: 1 }), await rig.addLane()];
    expect(await rig.started(empty, await rig.due(empty, 5))).toHaveLength(1);
    expect(await rig.started(full, await rig.due(full, 5))).toHaveLength(5);
  });

  it.each([1, 2, 3, 4, 5, 7, 10, 25, 100, 250, 1_000])(
    'of a provider that declares %d a second never allows more in one second',
    (declared) => {
      const limits = laneLimits({
        name: 'stripe',
        capabilities: () => ({ ...describeSimulated({ profile: 'A' }), ratePerSecond: declared }),
      });
      expect(Math.floor(limits.ratePerSecond + limits.burst + 1e-9)).toBeLessThanOrEqual(declared);
    },
  );
});
