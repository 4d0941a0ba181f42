import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResultClass } from '../../src/domain/provider-outcome.js';
import { MAX_UNSENT_ATTEMPTS } from '../../src/domain/submission-policy.js';
import { CODES_OF_OUR_OWN } from '../../src/lanes/lane-policy.js';
import { pauseLanes, resumeLanes } from '../../src/lanes/lane-state.store.js';
import { recordCreates } from '../../src/submission/create.store.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { LaneRig, type CallUnderWay } from '../support/lane-rig.js';
import { addEvidence, paymentIn } from '../support/payment-states.js';
import { resultOf } from '../support/results.js';

let rig: LaneRig;
beforeAll(async () => {
  rig = await LaneRig.start();
});
afterAll(() => rig.stop());

/** A lane whose breaker is open. */
async function broken(): Promise<string> {
  const lane = await rig.addLane();
  await rig.answers(lane, '11111');
  return lane;
}

/** Lets the wait for the probe pass and sends it. */
async function probe(lane: string): Promise<readonly CallUnderWay[]> {
  await rig.letWaitPass(lane);
  return rig.claim(await rig.started(lane, await rig.due(lane, 3)));
}

describe('the breaker of a lane', () => {
  it('opens at the fifth failure in a row, not at the fourth', async () => {
    const lane = await rig.addLane();
    await rig.answers(lane, '1111');
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed', recent: '1111' });
    await rig.answers(lane, '1');
    const opened = await rig.lane(lane);
    expect(opened).toMatchObject({ breaker: 'open', breaker_reason: 'failures_in_a_row', recent: '' });
    expect(opened.probe_in_ms).toBeGreaterThan(8_000);
    expect(opened.probe_in_ms).toBeLessThanOrEqual(10_000);
  });

  it('counts calls that never left like those whose answer nobody understood', async () => {
    const lane = await rig.addLane();
    const results: ResultClass[] = ['not_sent', 'ambiguous', 'not_sent', 'ambiguous', 'not_sent'];
    await rig.end(await rig.call(lane, 5), (n) => resultOf(results[n] ?? 'accepted'));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'open' });
  });

  it.each(['accepted', 'rejected', 'rejected_funds', 'in_flight', 'key_mismatch'] as const)(
    'takes %s as an answer, which ends the row',
    async (answered) => {
      const lane = await rig.addLane();
      await rig.answers(lane, '1111');
      await rig.end(await rig.call(lane, 1), resultOf(answered));
      await rig.answers(lane, '1111');
      expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed', recent: '111101111' });
    },
  );

  it('opens when half of the last 20 calls failed, in whatever order', async () => {
    const lane = await rig.addLane();
    await rig.answers(lane, '110011001100110011');
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'open', breaker_reason: 'half_of_recent_calls' });
  });

  it('does not open for fewer, nor for what lies more than 20 calls back', async () => {
    const lane = await rig.addLane();
    await rig.answers(lane, '10'.repeat(9));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed' });
    // Two more answers, and the first failure is no longer among the last 20 when the tenth comes.
    await rig.answers(lane, '001');
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed' });
    await rig.answers(lane, '0'.repeat(20));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed', recent: '' });
  });

  it('writes nothing while all is well: what is recorded holds back nothing that is started', async () => {
    const lane = await rig.addLane();
    const calls = await rig.call(lane, 5);
    // A new version of the row has another place, and a lock leaves its mark in xmax.
    const version = () => rig.db.query(`SELECT ctid::text, xmax::text FROM lane WHERE lane = $1`, [lane]);
    const before = await version();
    await rig.end(calls, resultOf('accepted'));
    expect(await version()).toEqual(before);
    await rig.end(await rig.call(lane, 1), resultOf('ambiguous'));
    expect(await version()).not.toEqual(before);
  });

  it.each(CODES_OF_OUR_OWN)('does not count %s: the provider did nothing wrong', async (code) => {
    const lane = await rig.addLane();
    for (let n = 0; n < 6; n++) await rig.end(await rig.call(lane, 1), resultOf('not_sent', { code }));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed', recent: '' });
  });

  it('does not count what the sweep closed as abandoned', async () => {
    const lane = await rig.addLane();
    const calls = await rig.call(lane, 8);
    await rig.db.query(
      `UPDATE submission_attempt SET call_started_at = call_started_at - interval '2 minutes'
        WHERE payment_id = ANY ($1)`,
      [calls.map((call) => call.id)],
    );
    expect(await closeAbandoned(rig.db.database, null, 'sweep')).toHaveLength(8);
    await rig.end(calls, resultOf('ambiguous'));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed', recent: '' });
  });

  it('hears of creates that move nothing (two phases) as of any other call', async () => {
    const create = (calls: readonly CallUnderWay[], of: 'ambiguous' | 'throttled') =>
      recordCreates(
        rig.db.database,
        calls.map(({ id, no, owner }) => ({
          ...({ paymentId: id, generation: 1, no, owner, capabilityClass: 'T', phase: 'submit' } as const),
          result: resultOf(of, { retryAfterMs: of === 'throttled' ? 60_000 : null }),
        })),
      );
    const [broke, waits] = [await rig.addLane(), await rig.addLane()];
    await create(await rig.call(broke, 5), 'ambiguous');
    expect(await rig.lane(broke)).toMatchObject({ breaker: 'open' });
    await create(await rig.call(waits, 1), 'throttled');
    expect((await rig.lane(waits)).wait_ms).toBeGreaterThan(50_000);
  });

  it('that an operator turned off never opens', async () => {
    const lane = await rig.addLane({ breaker: false });
    await rig.answers(lane, '1'.repeat(8));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed' });
  });

  it('counts what many workers record at once, and none of them fails', async () => {
    const lane = await rig.addLane();
    const calls = await rig.call(lane, 40);
    const pool = rig.db.connect('recorders', 10);
    const groups = Array.from({ length: 10 }, (_, n) => calls.slice(4 * n, 4 * n + 4));
    const account = { provider: lane, account: 'default' };
    const recorded = await Promise.all([
      ...groups.map((group) => rig.end(group, resultOf('ambiguous'), pool)),
      pauseLanes(pool, account, { reason: 'test', by: 'test' }).then(() =>
        resumeLanes(pool, account, 'test'),
      ),
    ]);
    expect(recorded.slice(0, 10).flat()).toHaveLength(40);
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'open', breaker_reason: 'failures_in_a_row' });
  });
});

