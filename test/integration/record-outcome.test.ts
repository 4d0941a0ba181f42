import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentState } from '../../src/domain/payment-state.js';
import type { ResultClass } from '../../src/domain/provider-outcome.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { OutcomeUnknown, StorageUnavailable } from '../../src/persistence/database-errors.js';
import type { ProviderResult } from '../../src/providers/payment-provider.js';
import { OutcomeRecorder } from '../../src/submission/outcome-recorder.js';
import { closeAbandoned, recordOutcomes, type Outcome } from '../../src/submission/outcome.store.js';
import type { WorkerLease } from '../../src/submission/worker-lease.js';
import { EngineRig, live, type TestEngine } from '../support/engine.js';
import {
  addEvidence,
  claimAttempt,
  closeAttempt,
  openAttempt,
  paymentIn,
  step,
} from '../support/payment-states.js';
import { RecordedEvents } from '../support/recorded-events.js';
import { resultOf } from '../support/results.js';

let rig: EngineRig;
let one: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
});
afterAll(() => rig.stop());

interface Called {
  readonly id: string;
  readonly no: number;
  readonly owner: string;
}

/** A payment in `submitting` whose open attempt is claimed, after earlier ones that ended like this. */
async function called(before: readonly string[] = [], lane = rig.lane): Promise<Called> {
  const sql = rig.db.database;
  const id = await paymentIn('submitting', sql, { tenant: rig.tenant, lane });
  for (const evidence of before) {
    await closeAttempt(sql, id, evidence);
    if (evidence === 'ambiguous') {
      await step(sql, id, { rule: 'T13' });
      await step(sql, id, { rule: 'T15' });
    } else await step(sql, id, { rule: 'T11' });
    await openAttempt(sql, id, before.indexOf(evidence) + 2);
    await claimAttempt(sql, id, 'worker-of-test');
  }
  const open = (await rig.attempts(id)).find((attempt) => !attempt.closed);
  return { id, no: open?.no ?? 0, owner: open?.owner ?? '' };
}

const outcome = ({ id, no, owner }: Called, result: ProviderResult): Outcome => ({
  paymentId: id,
  generation: 1,
  no,
  owner,
  capabilityClass: 'A',
  phase: 'submit',
  result,
});

async function record(of: Called, result: ProviderResult) {
  const [recorded] = await recordOutcomes(rig.db.database, [outcome(of, result)], 1);
  return recorded;
}

/** Milliseconds from now until next_action_at; null when none is planned. */
async function nextActionInMs(id: string): Promise<number | null> {
  const [row] = await rig.db.query<{ ms: number | null }>(
    `SELECT (extract(epoch FROM next_action_at - clock_timestamp()) * 1000)::double precision AS ms
       FROM payment WHERE id = $1`,
    [id],
  );
  return row?.ms ?? null;
}

