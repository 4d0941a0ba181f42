import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { move } from '../../src/payments/gate.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { estimateWaits } from '../../src/submission/begin-submission.store.js';
import { closeUnclaimed, takeOverdue } from '../../src/submission/sweep.store.js';
import { LaneRig, type CallUnderWay } from '../support/lane-rig.js';
import { addEvidence, paymentIn } from '../support/payment-states.js';
import { resultOf } from '../support/results.js';

let rig: LaneRig;
beforeAll(async () => {
  rig = await LaneRig.start();
});
afterAll(() => rig.stop());

const tooMany = (retryAfterMs: number | null) => resultOf('throttled', { httpStatus: 429, retryAfterMs });

/** A lane whose provider answered one call with 429. */
async function throttled(retryAfterMs: number | null): Promise<{ lane: string; first: CallUnderWay }> {
  const lane = await rig.addLane();
  const [first] = await rig.call(lane, 1);
  if (!first) throw new Error('no call');
  await rig.end([first], tooMany(retryAfterMs));
  return { lane, first };
}

/** Lets the wait of the lane pass and its probe go out. */
async function probe(lane: string): Promise<readonly CallUnderWay[]> {
  await rig.letWaitPass(lane);
  return rig.claim(await rig.started(lane, await rig.due(lane, 3)));
}

describe('a provider that has had enough (429)', () => {
  it('keeps its whole lane back as long as it asked, and no other lane (BK-02)', async () => {
    const { lane, first } = await throttled(60_000);
    expect((await rig.lane(lane)).wait_ms).toBeGreaterThan(50_000);
    expect((await rig.lane(lane)).wait_ms).toBeLessThanOrEqual(60_000);
    const waiting = await rig.due(lane, 3);
    const begun = await rig.begin(lane, waiting);
    expect(begun).toMatchObject({ kind: 'waiting' });
    if (begun.kind === 'waiting') expect(begun.waitMs).toBeGreaterThan(50_000);
    expect(await rig.retried(lane, [first.id])).toEqual([]);
    const unknown = await paymentIn('unknown', rig.db.database, { tenant: rig.tenant, lane });
    await rig.db.query(
      `UPDATE submission SET key_valid_until = clock_timestamp() + interval '1 hour' WHERE payment_id = $1`,
      [unknown],
    );
    await addEvidence(rig.db.database, unknown, { source: 'lookup', kind: 'absent' });
    expect(await rig.resent(lane, unknown)).toBe(false);
    const neighbour = await rig.addLane();
    expect(await rig.started(neighbour, await rig.due(neighbour, 3))).toHaveLength(3);
  });

  it('leaves what waits scheduled, so that it can be cancelled, and what had started without an attempt', async () => {
    const { lane, first } = await throttled(60_000);
    const [waiting] = await rig.due(lane, 1);
    await rig.begin(lane, [{ id: waiting?.id ?? '' }]);
    expect(await rig.state(waiting?.id ?? '')).toBe('scheduled');
    const cancelled = await move(rig.db.database, {
      rule: 'T5',
      tenant: rig.tenant,
      paymentId: waiting?.id ?? '',
      actor: 'api_key:test',
      announce: null,
    });
    expect(cancelled.kind).toBe('moved');
    expect(await rig.state(first.id)).toBe('submitting');
    const open = await rig.db.query(
      `SELECT 1 FROM submission_attempt WHERE payment_id = $1 AND closed_at IS NULL`,
      [first.id],
    );
    expect(open).toEqual([]);
  });

  it('is told to those that are sent back to wait, before their turn in the queue', async () => {
    const { lane } = await throttled(60_000);
    const [waiting] = await rig.due(lane, 1);
    const waits = await estimateWaits(rig.db.database, lane, [waiting?.id ?? '']);
    expect(waits.get(waiting?.id ?? '')?.waitMs).toBeGreaterThan(50_000);
  });

  it('has nobody woken for nothing, while an open lane beside it is served', async () => {
    const { lane } = await throttled(60_000);
    const open = await rig.addLane();
    const [closedOne, openOne] = [await rig.due(lane, 1), await rig.due(open, 1)];
    const ids = [...closedOne, ...openOne].map((payment) => payment.id);
    await rig.db.query(
      `UPDATE payment SET execute_at = clock_timestamp() - interval '10 s' WHERE id = ANY ($1)`,
      [ids],
    );
    const woken = (await takeOverdue(rig.db.database, 1_000, 1_000)).map((target) => target.payment_id);
    expect(woken).toContain(openOne[0]?.id);
    expect(woken).not.toContain(closedOne[0]?.id);
    await rig.letWaitPass(lane);
    const later = (await takeOverdue(rig.db.database, 1_000, 1_000)).map((target) => target.payment_id);
    expect(later).toContain(closedOne[0]?.id);
  });

  it.each([
    ['an absurd time is cut to 15 minutes', 86_400_000, 899_000, 900_000],
    ['a time beyond all numbers is cut to 15 minutes', Number.MAX_SAFE_INTEGER, 899_000, 900_000],
    ['no time at all to a second', 0, 100, 1_000],
    ['silence counts as up to a second', null, 100, 1_000],
  ])('%s', async (_what, asked, least, most) => {
    const { lane } = await throttled(asked);
    const { wait_ms: waitMs } = await rig.lane(lane);
    expect(waitMs).toBeGreaterThan(least);
    expect(waitMs).toBeLessThanOrEqual(most);
  });

  it('without a time is asked again after 1, 2, 4 s and so on to 60 s, jitter only shortens', async () => {
    const { lane } = await throttled(null);
    for (const seconds of [2, 4, 8, 16, 32, 60, 60]) {
      await rig.end(await probe(lane), tooMany(null));
      const { wait_ms: waitMs } = await rig.lane(lane);
      expect(waitMs).toBeLessThanOrEqual(seconds * 1_000);
      // Three quarters, less what the machine takes from the record to this reading.
      expect(waitMs).toBeGreaterThan(seconds * 750 - 700);
    }
  });

  it('that answers many calls so at once is one throttle, not many: the wait does not double for each', async () => {
    const lane = await rig.addLane();
    const calls = await rig.call(lane, 8);
    for (const call of calls) await rig.end([call], tooMany(null));
    const standing = await rig.lane(lane);
    expect(standing.throttle_step).toBe(1);
    expect(standing.wait_ms).toBeLessThanOrEqual(1_000);
  });

  it('and asks for more in a later answer is given more', async () => {
    const lane = await rig.addLane();
    const [one, two] = await rig.call(lane, 2);
    if (one) await rig.end([one], tooMany(2_000));
    if (two) await rig.end([two], tooMany(120_000));
    expect((await rig.lane(lane)).wait_ms).toBeGreaterThan(100_000);
  });

  it('is written in the commit that closes the attempt: an answer that comes too late says nothing', async () => {
    const lane = await rig.addLane();
    const [call] = await rig.call(lane, 1);
    await rig.db.query(
      `UPDATE submission_attempt SET call_started_at = call_started_at - interval '2 minutes' WHERE payment_id = $1`,
      [call?.id],
    );
    expect(await closeAbandoned(rig.db.database, [call?.id ?? ''], 'sweep')).toHaveLength(1);
    expect(call && (await rig.end([call], tooMany(60_000)))).toEqual([{ kind: 'late' }]);
    expect((await rig.lane(lane)).wait_ms).toBeNull();
  });
});