describe('an open breaker', () => {
  it('keeps back what is due (T7), what would be tried again (T11) and what would be sent again (T15)', async () => {
    const lane = await rig.addLane();
    const [unsent] = await rig.call(lane, 1);
    if (unsent) await rig.end([unsent], resultOf('not_sent'));
    await rig.answers(lane, '1111');
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'open' });
    const unknown = await paymentIn('unknown', rig.db.database, { tenant: rig.tenant, lane });
    await rig.db.query(
      `UPDATE submission SET key_valid_until = clock_timestamp() + interval '1 hour' WHERE payment_id = $1`,
      [unknown],
    );
    await addEvidence(rig.db.database, unknown, { source: 'lookup', kind: 'absent' });
    const due = await rig.due(lane, 2);
    expect(await rig.begin(lane, due)).toMatchObject({ kind: 'waiting' });
    expect(await rig.retried(lane, [unsent?.id ?? ''])).toEqual([]);
    expect(await rig.resent(lane, unknown)).toBe(false);
    for (const { id } of due) expect(await rig.state(id)).toBe('scheduled');
    // The same three go on when the time of the probe has come, one of them.
    await rig.letWaitPass(lane);
    expect(await rig.resent(lane, unknown)).toBe(true);
    expect(await rig.started(lane, due)).toEqual([]);
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'half_open', probe_payment_id: unknown });
  });

  it('lets one probe through after 10 s, then after 20, 40, 60 and 60 s', async () => {
    const lane = await broken();
    for (const seconds of [20, 40, 60, 60]) {
      const calls = await probe(lane);
      expect(calls).toHaveLength(1);
      expect(await rig.lane(lane)).toMatchObject({ breaker: 'half_open' });
      await rig.end(calls, resultOf('ambiguous'));
      const standing = await rig.lane(lane);
      expect(standing).toMatchObject({ breaker: 'open', breaker_reason: 'failures_in_a_row' });
      expect(standing.probe_in_ms).toBeLessThanOrEqual(seconds * 1_000);
      expect(standing.probe_in_ms).toBeGreaterThan(seconds * 1_000 - 3_000);
    }
  });

  it('lets exactly one probe through, however many workers ask at once', async () => {
    const lane = await broken();
    await rig.letWaitPass(lane);
    const pool = rig.db.connect('workers', 12);
    const started = await Promise.all(
      Array.from({ length: 12 }, async () => rig.started(lane, await rig.due(lane, 3), pool)),
    );
    expect(started.flat()).toHaveLength(1);
  });

  it.each(['accepted', 'rejected', 'throttled'] as const)(
    'closes when its probe is answered: %s',
    async (answer) => {
      const lane = await broken();
      await rig.end(await probe(lane), resultOf(answer));
      expect(await rig.lane(lane)).toMatchObject({
        breaker: 'closed',
        breaker_reason: null,
        probe_in_ms: null,
      });
      // A provider that answers "too many calls" is there; its lane waits for that instead.
      expect((await rig.started(lane, await rig.due(lane, 5))).length).toBe(answer === 'throttled' ? 0 : 5);
    },
  );

  it('starts anew when it is closed: five more failures open it, and its first probe comes after 10 s', async () => {
    const lane = await broken();
    await rig.end(await probe(lane), resultOf('ambiguous'));
    await rig.end(await probe(lane), resultOf('accepted'));
    await rig.answers(lane, '1111');
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed' });
    await rig.answers(lane, '1');
    expect((await rig.lane(lane)).probe_in_ms).toBeLessThanOrEqual(10_000);
  });

  it('is neither closed nor kept open by calls that were under way before', async () => {
    const lane = await rig.addLane();
    const before = await rig.call(lane, 2);
    await rig.answers(lane, '11111');
    const [good, bad] = before;
    if (good) await rig.end([good], resultOf('accepted'));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'open' });
    const probed = await probe(lane);
    if (bad) await rig.end([bad], resultOf('ambiguous'));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'half_open' });
    await rig.end(probed, resultOf('accepted'));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'closed' });
  });

  it('lets the next probe go at once when one ended by a fault of our own', async () => {
    const lane = await broken();
    await rig.end(await probe(lane), resultOf('not_sent', { code: 'lease_lost' }));
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'open' });
    expect(await rig.started(lane, await rig.due(lane, 3))).toHaveLength(1);
  });

  it('stays open when every process restarts', async () => {
    const lane = await broken();
    const later = rig.db.connect('restarted');
    expect(await rig.begin(lane, await rig.due(lane, 1), later)).toMatchObject({ kind: 'waiting' });
  });
});

