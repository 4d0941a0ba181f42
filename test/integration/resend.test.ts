import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_ATTEMPTS, MAX_UNSENT_ATTEMPTS } from '../../src/domain/submission-policy.js';
import { recordOutcomes } from '../../src/submission/outcome.store.js';
import {
  giveUpNotSent,
  resendUnknown,
  retryNotSent,
  type ResendBy,
} from '../../src/submission/resend.store.js';
import { EngineRig, live, type PaySeed, type TestEngine } from '../support/engine.js';
import {
  addEvidence,
  claimAttempt,
  closeAttempt,
  openAttempt,
  openGeneration,
  paymentIn,
  seedWorker,
} from '../support/payment-states.js';
import { resultOf } from '../support/results.js';
import { until } from '../support/until.js';

let rig: EngineRig;
let worker: string;
let one: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  worker = await seedWorker(rig.db.database);
  one = await rig.engine();
});
afterAll(() => rig.stop());

const CLASS_A = { capabilityClass: 'A', phase: 'submit' } as const;
const KEY_LIVES = `UPDATE submission SET key_valid_until = clock_timestamp() + interval '1 hour' WHERE payment_id = $1`;

/** An unknown payment whose last attempt was looked up since and found absent: all of rule 7 holds. */
async function resendable(seed: PaySeed = {}): Promise<string> {
  const id = await paymentIn('unknown', rig.db.database, { tenant: rig.tenant, lane: rig.lane, ...seed });
  await rig.db.query(KEY_LIVES, [id]);
  await addEvidence(rig.db.database, id, { source: 'lookup', kind: 'absent' });
  return id;
}

/** The adapter as it was when the generation opened. */
const SAME: ResendBy = {
  capabilityClass: 'A',
  adapter: 'simulated',
  apiVersion: '1',
  account: 'test',
  baseUrl: 'http://127.0.0.1',
  credentialId: null,
  readsAreStrong: true,
};

const resend = (id: string, options: { lane?: string; by?: string; now?: Partial<ResendBy> } = {}) =>
  resendUnknown(rig.db.database, options.lane ?? rig.lane, options.by ?? worker, id, {
    ...SAME,
    ...options.now,
  });

/** As the owner: the class of a generation is written once. */
const plantClass = (id: string, capability: string, target: string | null = null) =>
  rig.plant(`ALTER TABLE submission DISABLE TRIGGER ALL;
    UPDATE submission SET capability_class = '${capability}', commit_target = ${target === null ? 'NULL' : `'${target}'`}
     WHERE payment_id = '${id}'; ALTER TABLE submission ENABLE TRIGGER ALL`);

const run = (text: string) => async (id: string) => void (await rig.db.query(text, [id]));
const evidence = (source: 'lookup' | 'late_answer', kind: string) => (id: string) =>
  addEvidence(rig.db.database, id, { source, kind });
/** As the owner: closed attempts keep what they said, so no program could write this. */
const plantAttempt = (text: string) => (id: string) =>
  rig.plant(`ALTER TABLE submission_attempt DISABLE TRIGGER ALL; ${text.replaceAll('$1', `'${id}'`)};
    ALTER TABLE submission_attempt ENABLE TRIGGER ALL`);

async function expectRefused(id: string, options: Parameters<typeof resend>[1] = {}): Promise<void> {
  const attempts = await rig.attempts(id);
  const state = await rig.state(id);
  expect(await resend(id, options)).toBe(false);
  expect(await rig.attempts(id)).toEqual(attempts);
  expect(await rig.state(id)).toBe(state);
}