describe('when the wait of a throttled lane is over', () => {
  it('exactly one probe goes, however many workers ask at once', async () => {
    const { lane } = await throttled(60_000);
    await rig.letWaitPass(lane);
    const pool = rig.db.connect('workers', 12);
    const asked = await Promise.all(
      Array.from({ length: 12 }, async () => rig.begin(lane, await rig.due(lane, 2), pool)),
    );
    const started = asked.flatMap((result) => (result.kind === 'open' ? [...result.moved] : []));
    expect(started).toHaveLength(1);
    expect((await rig.lane(lane)).probe_payment_id).toBe(started[0]);
    // Nobody knows when the probe is answered: asked again soon, and refused again.
    expect(await rig.begin(lane, await rig.due(lane, 2))).toEqual({ kind: 'waiting', waitMs: 0 });
  });

  it('the probe may be a retry, and then nothing is started beside it', async () => {
    const { lane, first } = await throttled(60_000);
    await rig.letWaitPass(lane);
    expect(await rig.retried(lane, [first.id])).toEqual([first.id]);
    expect(await rig.started(lane, await rig.due(lane, 2))).toEqual([]);
    expect(await rig.claim([first.id])).toMatchObject([{ id: first.id, no: 2 }]);
  });

  it('and the probe is answered, everything goes on', async () => {
    const { lane, first } = await throttled(60_000);
    const waiting = await rig.due(lane, 20);
    const probed = await probe(lane);
    expect(probed).toHaveLength(1);
    await rig.end(probed, resultOf('accepted'));
    expect(await rig.lane(lane)).toMatchObject({ wait_ms: null, throttle_step: 0, probe_payment_id: null });
    expect(await rig.retried(lane, [first.id])).toEqual([first.id]);
    expect(await rig.started(lane, waiting)).toHaveLength(20);
  });

  it('and the probe is throttled too, the lane waits anew as long as it is told now', async () => {
    const { lane } = await throttled(60_000);
    await rig.end(await probe(lane), tooMany(300_000));
    expect((await rig.lane(lane)).wait_ms).toBeGreaterThan(290_000);
    expect(await rig.begin(lane, await rig.due(lane, 1))).toMatchObject({ kind: 'waiting' });
  });

  it('and the probe is not answered, the lane goes on waiting', async () => {
    const { lane } = await throttled(null);
    await rig.end(await probe(lane), resultOf('ambiguous'));
    expect((await rig.lane(lane)).wait_ms).toBeGreaterThan(0);
    expect(await rig.started(lane, await rig.due(lane, 1))).toEqual([]);
  });

  it('and the probe dies with its worker, the next one may go as soon as the sweep closed it', async () => {
    const { lane } = await throttled(60_000);
    const [lost] = await probe(lane);
    await rig.db.query(
      `UPDATE submission_attempt SET call_started_at = call_started_at - interval '2 minutes' WHERE payment_id = $1`,
      [lost?.id],
    );
    expect(await rig.started(lane, await rig.due(lane, 1))).toEqual([]);
    expect(await closeAbandoned(rig.db.database, null, 'sweep')).toContain(lost?.id);
    expect(await rig.started(lane, await rig.due(lane, 3))).toHaveLength(1);
  });

  it('and nothing is ever heard of the probe, another one may go after a while', async () => {
    const { lane } = await throttled(60_000);
    const [lost] = await probe(lane);
    await rig.db.query(`UPDATE lane SET probe_until = clock_timestamp() WHERE lane = $1`, [lane]);
    const [second] = await rig.started(lane, await rig.due(lane, 3));
    expect(second).toBeDefined();
    expect(second).not.toBe(lost?.id);
  });
});

