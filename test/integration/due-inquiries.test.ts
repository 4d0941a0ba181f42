import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { takeDueInquiries } from '../../src/submission/due-inquiries.store.js';
import { EngineRig, pair, type TestEngine } from '../support/engine.js';
import type { FaultInput } from '../support/simulator.js';
import { Latch } from '../support/tapped-database.js';
import { until } from '../support/until.js';

let rig: EngineRig;
const asking: TestEngine[] = [];
beforeAll(async () => {
  rig = await EngineRig.start();
});
afterAll(async () => {
  await Promise.all(asking.map((each) => each.engine.dueInquiries.stop()));
  await rig.stop();
});

/** A payment whose one call ended ambiguous; nobody asks yet. */
async function unknown(
  on: TestEngine,
  faults: {
    readonly submit?: readonly FaultInput[];
    readonly lookup?: readonly FaultInput[];
    readonly lane?: string;
  } = {},
): Promise<string> {
  const payment = await rig.pay(faults.lane === undefined ? {} : { lane: faults.lane });
  const { submit = ['reset_after'], lookup = [] } = faults;
  await rig.simulator.plan({ scripts: [{ reference: payment.id, submit, lookup }] });
  const { begin, submit: submitted } = pair(on, payment);
  expect(await submitted).toEqual({ kind: 'outcome_open', state: 'unknown' });
  await begin;
  return payment.id;
}

/** A worker that asks; stopped with the test file. */
async function startAsking(options: Parameters<EngineRig['engine']>[0] = {}): Promise<TestEngine> {
  const on = await rig.engine(options);
  asking.push(on);
  on.engine.dueInquiries.start();
  return on;
}

async function stopAsking(on: TestEngine): Promise<void> {
  await on.engine.dueInquiries.stop();
}

const reaches = (id: string, state: string): Promise<string> =>
  until(`${id} ${state}`, () => rig.state(id), (found) => found === state); // prettier-ignore

const wakes = async (id: string): Promise<number> =>
  (await rig.db.query<object>(`SELECT FROM outbox WHERE payment_id = $1 AND kind = 'wake'`, [id])).length;

const lookups = async (id: string): Promise<number> =>
  (await rig.simulator.requests(id)).filter((request) => request.operation === 'lookup').length;

