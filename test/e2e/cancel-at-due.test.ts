import { afterAll, beforeAll, expect, it } from 'vitest';
import { Rig, type Answer } from '../support/rig.js';

/** 20 due seconds with 50 payments each, every one cancelled within 50 ms of its due time. */
const SECONDS = 20;
const EACH = 50;
const AROUND_MS = 50;
/** 50 a second, for long, is more than two cores carry: then every start is late and loses. */
const APART_MS = 3_000;

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start({ apis: 2 });
});
afterAll(() => rig.stop());

it('1,000 cancels within 50 ms of the start: 200 and no charge, or 409 and one charge, never both (CX-01)', async () => {
  const first = rig.secondAfter(16_000);
  const seconds: { due: number; ids: string[] }[] = [];
  for (let s = 0; s < SECONDS; s++) {
    const due = first + s * APART_MS;
    seconds.push({ due, ids: await rig.scheduleMany(EACH, due) });
  }
  const answers = new Map<string, Answer>();
  // A busy machine starts late; the race is around the start, so each second aims by the one before.
  let aimMs = 0;
  for (const { due, ids } of seconds) {
    await Promise.all(
      ids.map(async (id, i) => {
        await rig.at(due, aimMs - AROUND_MS + (2 * AROUND_MS * i) / (EACH - 1));
        answers.set(id, await rig.cancel(id));
      }),
    );
    const won = ids.filter((id) => answers.get(id)?.status === 200).length / EACH;
    aimMs = Math.max(0, aimMs + (won - 0.5) * 4 * AROUND_MS);
  }
  const all = seconds.flatMap((s) => s.ids);
  const cancelled = all.filter((id) => answers.get(id)?.status === 200);
  const refused = all.filter((id) => answers.get(id)?.status === 409);
  await rig.untilFinal(all, first);
  console.log(
    `cancels: ${cancelled.length} won, ${refused.length} lost; aimed ${Math.round(aimMs)} ms after due at last`,
  );
  expect(cancelled.length + refused.length).toBe(all.length);
  await rig.judge(refused, cancelled);
  expect(await rig.states(cancelled)).toEqual({ cancelled: cancelled.length });
  expect(await rig.states(refused)).toEqual({ succeeded: refused.length });
  // Otherwise the race was not exercised.
  expect(Math.min(cancelled.length, refused.length)).toBeGreaterThanOrEqual(all.length / 5);
});