describe('a resend of an unknown payment (T15)', () => {
  it('opens the next attempt of the same generation when every condition holds', async () => {
    const id = await resendable();
    expect(await resend(id)).toBe(true);
    expect(await rig.state(id)).toBe('submitting');
    expect(await rig.attempts(id)).toMatchObject([
      { generation: 1, no: 1, closed: true },
      { generation: 1, no: 2, owner: null, called: false, closed: false },
    ]);
    expect((await rig.rules(id)).at(-1)).toBe('T15');
    const submissions = await rig.db.query(`SELECT generation FROM submission WHERE payment_id = $1`, [id]);
    expect(submissions).toEqual([{ generation: 1 }]);
  });

  it('twice opens one attempt', async () => {
    const id = await resendable();
    expect(await resend(id)).toBe(true);
    await expectRefused(id);
  });

  it('by four workers at once opens one attempt', async () => {
    const id = await resendable();
    const workers = await Promise.all([1, 2, 3, 4].map(() => seedWorker(rig.db.database)));
    const opened = await Promise.all(workers.map((by) => resend(id, { by })));
    expect(opened.filter(Boolean)).toHaveLength(1);
    expect(await rig.attempts(id)).toHaveLength(2);
  });

  // Rule 7 of the submission protocol, each condition broken alone.
  const broken: readonly [string, (id: string) => Promise<unknown>][] = [
    ['the key was never used, so its life is not known', run(`UPDATE submission SET key_valid_until = NULL WHERE payment_id = $1`)],
    ['the life of the key is over (DC-02)', run(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`)],
    ['an attempt is open', (id) => openAttempt(rig.db.database, id, 2)],
    ['ten attempts were made', plantAttempt(`UPDATE submission_attempt SET no = ${MAX_ATTEMPTS} WHERE payment_id = $1`)],
    ['the last answer was of another instruction', plantAttempt(`UPDATE submission_attempt SET result_class = 'key_mismatch' WHERE payment_id = $1`)],
    ['the last answer was a stored 5xx', plantAttempt(`UPDATE submission_attempt SET http_status = 500, replayed = true WHERE payment_id = $1`)],
    ['a lookup once found it', evidence('lookup', 'found')],
    ['a lookup once found another under its reference', evidence('lookup', 'found_other')],
    ['a lookup once found several', evidence('lookup', 'found_many')],
    ['a late answer said accepted', evidence('late_answer', 'accepted')],
    ['a late answer said another instruction', evidence('late_answer', 'key_mismatch')],
    ['an answer named its object, though not understood', run(`UPDATE payment SET provider_ref = 'po_seen' WHERE id = $1`)],
    ['it is submitted', (id) => rig.plant(`UPDATE payment SET state = 'submitted' WHERE id = '${id}'`)],
    ['people review it', (id) => rig.plant(`UPDATE payment SET state = 'needs_review' WHERE id = '${id}'`)],
    ['it is final', (id) => rig.plant(`UPDATE payment SET state = 'failed' WHERE id = '${id}'`)],
  ]; // prettier-ignore
  it.each(broken)('is refused when %s', async (_, breakIt) => {
    const id = await resendable();
    await breakIt(id);
    await expectRefused(id);
  });

  it('is refused when nobody looked since the last attempt', async () => {
    const id = await resendable();
    expect(await resend(id)).toBe(true);
    await claimAttempt(rig.db.database, id, worker);
    await recordOutcomes(
      rig.db.database,
      [{ ...CLASS_A, paymentId: id, generation: 1, no: 2, owner: worker, result: resultOf('ambiguous') }],
      1,
    );
    expect(await rig.state(id)).toBe('unknown');
    await expectRefused(id);
    await addEvidence(rig.db.database, id, { source: 'lookup', kind: 'cannot_tell' });
    await expectRefused(id);
    await addEvidence(rig.db.database, id, { source: 'lookup', kind: 'absent' });
    expect(await resend(id)).toBe(true);
  });

  it('needs no lookup only where the provider has none', async () => {
    const id = await paymentIn('unknown', rig.db.database, { tenant: rig.tenant, lane: rig.lane });
    await rig.db.query(KEY_LIVES, [id]);
    await expectRefused(id);
    await plantClass(id, 'B');
    expect(await resend(id, { now: { capabilityClass: 'B' } })).toBe(true);
  });

  it.each(['C', 'D'] as const)(
    'is refused in class %s, whatever was found absent',
    async (capabilityClass) => {
      const id = await resendable();
      await plantClass(id, capabilityClass);
      await expectRefused(id, { now: { capabilityClass } });
    },
  );

  it.each([
    ['class', { capabilityClass: 'B' }],
    ['adapter', { adapter: 'other' }],
    ['interface', { apiVersion: '2' }],
    ['account', { account: 'other' }],
    ['address', { baseUrl: 'http://127.0.0.2' }],
    ['credential, where keys belong to one', { credentialId: 'other' }],
  ] as const)(
    'is refused when the %s is another than when the generation opened (rule 5)',
    async (_, now) => {
      await expectRefused(await resendable(), { now });
    },
  );

  describe('of two phases', () => {
    const read = (id: string, status: string | null, ref = 'po_target', kind = 'found') =>
      rig.db.query(
        `INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, status, provider_ref)
         SELECT id, tenant_id, 1, 'lookup', $2, $3, $4 FROM payment WHERE id = $1`,
        [id, kind, status, ref],
      );
    const now = { capabilityClass: 'T' } as const;
    const committing = async (): Promise<string> => {
      const id = await resendable();
      await plantClass(id, 'T', `po_target_${id}`);
      await rig.db.query(`UPDATE payment SET provider_ref = 'po_target_' || id WHERE id = $1`, [id]);
      return id;
    };
    const target = (id: string): string => `po_target_${id}`;

    it('opens another commit when a read by id since the last attempt shows the object inert', async () => {
      const id = await committing();
      await read(id, 'inert', target(id));
      expect(await resend(id, { now })).toBe(true);
      expect((await rig.attempts(id)).at(-1)).toMatchObject({ phase: 'commit', closed: false });
    });

    it('is refused without that read, or when it showed another object, or something newer', async () => {
      await expectRefused(await committing(), { now });
      const other = await committing();
      await read(other, 'inert', 'po_other');
      await expectRefused(other, { now });
      const absent = await committing();
      await read(absent, 'inert', target(absent));
      await read(absent, null, target(absent), 'absent');
      await expectRefused(absent, { now });
      for (const status of ['pending', 'succeeded', 'failed']) {
        const released = await committing();
        await read(released, status, target(released));
        await read(released, 'inert', target(released));
        await expectRefused(released, { now });
      }
    });

    it('is refused where reads are not strong', async () => {
      const id = await committing();
      await read(id, 'inert', target(id));
      await expectRefused(id, { now: { ...now, readsAreStrong: false } });
    });
  });

  it('is refused past not_after', async () => {
    const id = await resendable({ notAfter: await rig.timeIn(300) });
    await until('the deadline', () => rig.deadlinePassed(id), Boolean);
    await expectRefused(id);
  });

  it('is refused on a paused lane, without a token, on another lane, and without a lease', async () => {
    const lane = await rig.addLane({ rate: 0.001, burst: 1 });
    const id = await resendable({ lane });
    await rig.db.query(`UPDATE lane SET paused = true WHERE lane = $1`, [lane]);
    await expectRefused(id, { lane });
    await rig.db.query(`UPDATE lane SET paused = false, tokens = 0, refilled_at = clock_timestamp() WHERE lane = $1`, [lane]); // prettier-ignore
    await expectRefused(id, { lane });
    await rig.db.query(`UPDATE lane SET tokens = 1 WHERE lane = $1`, [lane]);
    await expectRefused(id);
    await expectRefused(id, { lane, by: await seedWorker(rig.db.database, 0) });
    expect(await resend(id, { lane })).toBe(true);
    const [row] = await rig.db.query<{ tokens: number }>(`SELECT tokens FROM lane WHERE lane = $1`, [lane]);
    expect(row?.tokens).toBeLessThan(0.5);
  });

  it('cannot be opened beside an open attempt by any program (one-open-attempt index)', async () => {
    const id = await resendable();
    expect(await resend(id)).toBe(true);
    await expect(openAttempt(rig.db.database, id, 3)).rejects.toMatchObject({
      code: '23505',
      constraint: 'submission_attempt_one_open',
    });
  });
});

/** A payment whose only attempt was proven not sent, and whose wait is over. */
async function unsent(seed: PaySeed = {}): Promise<string> {
  const id = await paymentIn('submitting', rig.db.database, { tenant: rig.tenant, lane: rig.lane, ...seed });
  await closeAttempt(rig.db.database, id, 'not_sent');
  await rig.makeDue({ id });
  return id;
}

const retry = async (id: string, lane = rig.lane, by = worker): Promise<boolean> =>
  (await retryNotSent(rig.db.database, lane, by, [id])).has(id);
const giveUp = async (id: string): Promise<boolean> =>
  (await giveUpNotSent(rig.db.database, [id], 'sweep')).has(id);

/** After the first attempt as many more as a payment may have, none of which left. */
const ALL_USED = `INSERT INTO submission_attempt (payment_id, generation, no, owner, call_started_at, closed_at,
    result_class, evidence)
  SELECT $1, 1, n, 'gone', clock_timestamp(), clock_timestamp(), 'not_sent', 'not_sent'
    FROM generate_series(2, ${MAX_UNSENT_ATTEMPTS}) n`;

describe('a retry of what was proven not sent (T11)', () => {
  it('opens the next attempt under the same key, takes a token, and twice opens one', async () => {
    const id = await unsent();
    const [key] = await rig.db.query(`SELECT provider_key FROM submission WHERE payment_id = $1`, [id]);
    expect(await retry(id)).toBe(true);
    expect(await retry(id)).toBe(false);
    expect(await rig.attempts(id)).toMatchObject([{ no: 1, closed: true }, { no: 2, closed: false }]); // prettier-ignore
    expect((await rig.rules(id)).at(-1)).toBe('T11');
    const keys = await rig.db.query(`SELECT provider_key FROM submission WHERE payment_id = $1`, [id]);
    expect(keys).toEqual([key]);
  });

  it('by four workers at once opens one attempt', async () => {
    const id = await unsent();
    const opened = await Promise.all([1, 2, 3, 4].map(() => retry(id)));
    expect(opened.filter(Boolean)).toHaveLength(1);
  });

  const broken: readonly [string, (id: string) => Promise<unknown>][] = [
    ['its wait is not over', run(`UPDATE payment SET next_action_at = clock_timestamp() + interval '1 minute' WHERE id = $1`)],
    ['the life of the key is over (DC-02)', run(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`)],
    ['an attempt is open', (id) => openAttempt(rig.db.database, id, 2)],
    ['all its attempts were made', plantAttempt(ALL_USED)],
    ['it is unknown', (id) => rig.plant(`UPDATE payment SET state = 'unknown' WHERE id = '${id}'`)],
  ]; // prettier-ignore
  it.each(broken)('is refused when %s', async (_, breakIt) => {
    const id = await unsent();
    await breakIt(id);
    expect(await retry(id)).toBe(false);
    expect((await rig.attempts(id)).filter((a) => !a.closed).length).toBeLessThanOrEqual(1);
  });

  it('is refused past not_after, on a paused lane, without a token and without a lease', async () => {
    const lane = await rig.addLane({ rate: 0.001, burst: 1 });
    const late = await unsent({ lane, notAfter: await rig.timeIn(300) });
    const id = await unsent({ lane });
    await until('the deadline', () => rig.deadlinePassed(late), Boolean);
    expect(await retry(late, lane)).toBe(false);
    expect(await retry(id, lane, 'nobody')).toBe(false);
    await rig.db.query(`UPDATE lane SET paused = true WHERE lane = $1`, [lane]);
    expect(await retry(id, lane)).toBe(false);
    await rig.db.query(`UPDATE lane SET paused = false, tokens = 0, refilled_at = clock_timestamp() WHERE lane = $1`, [lane]); // prettier-ignore
    expect(await retry(id, lane)).toBe(false);
    await rig.db.query(`UPDATE lane SET tokens = 1 WHERE lane = $1`, [lane]);
    expect(await retry(id, lane)).toBe(true);
  });
});