describe('the loop that asks about open outcomes', () => {
  it('settles what the provider shows, by its evidence, and wakes the run once (UO-03)', async () => {
    const on = await startAsking();
    const id = await unknown(on);
    await reaches(id, 'succeeded');
    expect(await rig.rules(id)).toEqual(['T1', 'T7', 'T13', 'T14']);
    expect(await rig.evidence(id)).toEqual(['answer:ambiguous', 'lookup:found']);
    expect(await wakes(id)).toBe(1);
    await stopAsking(on);
  });

  it('opens the next attempt under the same key where nothing is found, and wakes who will call', async () => {
    const on = await startAsking();
    const id = await unknown(on, { submit: ['reset_before'] });
    await reaches(id, 'submitting');
    expect(await rig.rules(id)).toEqual(['T1', 'T7', 'T13', 'T15']);
    expect(await rig.attempts(id)).toMatchObject([{ no: 1 }, { no: 2, owner: null, closed: false }]);
    expect(await wakes(id)).toBe(1);
    await stopAsking(on);
  });

  it('asks along the ladder and no oftener, then gives it to people and wakes the run', async () => {
    const on = await startAsking();
    const id = await unknown(on, { lookup: [{ kind: 'lookup_500', times: 'always' }] });
    await reaches(id, 'needs_review');
    expect(await rig.openCases(id)).toEqual(['inquiry_exhausted']);
    // Steps at 5, 15, 60, 180 and 840 s; a step that a busy machine came too late for is not made up for.
    expect(await lookups(id)).toBeGreaterThanOrEqual(2);
    expect(await lookups(id)).toBeLessThanOrEqual(5);
    expect(await wakes(id)).toBe(1);
    await stopAsking(on);
  });

  it('polls what the provider acknowledged until it is final', async () => {
    const on = await startAsking();
    const payment = await rig.pay();
    const slow = { kind: 'pending_then_final', final: 'succeeded', afterMs: 200 } as const;
    await rig.simulator.script(payment.id, 'submit', slow);
    const { submit } = pair(on, payment);
    expect(await submit).toEqual({ kind: 'outcome_open', state: 'submitted' });
    await reaches(payment.id, 'succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T8', 'T17']);
    expect(await wakes(payment.id)).toBe(1);
    await stopAsking(on);
  });

  it('of two workers asks once for each step', async () => {
    const [one, two] = [await startAsking(), await startAsking()];
    const ids = await Promise.all(Array.from({ length: 20 }, () => unknown(one)));
    await Promise.all(ids.map((id) => reaches(id, 'succeeded')));
    expect(await Promise.all(ids.map(lookups))).toEqual(ids.map(() => 1));
    await Promise.all([stopAsking(one), stopAsking(two)]);
  });

  it('stops asking before it says that it has stopped', async () => {
    const on = await startAsking();
    const id = await unknown(on, { lookup: [{ kind: 'slow', afterMs: 300 }] });
    await until('the lookup', () => lookups(id), (count) => count === 1); // prettier-ignore
    await stopAsking(on);
    expect(await rig.state(id)).toBe('succeeded');
  });

  it('lets a provider that is slow hold its own lane alone', async () => {
    const lane = await rig.addLane({ rate: 20_000, burst: 5_000, cap: 1 });
    const on = await startAsking();
    const hanging = { kind: 'slow', afterMs: 1_500, times: 'always' } as const;
    const stuck = [
      await unknown(on, { lane, lookup: [hanging] }),
      await unknown(on, { lane, lookup: [hanging] }),
    ];
    await until('a lookup that hangs', async () => (await Promise.all(stuck.map(lookups))).join(), (n) => n !== '0,0'); // prettier-ignore
    const free = await unknown(on);
    await reaches(free, 'succeeded');
    expect((await Promise.all(stuck.map(lookups))).toSorted()).toEqual([0, 1]);
    await Promise.all(stuck.map((id) => reaches(id, 'succeeded')));
    await stopAsking(on);
  });
});

describe('a payment that is due for its inquiry', () => {
  const due = async (count: number): Promise<readonly string[]> => {
    const on = await rig.engine();
    const ids = await Promise.all(Array.from({ length: count }, () => unknown(on)));
    await Promise.all(ids.map((id) => rig.makeDue({ id })));
    return ids;
  };
  const take = async (worker: string, places: number, claimMs: number): Promise<readonly string[]> =>
    (await takeDueInquiries(rig.db.database, worker, [{ lane: rig.lane, places }], claimMs)).map(
      ({ id }) => id,
    );

  it('is taken by one, and by another once the claim of who died is over', async () => {
    const [id] = await due(1);
    const [worker = ''] = await rig.workerIds();
    expect(await take(worker, 100, 60_000)).toEqual([id]);
    expect(await take(worker, 100, 60_000)).toEqual([]);
    await rig.makeDue({ id: id! });
    expect(await take(worker, 100, 60_000)).toEqual([id]);
  });

  it('is not taken by a worker whose lease is over, nor from a lane without room', async () => {
    const ids = await due(3);
    const [worker = ''] = await rig.workerIds();
    expect(await take('a-worker-that-was-frozen', 100, 60_000)).toEqual([]);
    expect(await take(worker, 2, 60_000)).toHaveLength(2);
    expect(ids).toEqual(expect.arrayContaining([...(await take(worker, 100, 60_000))]));
  });

  it('is left to whoever holds its row', async () => {
    const [id] = await due(1);
    const [worker = ''] = await rig.workerIds();
    const latch = new Latch();
    const held = new Latch();
    const holder = rig.db.database.transaction(async (tx) => {
      await tx.query({ name: 'hold', text: `SELECT FROM payment WHERE id = $1 FOR UPDATE` }, [id]);
      held.open();
      await latch.wait();
    });
    await held.wait();
    expect(await take(worker, 100, 60_000)).toEqual([]);
    latch.open();
    await holder;
    expect(await take(worker, 100, 60_000)).toEqual([id]);
  });
});
