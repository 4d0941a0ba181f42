import { afterAll, beforeAll, expect, it } from 'vitest';
import { Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  // Polls come after 30 s and later: within the test only events bring the end.
  rig = await Rig.start({ sendsWebhooks: true });
});
afterAll(() => rig.stop());

it('an event of the provider ends a payment, and its workflow hears of it (T17, PR-01)', async () => {
  const due = rig.secondAfter(5_000);
  const ids = await rig.scheduleMany(20, due);
  await rig.provider.plan({
    scripts: ids.map((reference) => ({
      reference,
      submit: [{ kind: 'pending_then_final', afterMs: 300 }],
      webhook: ['duplicate', 'forged'],
    })),
  });
  await rig.untilFinal(ids, due, 25_000);
  await rig.judge(ids);
  const moved = await rig.sql<{ actor: string }>(
    `SELECT actor FROM payment_transition WHERE payment_id = ANY ($1) AND to_state = 'succeeded'`,
    [ids],
  );
  expect(new Set(moved.map((row) => row.actor))).toEqual(new Set(['webhook:simulated']));
  await rig.until('every wake has been published', async () => {
    const [row] = await rig.sql<{ n: number }>('SELECT count(*)::int AS n FROM outbox WHERE payment_id = ANY ($1)', [ids]);
    return row?.n === 0;
  }); // prettier-ignore
});
