import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { MAX_ATTEMPTS } from '../../src/domain/submission-policy.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { recordCreates } from '../../src/submission/create.store.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { giveUpNotSent, retryNotSent } from '../../src/submission/resend.store.js';
import { claimAttempts } from '../../src/submission/submission.store.js';
import { armedFor, EngineRig, live, type LifeEnd, type TestEngine } from '../support/engine.js';
import { seedWorker } from '../support/payment-states.js';
import { resultOf } from '../support/results.js';
import type { FaultInput } from '../support/simulator.js';

/** Class T: the create moves nothing, the one commit target is what may be committed. */

let rig: EngineRig;
let one: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine({ provider: { profile: 'T' } });
});
afterEach(() => {
  one.provider.aroundSubmit = null;
  one.provider.aroundCommit = null;
});
afterAll(() => rig.stop());

const effects = async ({ id }: PaymentRow): Promise<number> => (await rig.simulator.effects(id)).count;
const requestsOf = async ({ id }: PaymentRow, operation: string) =>
  (await rig.simulator.requests(id)).filter((request) => request.operation === operation);

/** A payment in a lane of its own: what goes wrong with one closes no other's lane. */
async function payAlone(
  faults: { submit?: FaultInput[]; commit?: FaultInput[]; lookup?: FaultInput[] } = {},
) {
  const payment = await rig.pay({ lane: await rig.addLane({}) });
  await rig.simulator.plan({ scripts: [{ reference: payment.id, ...faults }] });
  return payment;
}

async function story(faults: Parameters<typeof payAlone>[0]): Promise<{ payment: PaymentRow; end: LifeEnd }> {
  const payment = await payAlone(faults);
  return { payment, end: await live(one, payment) };
}

