import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Rig } from '../support/rig.js';

describe('outages', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await Rig.start();
  });
  afterAll(() => rig.stop());

  it('Temporal stopped over the due time: armed payments are paid, others late, all once; the API answers', async () => {
    const due = rig.secondAfter(10_000);
    const armed = await rig.scheduleMany(20, due);
    await rig.at(due, -1_500);
    await rig.stack.kill('temporal');
    const meanwhile = await rig.scheduleMany(20, rig.secondAfter(1_000));
    const stopped = await rig.schedule(rig.secondAfter(600_000));
    expect(await rig.cancel(stopped)).toMatchObject({ status: 200, body: { state: 'cancelled' } });
    expect(await rig.call('GET', `/v1/payments/${stopped}`)).toMatchObject({ status: 200 });
    expect(await rig.call('GET', '/v1/payments?limit=5')).toMatchObject({ status: 200 });
    // Armed payments need Temporal for nothing but their paperwork.
    await rig.until('armed payments are charged', async () => {
      const charged = new Set(
        (await rig.provider.allEffects()).charges.map((c) => c.reference.split('/')[0]),
      );
      return armed.every((id) => charged.has(id));
    });
    await rig.stack.restart('temporal');
    await rig.untilFinal([...armed, ...meanwhile], due);
    await rig.judge([...armed, ...meanwhile], [stopped]);
  });

  it("Temporal's data deleted with 200 scheduled: every one gets a new workflow and is paid once", async () => {
    const due = rig.secondAfter(22_000);
    const ids = await rig.scheduleMany(200, due);
    const gone = ids.slice(0, 10);
    await rig.until('all were started', async () => {
      const [row] = await rig.sql<{ n: number }>('SELECT count(*)::int AS n FROM outbox');
      return row?.n === 0;
    });
    await rig.stack.kill('temporal');
    const { folder } = rig.stack;
    const data = readdirSync(folder).filter((file) => file.startsWith('temporal.sqlite'));
    for (const file of data) rmSync(join(folder, file));
    expect(data).not.toEqual([]);
    await rig.stack.restart('temporal');
    for (const id of gone) expect(await rig.cancel(id)).toMatchObject({ status: 200 });
    await rig.untilFinal(ids, due);
    await rig.judge(
      ids.filter((id) => !gone.includes(id)),
      gone,
    );
  });

  it('Postgres killed over the due time: 503 meanwhile, then each is paid once (PG-01)', async () => {
    const due = rig.secondAfter(10_000);
    const ids = await rig.scheduleMany(50, due);
    await rig.at(due, -500);
    await rig.stack.kill('postgres');
    const answer = await rig.call('POST', '/v1/payments', {
      headers: { 'idempotency-key': 'while-away' },
      body: { amount: 1, currency: 'EUR', destination: 'acct_1', execute_at: new Date(due).toISOString() },
    });
    expect(answer).toMatchObject({ status: 503, body: { retryable: true } });
    await rig.at(due, 2_000);
    await rig.stack.restart('postgres');
    await rig.untilFinal(ids, due);
    await rig.judge(ids);
    expect(rig.stack.events).toEqual([]);
  });

  it('provider refuses connections over the due time, then comes back: late, and once', async () => {
    const due = rig.secondAfter(8_000);
    const ids = await rig.scheduleMany(30, due);
    await rig.provider.suspend();
    await rig.at(due, 3_000);
    await rig.provider.resume();
    await rig.untilFinal(ids, due);
    await rig.judge(ids);
  });

  it('every process killed at once in the middle of 200 due, then all started again: each is paid once', async () => {
    const due = rig.secondAfter(12_000);
    const ids = await rig.scheduleMany(200, due);
    await rig.at(due, 60);
    const names = ['worker', 'api', 'simulator', 'temporal', 'postgres'];
    await Promise.all(names.map((name) => rig.stack.kill(name)));
    for (const name of [...names].reverse()) await rig.stack.restart(name);
    await rig.provider.expect(Object.fromEntries(ids.map((id) => [id, due])));
    await rig.untilFinal(ids, due);
    await rig.judge(ids);
  });
});