describe('the answer of a first attempt', () => {
  const table: readonly [string, ProviderResult, PaymentState, string, string | null][] = [
    ['accepted and final', resultOf('accepted'), 'succeeded', 'accepted', 'T9'],
    ['accepted and pending', resultOf('accepted', { status: 'pending' }), 'submitted', 'accepted', 'T8'],
    ['accepted without a status', resultOf('accepted', { status: null }), 'submitted', 'accepted', 'T8'],
    ['rejected', resultOf('rejected'), 'failed', 'refused', 'T10'],
    ['rejected for lack of funds', resultOf('rejected_funds'), 'failed', 'refused', 'T10'],
    ['ambiguous', resultOf('ambiguous', { httpStatus: 502 }), 'unknown', 'ambiguous', 'T13'],
    ['in flight', resultOf('in_flight', { httpStatus: 409 }), 'unknown', 'ambiguous', 'T13'],
    ['of another instruction', resultOf('key_mismatch'), 'needs_review', 'ambiguous', 'T16'],
    ['not sent', resultOf('not_sent'), 'submitting', 'not_sent', null],
    ['throttled', resultOf('throttled', { httpStatus: 429 }), 'submitting', 'not_sent', null],
  ];
  it.each(table)(
    'that is %s leads to its state and closes the attempt',
    async (_, result, state, evidence, rule) => {
      // A lane of its own: one that was throttled waits.
      const attempt = await called([], await rig.addLane({}));
      expect(await record(attempt, result)).toMatchObject({ kind: 'recorded', state });
      expect(await rig.state(attempt.id)).toBe(state);
      expect(await rig.attempts(attempt.id)).toMatchObject([
        { closed: true, result_class: result.class, evidence, code: result.code },
      ]);
      const rules = await rig.rules(attempt.id);
      expect(rules.slice(2)).toEqual(rule === null ? [] : [rule]);
      // Only a move leaves evidence of its answer; what was not sent says nothing about the provider.
      expect(await rig.evidence(attempt.id)).toEqual(rule === null ? [] : [`answer:${result.class}`]);
      expect(await rig.openCases(attempt.id)).toEqual(state === 'needs_review' ? ['key_mismatch'] : []);
    },
  );

  const waits: readonly [ResultClass, Partial<ProviderResult>, number | null][] = [
    ['accepted', { status: 'pending' }, 30_000],
    ['accepted', {}, null],
    ['rejected', {}, null],
    ['ambiguous', {}, 5_000],
    ['in_flight', {}, 2_000],
    ['not_sent', {}, 1_000],
    ['throttled', { retryAfterMs: 7_000 }, 7_000],
    ['throttled', { retryAfterMs: 86_400_000 }, 15 * 60_000],
    ['key_mismatch', {}, null],
  ];
  it.each(waits)('of class %s %o plans the next step in %s ms', async (of, members, ms) => {
    const attempt = await called([], await rig.addLane({}));
    await record(attempt, resultOf(of, members));
    const next = await nextActionInMs(attempt.id);
    if (ms === null) expect(next).toBeNull();
    else {
      expect(next).toBeLessThanOrEqual(ms);
      expect(next).toBeGreaterThan(ms - 900);
    }
  });

  it.each([
    ['amount', { amountMinor: 2_000n, currency: 'EUR', destination: 'acct_test' }],
    ['currency', { amountMinor: 1_999n, currency: 'USD', destination: 'acct_test' }],
  ])(
    'accepted by an adapter that overlooked another %s never succeeds: people decide (AM-01)',
    async (_, observed) => {
      const attempt = await called();
      expect(await record(attempt, resultOf('accepted', { observed }))).toMatchObject({
        state: 'needs_review',
      });
      expect(await rig.rules(attempt.id)).toEqual(['T1', 'T7', 'T16']);
      expect(await rig.attempts(attempt.id)).toMatchObject([
        { result_class: 'key_mismatch', evidence: 'ambiguous', code: 'other_money' },
      ]);
      expect(await rig.openCases(attempt.id)).toEqual(['key_mismatch']);
      expect(await rig.breachesOf(attempt.id)).toEqual([]);
    },
  );

  it('of class config pauses the lane, and the payment waits without failing', async () => {
    const lane = await rig.addLane({});
    const attempt = await called([], lane);
    const other = await rig.addLane({});
    expect(await record(attempt, resultOf('config', { httpStatus: 401 }))).toMatchObject({
      state: 'submitting',
      sent: false,
    });
    const lanes = await rig.db.query(`SELECT lane, paused, pause_reason FROM lane WHERE lane = ANY ($1)`, [
      [lane, other],
    ]);
    expect(lanes).toContainEqual({ lane, paused: true, pause_reason: 'provider_refused_credential' });
    expect(lanes).toContainEqual({ lane: other, paused: false, pause_reason: null });
    expect(await rig.state(attempt.id)).toBe('submitting');
  });
});

describe('after an ambiguous attempt of the same generation', () => {
  const table: readonly [string, ProviderResult, PaymentState, string][] = [
    ['a refusal stays unknown', resultOf('rejected'), 'unknown', 'ambiguous'],
    ['what was not sent stays unknown', resultOf('not_sent'), 'unknown', 'ambiguous'],
    ['a throttled call stays unknown', resultOf('throttled'), 'unknown', 'ambiguous'],
    ['a marked replay of the stored refusal fails', resultOf('rejected', { replayed: true }), 'failed', 'refused'],
    ['an accepted one succeeds', resultOf('accepted'), 'succeeded', 'accepted'],
    ['a marked replay of the stored answer succeeds', resultOf('accepted', { replayed: true }), 'succeeded', 'accepted'],
  ]; // prettier-ignore
  it.each(table)('%s, and keeps its class beside it', async (_, result, state, evidence) => {
    const attempt = await called(['ambiguous'], await rig.addLane({}));
    expect(await record(attempt, result)).toMatchObject({ kind: 'recorded', state });
    expect(await rig.state(attempt.id)).toBe(state);
    const attempts = await rig.attempts(attempt.id);
    expect(attempts.at(-1)).toMatchObject({ no: 2, result_class: result.class, evidence });
    if (state === 'unknown') expect((await rig.rules(attempt.id)).at(-1)).toBe('T13');
  });

  it('two proven non-calls do not make a refusal stay unknown', async () => {
    const attempt = await called(['not_sent']);
    expect(await record(attempt, resultOf('rejected'))).toMatchObject({ state: 'failed' });
  });
});

