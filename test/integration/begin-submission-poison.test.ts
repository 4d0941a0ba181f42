import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { armedFor, EngineRig, pair, type TestEngine } from '../support/engine.js';

let rig: EngineRig;
let one: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
});
afterAll(() => rig.stop());

describe('a payment that the database refuses to start', () => {
  it('delays nobody: the others of its batch are started, called and recorded', async () => {
    const payments = await rig.payMany(40, 800);
    await rig.expectNotBefore(payments);
    const poison = payments.filter((_, i) => i % 8 === 3);
    // Without its first transition every later one breaks its chain.
    await rig.db.query(`ALTER TABLE payment_transition DISABLE TRIGGER ALL`);
    await rig.db.query(`DELETE FROM payment_transition WHERE payment_id = ANY ($1)`, [
      poison.map((p) => p.id),
    ]);
    await rig.db.query(`ALTER TABLE payment_transition ENABLE TRIGGER ALL`);
    const healthy = payments.filter((p) => !poison.includes(p));
    const refused = poison.map((p) => one.services.begin.beginSubmission(armedFor(p)));
    const refusals = Promise.allSettled(refused);
    const submits = healthy.map((p) => pair(one, p).submit);
    expect(await Promise.all(submits)).toEqual(healthy.map(() => ({ kind: 'stopped', state: 'succeeded' })));
    for (const refusal of await refusals) {
      expect(refusal).toMatchObject({
        status: 'rejected',
        reason: { constraint: 'payment_transition_chain' },
      });
    }
    for (const { id } of poison) expect(await rig.simulator.requests(id)).toEqual([]);
    expect((await rig.simulator.early()).count).toBe(0);
  });
});