describe('giving up what was proven not sent (T12)', () => {
  it('fails the payment past not_after, and not before', async () => {
    const id = await unsent({ notAfter: await rig.timeIn(800) });
    expect(await giveUp(id)).toBe(false);
    await until('the deadline', () => rig.deadlinePassed(id), Boolean);
    expect(await giveUp(id)).toBe(true);
    expect(await rig.state(id)).toBe('failed');
    expect((await rig.rules(id)).at(-1)).toBe('T12');
  });

  it('fails the payment when the life of its key is over', async () => {
    const id = await unsent();
    await run(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`)(id);
    expect(await giveUp(id)).toBe(true);
  });

  it.each([
    ['probes of their lane', `is_probe = true`],
    ['throttled', `result_class = 'throttled'`],
    ['refused for our credential', `result_class = 'config'`],
    ['closed before anybody claimed them', `owner = NULL, call_started_at = NULL`],
  ])('does not count attempts that were %s: an outage makes a payment late', async (_what, change) => {
    const id = await unsent();
    await plantAttempt(ALL_USED)(id);
    await plantAttempt(`UPDATE submission_attempt SET ${change} WHERE payment_id = $1 AND no > 1`)(id);
    expect(await giveUp(id)).toBe(false);
    expect(await retry(id)).toBe(true);
  });

  it('fails the payment when the last of its ten attempts was proven not sent', async () => {
    const id = await unsent();
    await plantAttempt(ALL_USED)(id);
    expect(await giveUp(id)).toBe(true);
    expect(await rig.state(id)).toBe('failed');
  });

  it('never fails a payment one of whose attempts was accepted', async () => {
    const id = await unsent();
    await plantAttempt(`UPDATE submission_attempt SET evidence = 'accepted' WHERE payment_id = $1`)(id);
    await run(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`)(id);
    expect(await giveUp(id)).toBe(false);
    expect(await rig.state(id)).toBe('submitting');
  });

  it('leaves a payment unknown one of whose attempts was ambiguous, though it was sent again since (T13)', async () => {
    const id = await unsent();
    await plantAttempt(`UPDATE submission_attempt SET evidence = 'ambiguous' WHERE payment_id = $1`)(id);
    expect(await giveUp(id)).toBe(false);
    await run(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`)(id);
    expect(await giveUp(id)).toBe(true);
    expect(await rig.state(id)).toBe('unknown');
    expect((await rig.rules(id)).at(-1)).toBe('T13');
  });

  it('opens the first attempt of a generation that two people opened', async () => {
    const id = await unsent();
    await run(`UPDATE submission SET proof = 'resolution test' WHERE payment_id = $1`)(id);
    await openGeneration(rig.db.database, id, 2);
    expect(await retry(id)).toBe(true);
    expect((await rig.attempts(id)).at(-1)).toMatchObject({ generation: 2, no: 1, closed: false });
  });

  it('never fails a payment with an open attempt', async () => {
    const id = await unsent();
    await openAttempt(rig.db.database, id, 2);
    await run(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`)(id);
    expect(await giveUp(id)).toBe(false);
  });
});