describe('the attempts of a payment', () => {
  it('are not used by probes: a provider that is down for hours fails nothing', async () => {
    const lane = await rig.addLane();
    const [call] = await rig.call(lane, 1);
    const id = call?.id ?? '';
    if (call) await rig.end([call], resultOf('not_sent'));
    for (let round = 0; round < 3 * MAX_UNSENT_ATTEMPTS; round++) {
      await rig.letWaitPass(lane);
      expect(await rig.retried(lane, [id])).toEqual([id]);
      await rig.end(await rig.claim([id]), resultOf('not_sent'));
      expect(await rig.givenUp(id)).toBe(false);
    }
    expect(await rig.lane(lane)).toMatchObject({ breaker: 'open' });
    await rig.letWaitPass(lane);
    await rig.retried(lane, [id]);
    await rig.end(await rig.claim([id]), resultOf('accepted'));
    expect(await rig.state(id)).toBe('succeeded');
  });

  it('are used by calls that never left while the lane was open: after ten it is given up (T12)', async () => {
    const lane = await rig.addLane({ breaker: false });
    const [call] = await rig.call(lane, 1);
    const id = call?.id ?? '';
    if (call) await rig.end([call], resultOf('not_sent'));
    for (let no = 2; no <= MAX_UNSENT_ATTEMPTS; no++) {
      expect(await rig.givenUp(id)).toBe(false);
      expect(await rig.retried(lane, [id])).toEqual([id]);
      await rig.end(await rig.claim([id]), resultOf('not_sent'));
    }
    expect(await rig.retried(lane, [id])).toEqual([]);
    expect(await rig.givenUp(id)).toBe(true);
    expect(await rig.state(id)).toBe('failed');
  });
});
