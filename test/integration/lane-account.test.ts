import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { beginSubmissions } from '../../src/submission/begin-submission.store.js';
import { EngineRig, pair } from '../support/engine.js';
import { preparedFor } from '../support/prepared.js';

/** A lane names the account that pays: a worker of another account starts nothing of it. */

let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start();
});
afterAll(() => rig.stop());

describe('a payment whose lane is of another account than the worker pays from', () => {
  it('is held at its due time and not sent (T3)', async () => {
    const moved = await rig.engine({ provider: { account: 'acct_moved' } });
    const payment = await rig.pay();
    const { begin, submit } = pair(moved, payment);
    expect(await begin).toMatchObject({ kind: 'held' });
    expect(await submit).toMatchObject({ kind: 'held' });
    expect(await rig.state(payment.id)).toBe('held');
    const [row] = await rig.db.query<{ cause: string; code: string }>(
      `SELECT cause, detail::json ->> 'code' AS code FROM payment_transition WHERE payment_id = $1
        ORDER BY seq DESC LIMIT 1`,
      [payment.id],
    );
    expect(row).toEqual({ cause: 'prepare_failed', code: 'other_account' });
    expect(moved.provider.submits).toEqual([]);
    expect(await rig.attempts(payment.id)).toEqual([]);
  });

  it('is not started by the statement either, whoever asks', async () => {
    const moved = await rig.engine({ provider: { account: 'acct_moved' } });
    const right = await rig.engine();
    const payment = await rig.pay();
    const [worker] = await rig.workerIds();
    const begin = (by: typeof moved) =>
      beginSubmissions(rig.db.database, rig.lane, worker ?? '', 10, [preparedFor(by, payment)]);
    expect(await begin(moved)).toEqual({ kind: 'closed' });
    expect(await rig.state(payment.id)).toBe('scheduled');
    expect(await begin(right)).toMatchObject({ kind: 'open', moved: new Set([payment.id]) });
  });
});