describe('a provider that refuses before it executes', () => {
  it('because it is down: the payment waits and is charged once when it is up again', async () => {
    const payment = await rig.pay();
    await rig.simulator.suspend();
    const end = live(one, payment);
    await until('a first attempt', () => rig.attempts(payment.id), ([first]) => first?.closed === true); // prettier-ignore
    expect(await rig.state(payment.id)).toBe('submitting');
    await rig.simulator.resume();
    expect(await end).toBe('succeeded');
    const attempts = await rig.attempts(payment.id);
    expect(attempts[0]).toMatchObject({ result_class: 'not_sent', code: 'connect_refused' });
    expect(attempts.at(-1)).toMatchObject({ result_class: 'accepted' });
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    const requests = await rig.simulator.requests(payment.id);
    expect(requests).toHaveLength(1);
  });

  it('because there are too many calls (429): it is tried again, and is neither failed nor unknown (BK-02)', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', { kind: 'http_429', retryAfter: '1' });
    expect(await live(one, payment)).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T11', 'T9']);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    const requests = await rig.simulator.requests(payment.id);
    expect(new Set(requests.map((r) => r.key)).size).toBe(1);
    expect((requests[1]?.receivedAt ?? 0) - (requests[0]?.receivedAt ?? 0)).toBeGreaterThan(990);
  });

  it('because of our credential: the lane stops at once, and the payment goes on when it is opened', async () => {
    const lane = await rig.addLane({});
    const [first, second] = [await rig.pay({ lane }), await rig.pay({ lane })];
    await rig.simulator.script(first.id, 'submit', 'http_401');
    const end = live(one, first);
    await until('the pause', () => rig.isPaused(lane), Boolean);
    const waiting = live(one, second);
    await until('the gate to hold it', () => one.engine.gauges().waiting, (n) => n === 1); // prettier-ignore
    expect(await rig.state(second.id)).toBe('scheduled');
    await rig.db.query(`UPDATE lane SET paused = false WHERE lane = $1`, [lane]);
    expect(await end).toBe('succeeded');
    expect(await waiting).toBe('succeeded');
    expect(await rig.rules(first.id)).toEqual(['T1', 'T7', 'T11', 'T9']);
    expect((await rig.simulator.effects(first.id)).count).toBe(1);
  });
});

