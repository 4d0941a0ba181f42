import { afterAll, beforeAll, expect, it } from 'vitest';
import { Rig, type Answer } from '../support/rig.js';

/** 20 due seconds with 50 payments each, every one cancelled within 50 ms of its due time. */
const SECONDS = 20;
const EACH = 50;
const AROUND_MS = 50;

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start({ apis: 2 });
});
afterAll(() => rig.stop());

it('1,000 cancels within 50 ms of due: 200 and no charge, or 409 and one charge, never both (CX-01)', async () => {
  const first = rig.secondAfter(25_000);
  const planned: { id: string; at: number }[] = [];
  for (let s = 0; s < SECONDS; s++) {
    const due = first + s * 1_000;
    const ids = await rig.scheduleMany(EACH, due);
    ids.forEach((id, i) => planned.push({ id, at: due - AROUND_MS + (2 * AROUND_MS * i) / (EACH - 1) }));
  }
  const answers = new Map<string, Answer>();
  await Promise.all(
    planned.map(async ({ id, at }) => {
      await rig.at(at, 0);
      answers.set(id, await rig.cancel(id));
    }),
  );
  const cancelled = planned.filter((p) => answers.get(p.id)?.status === 200).map((p) => p.id);
  const refused = planned.filter((p) => answers.get(p.id)?.status === 409).map((p) => p.id);
  await rig.untilFinal(
    planned.map((p) => p.id),
    first,
  );
  console.log(`cancels: ${cancelled.length} won, ${refused.length} lost`);
  expect(cancelled.length + refused.length).toBe(planned.length);
  await rig.judge(refused, cancelled);
  expect(await rig.states(cancelled)).toEqual({ cancelled: cancelled.length });
  expect(await rig.states(refused)).toEqual({ succeeded: refused.length });
  // Otherwise the race was not exercised.
  expect(Math.min(cancelled.length, refused.length)).toBeGreaterThanOrEqual(planned.length / 5);
});
