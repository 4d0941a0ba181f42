import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Rig } from '../support/rig.js';

describe('a worker that dies or freezes at the due second', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await Rig.start();
  });
  afterAll(() => rig.stop());

  it('500 due at one instant, killed 50 ms after it and started again: each is final and paid once (CR-01)', async () => {
    const due = rig.secondAfter(20_000);
    const ids = await rig.scheduleMany(500, due);
    await rig.at(due, 50);
    await rig.stack.kill('worker');
    await rig.stack.restart('worker');
    const finalAfterMs = await rig.untilFinal(ids, due);
    console.log(`killed at due + 50 ms: 500 final ${finalAfterMs} ms after due`);
    await rig.judge(ids);
    expect(await rig.states(ids)).toEqual({ succeeded: 500 });
  });

  it('300 due while it is frozen for 12 s: each is paid once, and what it claimed before is not sent twice', async () => {
    const due = rig.secondAfter(14_000);
    const ids = await rig.scheduleMany(300, due);
    await rig.at(due, 20);
    rig.stack.freeze('worker');
    await rig.at(due, 12_020);
    rig.stack.thaw('worker');
    await rig.untilFinal(ids, due);
    await rig.judge(ids);
    expect(await rig.states(ids)).toEqual({ succeeded: 300 });
  });
});

describe('two workers', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await Rig.start({ workers: 2 });
  });
  afterAll(() => rig.stop());

  it('one is frozen past its lease while the other goes on: one charge each, its late answers are filed, not applied', async () => {
    const due = rig.secondAfter(14_000);
    const ids = await rig.scheduleMany(200, due);
    // The provider answers slowly, so that calls are in flight when the worker freezes.
    await rig.provider.plan({
      scripts: [{ reference: '*', submit: [{ kind: 'slow', afterMs: 2_000, times: 'always' }] }],
    });
    await rig.at(due, 1_000);
    rig.stack.freeze('worker');
    await rig.at(due, 13_000);
    rig.stack.thaw('worker');
    await rig.untilFinal(ids, due);
    await rig.judge(ids);
    await rig.provider.plan({ scripts: [], replace: true });
  });
});