describe('recording', () => {
  it('twice is late the second time and changes nothing', async () => {
    const attempt = await called();
    expect(await record(attempt, resultOf('accepted'))).toMatchObject({ kind: 'recorded' });
    const before = await rig.db.query(`SELECT * FROM payment WHERE id = $1`, [attempt.id]);
    expect(await record(attempt, resultOf('rejected'))).toEqual({ kind: 'late' });
    expect(await rig.db.query(`SELECT * FROM payment WHERE id = $1`, [attempt.id])).toEqual(before);
    expect(await rig.attempts(attempt.id)).toMatchObject([{ result_class: 'accepted' }]);
  });

  it('by another owner than the attempt’s is late', async () => {
    const attempt = await called();
    expect(await record({ ...attempt, owner: 'worker-x' }, resultOf('rejected'))).toEqual({ kind: 'late' });
    expect(await rig.attempts(attempt.id)).toMatchObject([{ closed: false }]);
    expect(await rig.state(attempt.id)).toBe('submitting');
  });

  it('of the first attempt while the second is open is late and leaves the second alone', async () => {
    const second = await called(['ambiguous']);
    const [first] = await rig.attempts(second.id);
    const late = { id: second.id, no: 1, owner: first?.owner ?? '' };
    expect(await record(late, resultOf('accepted'))).toEqual({ kind: 'late' });
    expect(await rig.attempts(second.id)).toMatchObject([{ closed: true }, { closed: false }]);
    expect(await rig.state(second.id)).toBe('submitting');
  });

  it('tells a late answer apart from the next attempt’s when both come in one batch', async () => {
    const second = await called(['ambiguous']);
    const [first] = await rig.attempts(second.id);
    const late = { id: second.id, no: 1, owner: first?.owner ?? '' };
    const both = [outcome(late, resultOf('rejected')), outcome(second, resultOf('accepted'))];
    const recorded = await recordOutcomes(rig.db.database, both, 1);
    expect(recorded).toMatchObject([{ kind: 'late' }, { kind: 'recorded', state: 'succeeded' }]);
  });

  it('races the judgement that the worker is gone: one of them wins, for each of 60 payments', async () => {
    const attempts = await Promise.all(Array.from({ length: 60 }, () => called()));
    await rig.db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() - interval '1 s' WHERE id = ANY ($1)`, [
      attempts.map((a) => a.owner),
    ]); // prettier-ignore
    const sweep = rig.db.connect('sweep', 2);
    const [recorded, ...closed] = await Promise.all([
      Promise.all(attempts.map((a) => record(a, resultOf('accepted')))),
      ...[0, 20, 40].map((from) =>
        closeAbandoned(sweep, attempts.slice(from, from + 20).map((a) => a.id), 'sweep'),
      ), // prettier-ignore
    ]);
    const abandoned = new Set(closed.flat());
    for (const [i, { id }] of attempts.entries()) {
      expect(recorded[i]?.kind).toBe(abandoned.has(id) ? 'late' : 'recorded');
      expect(await rig.state(id)).toBe(abandoned.has(id) ? 'unknown' : 'succeeded');
    }
  });
});

/** As the owner: a closed attempt keeps its time. */
const endedAgo = (id: string, no: number, seconds: number) =>
  rig.plant(`ALTER TABLE submission_attempt DISABLE TRIGGER ALL;
    UPDATE submission_attempt SET closed_at = clock_timestamp() - interval '${seconds} s'
     WHERE payment_id = '${id}' AND no = ${no}; ALTER TABLE submission_attempt ENABLE TRIGGER ALL`);

describe('the answer of an attempt after an ambiguous one', () => {
  it.each([
    [20, 40_000],
    [100, 80_000],
    [3, 2_000],
  ])('goes on with the ladder of the first, %s s old: a resend does not start it again', async (age, ms) => {
    const second = await called(['ambiguous']);
    await endedAgo(second.id, 1, age);
    await record(second, resultOf('ambiguous'));
    const next = await nextActionInMs(second.id);
    expect(next).toBeLessThanOrEqual(ms);
    expect(next).toBeGreaterThan(ms - 900);
  });

  it('that is refused is definite once the absence of the first was proven (rule 6)', async () => {
    const sticky = await called(['ambiguous']);
    await addEvidence(rig.db.database, sticky.id, { source: 'lookup', kind: 'absent' });
    expect(await record(sticky, resultOf('rejected'))).toMatchObject({ state: 'unknown' });
    const proven = await called(['ambiguous']);
    await addEvidence(rig.db.database, proven.id, { source: 'lookup', kind: 'absence_proven' });
    expect(await record(proven, resultOf('rejected'))).toMatchObject({ state: 'failed' });
  });

  it('waits longer each time the key is still busy, 2 s doubling to 30 s', async () => {
    const second = await called(['ambiguous']);
    await record(second, resultOf('in_flight', { httpStatus: 409 }));
    const next = await nextActionInMs(second.id);
    expect(next).toBeLessThanOrEqual(4_000);
    expect(next).toBeGreaterThan(3_100);
  });
});

describe('an answer where nobody can be asked', () => {
  it('calls people at once: the first step is due now (class D)', async () => {
    const attempt = await called();
    const told = { ...outcome(attempt, resultOf('ambiguous')), capabilityClass: 'D' } as const;
    await recordOutcomes(rig.db.database, [told], 1);
    expect(await nextActionInMs(attempt.id)).toBeLessThanOrEqual(0);
  });

  it('accepted as an object that moves nothing is no success', async () => {
    const attempt = await called();
    expect(await record(attempt, resultOf('accepted', { status: 'inert' }))).toMatchObject({
      state: 'unknown',
    });
    expect(await rig.attempts(attempt.id)).toMatchObject([{ evidence: 'ambiguous', code: 'still_inert' }]);
  });
});

describe('a recording whose commit is in doubt', () => {
  const recorder = () => {
    const database = rig.tapped('recorder', 2);
    const events = new RecordedEvents();
    return { database, events, of: new OutcomeRecorder(database, {} as WorkerLease, events.sink, 1) };
  };

  it('is asked again; its own first commit is not taken for somebody else’s', async () => {
    const attempt = await called();
    const { database, events, of } = recorder();
    const undo = database.tap('record-outcomes', async (run) => {
      await run();
      undo();
      throw new OutcomeUnknown('the answer was lost');
    });
    await of.record(outcome(attempt, resultOf('accepted')));
    expect(await rig.state(attempt.id)).toBe('succeeded');
    expect(await rig.evidence(attempt.id)).toEqual(['answer:accepted']);
    expect(events.count('lateAnswer')).toBe(0);
    expect(events.count('fault')).toBe(1);
  });

  it('is filed as late when the attempt was closed by others before it could be asked again', async () => {
    const attempt = await called();
    const { database, events, of } = recorder();
    const undo = database.tap('record-outcomes', async () => {
      undo();
      await rig.db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() - interval '1 s' WHERE id = $1`, [
        attempt.owner,
      ]); // prettier-ignore
      await closeAbandoned(rig.db.database, [attempt.id], 'sweep');
      throw new StorageUnavailable('nothing ran');
    });
    expect(await of.record(outcome(attempt, resultOf('accepted')))).toEqual({ kind: 'late' });
    expect(await rig.evidence(attempt.id)).toEqual(['late_answer:accepted']);
    expect(events.count('lateAnswer')).toBe(1);
  });

  it('files a late answer in the end although the first filing failed', async () => {
    const attempt = await called();
    await record(attempt, resultOf('ambiguous'));
    const { database, of } = recorder();
    const undo = database.tap('file-late-answer', async () => {
      undo();
      throw new StorageUnavailable('nothing ran');
    });
    expect(await of.record(outcome(attempt, resultOf('accepted')))).toEqual({ kind: 'late' });
    expect(await rig.evidence(attempt.id)).toEqual(['answer:ambiguous', 'late_answer:accepted']);
  });

  it('pays once when the answer to the claim was lost: the attempt is inquired, not called blindly', async () => {
    const payment: PaymentRow = await rig.pay();
    const undo = one.database.tap('claim-attempts', async (run) => {
      const rows = await run();
      if (rows.rowCount === 0) return rows;
      undo();
      throw new OutcomeUnknown('the answer was lost');
    });
    await expect(live(one, payment)).rejects.toThrow(OutcomeUnknown);
    expect(await rig.attempts(payment.id)).toMatchObject([{ called: true, closed: false }]);
    await rig.db.query(
      `UPDATE submission_attempt SET call_started_at = clock_timestamp() - interval '61 s' WHERE payment_id = $1`,
      [payment.id],
    );
    expect(await live(one, payment)).toBe('succeeded');
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T15', 'T9']);
  });
});