/** A worker that dies: what it claimed is abandoned at once. */
async function dyingWorker(): Promise<{ readonly id: string; die(): Promise<void> }> {
  const id = await seedWorker(rig.db.database);
  const die = async (): Promise<void> => {
    await rig.db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() WHERE id = $1`, [id]);
  };
  return { id, die };
}

describe('a payment of two phases', () => {
  it('is made inert, then committed: one move of money, under the key and the key with :commit', async () => {
    const { payment, end } = await story({});
    expect(end).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T11', 'T9']);
    expect(await rig.attempts(payment.id)).toMatchObject([
      { no: 1, phase: 'submit', result_class: 'accepted', evidence: 'not_sent' },
      { no: 2, phase: 'commit', result_class: 'accepted', evidence: 'accepted' },
    ]);
    const [charge] = (await rig.simulator.effects(payment.id)).charges;
    expect(await rig.commitTarget(payment.id)).toBe(charge?.payoutId);
    const [submit] = await requestsOf(payment, 'submit');
    const [commit] = await requestsOf(payment, 'commit');
    expect(commit?.key).toBe(`${submit?.key}:commit`);
    expect(await effects(payment)).toBe(1);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  });

  it.each([
    'reset_after',
    'http_500_after',
    'http_502_html_after',
    'broken_json_after',
    'reset_before',
    'hang',
  ])(
    'whose create ends with %s is made again under its key and never unknown: nothing had moved',
    async (fault) => {
      one.provider.deadlineMs = fault === 'hang' ? 300 : null;
      const { payment, end } = await story({ submit: [fault] });
      one.provider.deadlineMs = null;
      expect(end).toBe('succeeded');
      expect(await rig.history(payment.id)).not.toContain('unknown');
      const [first] = await rig.attempts(payment.id);
      expect(first).toMatchObject({ phase: 'submit', result_class: 'ambiguous', evidence: 'not_sent' });
      const creates = await requestsOf(payment, 'submit');
      expect(creates).toHaveLength(2);
      expect(new Set(creates.map((request) => request.key)).size).toBe(1);
      expect(await requestsOf(payment, 'commit')).toHaveLength(1);
      expect(await effects(payment)).toBe(1);
    },
  );

  it('whose create meets an error that the provider keeps under its key fails: nothing had moved (T12)', async () => {
    const { payment, end } = await story({ submit: [{ kind: 'http_500_before', stored: true }] });
    expect(end).toBe('failed');
    expect((await rig.rules(payment.id)).at(-1)).toBe('T12');
    expect(await requestsOf(payment, 'submit')).toHaveLength(2);
    expect(await requestsOf(payment, 'commit')).toEqual([]);
    expect(await effects(payment)).toBe(0);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  });

  it('whose creates get no answer is made ten times at most, then fails (T12)', async () => {
    const payment = await payAlone();
    await one.services.begin.beginSubmission(armedFor(payment));
    const worker = await seedWorker(rig.db.database);
    for (let no = 1; no <= MAX_ATTEMPTS; no++) {
      expect((await giveUpNotSent(rig.db.database, [payment.id], 'sweep')).size).toBe(0);
      const claim = (await claimAttempts(rig.db.database, [payment.id], worker, 3_600_000)).get(payment.id);
      expect(claim).toMatchObject({ no, phase: 'submit' });
      const told = {
        paymentId: payment.id,
        generation: 1,
        no,
        owner: worker,
        capabilityClass: 'T',
        phase: 'submit',
      } as const;
      await recordCreates(rig.db.database, [{ ...told, result: resultOf('ambiguous') }]);
      await rig.db.query(`UPDATE lane SET breaker_enabled = false WHERE lane = $1`, [payment.lane]);
      await rig.makeDue(payment);
      const opened = await retryNotSent(rig.db.database, payment.lane, worker, [payment.id]);
      expect(opened.size).toBe(no < MAX_ATTEMPTS ? 1 : 0);
    }
    expect((await giveUpNotSent(rig.db.database, [payment.id], 'sweep')).get(payment.id)).toBe('failed');
    expect((await rig.attempts(payment.id)).map((attempt) => attempt.evidence)).not.toContain('ambiguous');
  });

  it('whose create is refused fails without a commit (T10)', async () => {
    const { payment, end } = await story({ submit: ['decline'] });
    expect(end).toBe('failed');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T10']);
    expect(await requestsOf(payment, 'commit')).toEqual([]);
    expect(await effects(payment)).toBe(0);
  });

  it('whose worker dies in the create, or after its answer, goes on with one object and one charge (CR-01)', async () => {
    for (const point of ['after_fence', 'after_answer'] as const) {
      const payment = await payAlone();
      await one.services.begin.beginSubmission(armedFor(payment));
      const worker = await dyingWorker();
      const claims = await claimAttempts(rig.db.database, [payment.id], worker.id, 3_600_000);
      expect(claims.get(payment.id)).toMatchObject({
        phase: 'submit',
        capabilityClass: 'T',
        commitTarget: null,
      });
      if (point === 'after_answer') await createElsewhere(payment, claims.get(payment.id)?.providerKey ?? '');
      await worker.die();
      expect(await closeAbandoned(rig.db.database, [payment.id], 'sweep')).toEqual([]);
      expect(await rig.state(payment.id)).toBe('submitting');
      expect(await live(one, payment)).toBe('succeeded');
      expect(await effects(payment)).toBe(1);
      expect(await rig.breachesOf(payment.id)).toEqual([]);
    }
  });
});

/** What the dead worker's call did at the provider. */
async function createElsewhere(payment: PaymentRow, key: string): Promise<void> {
  const response = await fetch(`${rig.simulator.url}/v1/payouts`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${rig.simulator.apiKeys.T}`,
      'idempotency-key': key,
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      amount: Number(payment.amount),
      currency: payment.currency,
      destination: 'acct_test',
      reference: `${payment.id}/1`,
    }),
  });
  expect(response.status).toBeLessThan(300);
}

const cancelAtProvider = async (id: string): Promise<number> =>
  (
    await fetch(`${rig.simulator.url}/v1/payouts/${id}/cancel`, {
      method: 'POST',
      headers: { authorization: `Bearer ${rig.simulator.apiKeys.T}`, 'idempotency-key': `stop-${id}` },
    })
  ).status;