describe('a key whose life is short', () => {
  it('bounds every resend: past it nothing is sent again, and people decide (DC-02)', async () => {
    const forgetful = await rig.engine({ provider: { keyLifeMs: 400, keyMarginMs: 200 } });
    const payment = await rig.pay();
    await rig.simulator.plan({
      scripts: [
        {
          reference: payment.id,
          submit: ['reset_after'],
          lookup: [{ kind: 'lookup_absent', times: 'always' }],
        },
      ],
    });
    // The absence is seen, but only when the key may no longer be used.
    forgetful.provider.aroundLookup = async (lookup) => {
      const answer = await lookup();
      await until('the end of the key', () => rig.isKeyOver(payment), Boolean);
      return answer;
    };
    expect(await live(forgetful, payment)).toBe('needs_review');
    const requests = await rig.simulator.requests(payment.id);
    expect(requests.filter((r) => r.operation === 'submit')).toHaveLength(1);
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
    expect(await rig.openCases(payment.id)).toEqual(['inquiry_exhausted']);
  });

  it('is over for a claimed call that did not reach its socket in time: no byte leaves (DC-02)', async () => {
    const forgetful = await rig.engine({ provider: { keyLifeMs: 300, keyMarginMs: 150 } });
    const payment = await rig.pay();
    forgetful.provider.aroundSubmit = async (submit) => {
      await until('the end of the key', () => rig.isKeyOver(payment), Boolean);
      return submit();
    };
    expect(await live(forgetful, payment)).toBe('failed');
    expect(await rig.simulator.requests(payment.id)).toEqual([]);
    expect(await rig.attempts(payment.id)).toMatchObject([{ result_class: 'not_sent', code: 'lease_lost' }]);
    expect((await rig.rules(payment.id)).at(-1)).toBe('T12');
  });
});