describe('an attempt that was opened just before its lane was throttled', () => {
  it('is not called any more, is closed as not sent, and uses none of the payment’s attempts', async () => {
    const lane = await rig.addLane();
    const [first] = await rig.call(lane, 1);
    const opened = await rig.started(lane, await rig.due(lane, 3));
    expect(opened).toHaveLength(3);
    if (first) await rig.end([first], tooMany(60_000));
    expect(await rig.claim(opened)).toEqual([]);
    expect(await closeUnclaimed(rig.db.database)).toEqual(expect.arrayContaining([...opened]));
    for (const id of opened) {
      expect(await rig.state(id)).toBe('submitting');
      expect(await rig.givenUp(id)).toBe(false);
    }
    const [probed] = await probe(lane);
    if (probed) await rig.end([probed], resultOf('accepted'));
    expect(new Set(await rig.retried(lane, opened))).toEqual(new Set(opened));
    expect(await rig.claim(opened)).toHaveLength(3);
  });

  it('never counts as the probe, and the probe itself is left alone by the sweep', async () => {
    const { lane } = await throttled(60_000);
    await rig.letWaitPass(lane);
    const [probed] = await rig.started(lane, await rig.due(lane, 1));
    expect(await closeUnclaimed(rig.db.database)).not.toContain(probed);
    expect(await rig.claim([probed ?? ''])).toMatchObject([{ id: probed }]);
  });
});

it('a provider that throttles for hours uses up no attempts: the payment succeeds in the end (BK-02)', async () => {
  const { lane, first } = await throttled(60_000);
  for (let round = 0; round < 25; round++) {
    await rig.letWaitPass(lane);
    expect(await rig.retried(lane, [first.id])).toEqual([first.id]);
    await rig.end(await rig.claim([first.id]), tooMany(60_000));
    expect(await rig.givenUp(first.id)).toBe(false);
  }
  await rig.letWaitPass(lane);
  await rig.retried(lane, [first.id]);
  await rig.end(await rig.claim([first.id]), resultOf('accepted'));
  expect(await rig.state(first.id)).toBe('succeeded');
});