describe('a commit of which nobody knows the outcome (T13)', () => {
  it('is adopted when a read by id shows it released (T14)', async () => {
    const { payment, end } = await story({ commit: ['reset_after'] });
    expect(end).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T11', 'T13', 'T14']);
    expect(await requestsOf(payment, 'commit')).toHaveLength(1);
    const target = await rig.commitTarget(payment.id);
    expect((await requestsOf(payment, 'lookup'))[0]?.path).toContain(target);
    expect(await effects(payment)).toBe(1);
  });

  it('is made again when a read by id shows the object still inert (T15)', async () => {
    const { payment, end } = await story({ commit: ['reset_before'] });
    expect(end).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T11', 'T13', 'T15', 'T9']);
    const commits = await requestsOf(payment, 'commit');
    expect(commits).toHaveLength(2);
    expect(new Set(commits.map((request) => request.key)).size).toBe(1);
    expect(await requestsOf(payment, 'submit')).toHaveLength(1);
    expect(await effects(payment)).toBe(1);
  });

  it('goes on under a second key when a stored error blocks the first and the object is still inert', async () => {
    const { payment, end } = await story({ commit: [{ kind: 'http_500_before', stored: true }] });
    expect(end).toBe('succeeded');
    const keys = (await requestsOf(payment, 'commit')).map((request) => request.key?.replace(/^[^:]+/, ''));
    expect(keys).toEqual([':commit', ':commit', ':commit:2']);
    expect(await effects(payment)).toBe(1);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  });

  it('fails when the object was stopped: that is positive evidence', async () => {
    const payment = await payAlone({ commit: ['reset_before'] });
    one.provider.aroundCommit = async (commit) => {
      const answer = await commit();
      expect(await cancelAtProvider((await rig.commitTarget(payment.id)) ?? '')).toBe(200);
      return answer;
    };
    expect(await live(one, payment)).toBe('failed');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T11', 'T13', 'T14']);
    expect(await effects(payment)).toBe(0);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  });

  it('is reviewed by people when no read tells, and is not committed again', async () => {
    const { payment, end } = await story({
      commit: ['reset_before'],
      lookup: [{ kind: 'lookup_500', times: 'always' }],
    });
    expect(end).toBe('needs_review');
    expect(await requestsOf(payment, 'commit')).toHaveLength(1);
  });

  it('is never failed by silence: the object was there when it was made', async () => {
    const { payment, end } = await story({
      commit: ['reset_before'],
      lookup: [{ kind: 'lookup_absent', times: 'always' }],
    });
    expect(end).toBe('needs_review');
    expect(await requestsOf(payment, 'commit')).toHaveLength(1);
  });

  it('of a worker that died after the provider had committed is found, and charged once (CR-01)', async () => {
    const payment = await payAlone();
    const worker = await dyingWorker();
    one.provider.aroundCommit = async (commit) => {
      await commit();
      await rig.db.query(
        `UPDATE submission_attempt SET owner = $2 WHERE payment_id = $1 AND closed_at IS NULL`,
        [payment.id, worker.id],
      );
      await worker.die();
      expect(await closeAbandoned(rig.db.database, [payment.id], 'sweep')).toEqual([payment.id]);
      return resultOf('ambiguous', { code: 'nobody_hears_it' });
    };
    expect(await live(one, payment)).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T11', 'T13', 'T14']);
    expect(await effects(payment)).toBe(1);
  });
});

