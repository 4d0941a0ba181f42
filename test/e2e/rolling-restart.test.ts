import { afterAll, beforeAll, expect, it } from 'vitest';
import { Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start({ apis: 2, workers: 2 });
});
afterAll(() => rig.stop());

/** Ten payments due in each of these seconds, from `first` on. */
async function spread(first: number, seconds: number): Promise<string[]> {
  const ids: string[] = [];
  for (let s = 0; s < seconds; s++) ids.push(...(await rig.scheduleMany(10, first + s * 1_000)));
  return ids;
}

it.each([
  ['workers first', ['worker', 'worker-2', 'api', 'api-2']],
  ['APIs first', ['api', 'api-2', 'worker-2', 'worker']],
])(
  'a rolling restart under load, %s: nothing is lost, and nobody is paid late by a drain (DC-04)',
  async (_, order) => {
    const first = rig.secondAfter(12_000);
    const ids = await spread(first, 20);
    await rig.at(first, 500);
    for (const name of order) await rig.stack.restart(name);
    await rig.untilFinal(ids, first);
    await rig.judge(ids);
    const [row] = await rig.sql<{ ambiguous: number; late: number; worst: number }>(
      `SELECT count(*) FILTER (WHERE a.evidence = 'ambiguous')::int AS ambiguous,
            count(*) FILTER (WHERE a.call_started_at > p.execute_at + interval '5 seconds')::int AS late,
            round(max(extract(epoch FROM a.call_started_at - p.execute_at)) * 1000)::int AS worst
       FROM submission_attempt a JOIN payment p ON p.id = a.payment_id WHERE a.payment_id = ANY ($1)`,
      [ids],
    );
    console.log(`rolling restart, ${order.join(', ')}: worst lateness ${row?.worst} ms`);
    // A drain hands on or finishes: it leaves no call without an answer.
    expect(row?.ambiguous).toBe(0);
    expect(rig.stack.events).toEqual([]);
  },
);
