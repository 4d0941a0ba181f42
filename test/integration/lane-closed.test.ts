import { afterAll, beforeAll, expect, it } from 'vitest';
import { EngineRig, ask, live, type TestEngine } from '../support/engine.js';
import { paymentIn } from '../support/payment-states.js';
import { until } from '../support/until.js';

/** Closed lanes as a worker meets them: its gate, its retries and its inquiries, against the simulator. */

let rig: EngineRig;
let one: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
});
afterAll(() => rig.stop());

async function breakerOf(lane: string): Promise<string | undefined> {
  const [row] = await rig.db.query<{ breaker: string }>(`SELECT breaker FROM lane WHERE lane = $1`, [lane]);
  return row?.breaker;
}

it('after a 429 the lane waits, and drains when its probe is answered: all are paid once, none fails (BK-02)', async () => {
  const lane = await rig.addLane({});
  const first = await rig.pay({ lane });
  await rig.simulator.script(first.id, 'submit', { kind: 'http_429', retryAfter: '2' });
  const ends = [live(one, first)];
  await until('the wait', () => isThrottled(lane), Boolean); // prettier-ignore
  const others = await Promise.all(Array.from({ length: 30 }, () => rig.pay({ lane })));
  ends.push(...others.map((payment) => live(one, payment)));
  await until('the gate to hold them', () => one.engine.gauges().waiting, (n) => n === 30); // prettier-ignore
  for (const { id } of others) expect(await rig.state(id)).toBe('scheduled');
  expect(new Set(await Promise.all(ends))).toEqual(new Set(['succeeded']));
  const requests = await rig.simulator.requests(first.id);
  expect(requests.filter((request) => request.httpStatus === 429)).toHaveLength(1);
  for (const { id } of [first, ...others]) expect((await rig.simulator.effects(id)).count).toBe(1);
  // Nothing reached the provider while it had asked for peace.
  const refusedAt = requests[0]?.receivedAt ?? NaN;
  const all = await Promise.all(others.map(({ id }) => rig.simulator.requests(id)));
  for (const request of all.flat()) expect(request.receivedAt - refusedAt).toBeGreaterThan(1_900);
  expect(await rig.breachesOf(first.id)).toEqual([]);
});

async function isThrottled(lane: string): Promise<boolean> {
  const [row] = await rig.db.query<{ waits: boolean }>(
    `SELECT wait_until IS NOT NULL AS waits FROM lane WHERE lane = $1`,
    [lane],
  );
  return row?.waits ?? false;
}

it('a provider that is away opens the breaker; what is due then waits scheduled, and all is paid when it is back', async () => {
  const lane = await rig.addLane({ breaker: true });
  await rig.simulator.suspend();
  const early = await Promise.all(Array.from({ length: 6 }, () => rig.pay({ lane })));
  const ends = early.map((payment) => live(one, payment));
  await until('the open breaker', () => breakerOf(lane), (state) => state === 'open'); // prettier-ignore
  const late = await Promise.all(Array.from({ length: 10 }, () => rig.pay({ lane })));
  ends.push(...late.map((payment) => live(one, payment)));
  await until('the gate to hold them', () => one.engine.gauges().waiting, (n) => n === 10); // prettier-ignore
  for (const { id } of late) expect(await rig.state(id)).toBe('scheduled');
  await rig.simulator.resume();
  await rig.db.query(`UPDATE lane SET probe_at = clock_timestamp() WHERE lane = $1 AND breaker <> 'closed'`, [lane]); // prettier-ignore
  expect(new Set(await Promise.all(ends))).toEqual(new Set(['succeeded']));
  for (const { id } of [...early, ...late]) {
    expect((await rig.simulator.effects(id)).count).toBe(1);
    expect(await rig.breachesOf(id)).toEqual([]);
  }
  expect(await breakerOf(lane)).toBe('closed');
});

it('a paused lane keeps nobody from asking: an unknown payment is looked up and settled', async () => {
  const lane = await rig.addLane({});
  const payment = await rig.pay({ lane });
  await rig.simulator.script(payment.id, 'submit', 'reset_after');
  one.provider.aroundSubmit = async (submit) => {
    const result = await submit();
    await rig.db.query(`UPDATE lane SET paused = true WHERE lane = $1`, [lane]);
    return result;
  };
  expect(await live(one, payment)).toBe('succeeded');
  one.provider.aroundSubmit = null;
  expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T14']);
  expect(await rig.isPaused(lane)).toBe(true);
});

it('an unknown payment of a paused lane is asked about and never sent again: its ladder ends with people', async () => {
  const lane = await rig.addLane({ paused: true });
  const id = await paymentIn('unknown', rig.db.database, { tenant: rig.tenant, lane });
  // The provider never heard of it, and its key lives: everything but the lane would allow a resend.
  await rig.db.query(
    `UPDATE submission SET key_valid_until = clock_timestamp() + interval '1 hour' WHERE payment_id = $1`,
    [id],
  );
  await rig.makeDue({ id });
  expect(await ask(one, id)).toBe('needs_review');
  expect(await rig.simulator.requests(id)).not.toEqual([]);
  expect(await rig.attempts(id)).toHaveLength(1);
});