describe('an object that is not what was asked for', () => {
  it.each(['succeeded', 'pending', null] as const)(
    'because it commits itself (status %s) is refused and reviewed; nothing is committed',
    async (status) => {
      one.provider.aroundSubmit = async (submit) => ({ ...(await submit()), status, code: 'self' });
      const { payment, end } = await story({});
      expect(end).toBe('needs_review');
      expect(await rig.openCases(payment.id)).toEqual(['key_mismatch']);
      expect(await rig.attempts(payment.id)).toMatchObject([{ phase: 'submit', evidence: 'ambiguous', code: 'commits_itself' }]); // prettier-ignore
      expect(await requestsOf(payment, 'commit')).toEqual([]);
    },
  );

  it('because its money differs is refused (AM-01)', async () => {
    one.provider.aroundSubmit = async (submit) => {
      const made = await submit();
      return { ...made, observed: { ...made.observed, amountMinor: 1n } };
    };
    const { payment, end } = await story({});
    expect(end).toBe('needs_review');
    expect(await rig.commitTarget(payment.id)).toBeNull();
    expect(await requestsOf(payment, 'commit')).toEqual([]);
  });

  it('because another payment commits it already is refused: a commit target is nobody else’s', async () => {
    const { payment: first } = await story({});
    const target = await rig.commitTarget(first.id);
    one.provider.aroundSubmit = async (submit) => ({ ...(await submit()), providerRef: target });
    const { payment, end } = await story({});
    expect(end).toBe('needs_review');
    expect(await rig.attempts(payment.id)).toMatchObject([{ code: 'object_of_another' }]);
    expect(await effects(first)).toBe(1);
  });

  it('that two creates of one batch name at once is given to one of them only', async () => {
    const [a, b] = [await payAlone(), await payAlone()];
    one.provider.aroundSubmit = async (submit) => {
      const made = await submit();
      return { ...made, providerRef: 'po_claimedByTwo00' };
    };
    one.provider.aroundCommit = () => Promise.resolve(resultOf('rejected'));
    const ends = await Promise.all([live(one, a), live(one, b)]);
    expect([...ends].sort()).toEqual(['failed', 'needs_review']);
  });

  it('is kept out by the database too: the target is unique and written once', async () => {
    const { payment: first } = await story({});
    const { payment: second } = await story({});
    const set = (id: string, target: string | null) =>
      rig.db.query(`UPDATE submission SET commit_target = $2 WHERE payment_id = $1`, [id, target]);
    await expect(set(second.id, 'po_other')).rejects.toMatchObject({ constraint: 'submission_target_once' });
    const third = await rig.pay();
    await one.services.begin.beginSubmission(armedFor(third));
    await expect(set(third.id, await rig.commitTarget(first.id))).rejects.toMatchObject({
      code: '23505',
      constraint: 'submission_commit_target_unique',
    });
    await expect(
      rig.db.query(`UPDATE submission SET capability_class = 'D' WHERE payment_id = $1`, [first.id]),
    ).rejects.toMatchObject({ constraint: 'submission_target_once' });
  });
});

describe('a commit', () => {
  it('answered with "still inert" is unknown, not submitted', async () => {
    const payment = await payAlone();
    let calls = 0;
    one.provider.aroundCommit = async (commit) =>
      calls++ === 0
        ? resultOf('accepted', { status: 'inert', providerRef: await rig.commitTarget(payment.id) })
        : commit();
    expect(await live(one, payment)).toBe('succeeded');
    expect((await rig.attempts(payment.id))[1]).toMatchObject({ evidence: 'ambiguous', code: 'still_inert' });
    expect(await effects(payment)).toBe(1);
  });

  it('answered with another object goes to people', async () => {
    const payment = await payAlone();
    one.provider.aroundCommit = async (commit) => ({ ...(await commit()), providerRef: 'po_another0000' });
    expect(await live(one, payment)).toBe('needs_review');
    expect(await rig.openCases(payment.id)).toEqual(['key_mismatch']);
  });

  it('that is refused fails the payment, whose creates moved nothing (T10)', async () => {
    const { payment, end } = await story({ submit: ['reset_after'], commit: ['decline'] });
    expect(end).toBe('failed');
    expect((await rig.rules(payment.id)).at(-1)).toBe('T10');
    expect(await effects(payment)).toBe(0);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  });

  it('whose lane is paused before it was called is proven not sent, and committed when the lane opens', async () => {
    const payment = await payAlone();
    one.provider.aroundSubmit = async (submit) => {
      const made = await submit();
      await rig.db.query(`UPDATE lane SET paused = true WHERE lane = $1`, [payment.lane]);
      return made;
    };
    const end = live(one, payment);
    await rig.simulator.untilRequests(payment.id, (requests) => requests.length > 0);
    await rig.db.query(`UPDATE lane SET paused = false WHERE lane = $1`, [payment.lane]);
    expect(await end).toBe('succeeded');
    expect(await effects(payment)).toBe(1);
  });
});
