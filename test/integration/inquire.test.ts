import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UnknownKey } from '../../src/encryption/unreadable.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import {
  ask,
  EngineRig,
  live,
  pair,
  type LifeEnd,
  type PaySeed,
  type TestEngine,
} from '../support/engine.js';
import { paymentIn } from '../support/payment-states.js';
import type { FaultInput } from '../support/simulator.js';
import { Latch } from '../support/tapped-database.js';

let rig: EngineRig;
let one: TestEngine;
beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
});
afterAll(() => rig.stop());

interface Story {
  readonly payment: PaymentRow;
  readonly end: LifeEnd;
}

/** Lives one payment whose requests meet these faults, in order. */
async function story(
  faults: { readonly submit?: readonly FaultInput[]; readonly lookup?: readonly FaultInput[] },
  options: { readonly on?: TestEngine; readonly seed?: PaySeed } = {},
): Promise<Story> {
  const payment = await rig.pay(options.seed);
  await rig.simulator.plan({ scripts: [{ reference: payment.id, ...faults }] });
  return { payment, end: await live(options.on ?? one, payment) };
}

async function submitsOf({ id }: PaymentRow): Promise<number> {
  const requests = await rig.simulator.requests(id);
  const submits = requests.filter((r) => r.operation === 'submit');
  // Whatever happens to a payment, its generation has one key.
  expect(new Set(submits.map((r) => r.key)).size).toBe(1);
  return submits.length;
}

const charges = async ({ id }: PaymentRow): Promise<number> => (await rig.simulator.effects(id)).count;

describe('an unknown outcome', () => {
  it('is settled by a lookup that finds it, without a second call (DC-01, UO-03)', async () => {
    const { payment, end } = await story({ submit: ['reset_after'] });
    expect(end).toBe('succeeded');
    expect(await rig.history(payment.id)).toEqual(['scheduled', 'submitting', 'unknown', 'succeeded']);
    expect(await rig.evidence(payment.id)).toEqual(['answer:ambiguous', 'lookup:found']);
    expect(await submitsOf(payment)).toBe(1);
    expect(await charges(payment)).toBe(1);
  });

  it('of which nothing is found is sent again under the same key, and charged once', async () => {
    const { payment, end } = await story({ submit: ['reset_before'] });
    expect(end).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T15', 'T9']);
    expect(await submitsOf(payment)).toBe(2);
    expect(await charges(payment)).toBe(1);
  });

  it('of which a lookup wrongly finds nothing is sent again under the same key, and charged once', async () => {
    const { payment, end } = await story({ submit: ['reset_after'], lookup: ['lookup_absent'] });
    expect(end).toBe('succeeded');
    expect(await submitsOf(payment)).toBe(2);
    expect((await rig.simulator.requests(payment.id)).at(-1)).toMatchObject({ replayed: true });
    expect(await charges(payment)).toBe(1);
  });

  it('that the lookup shows as failed fails, by that evidence (UO-03)', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', {
      kind: 'pending_then_final',
      final: 'failed',
      lookups: 0,
    });
    // The connection ends after the request; only the worker does not see the answer.
    one.provider.aroundSubmit = async (submit) => ({
      ...(await submit()),
      class: 'ambiguous',
      status: null,
      providerRef: null,
      code: 'reset',
    });
    const end = live(one, payment);
    await rig.simulator.untilRequests(payment.id, (r) => r.length > 0);
    expect(await end).toBe('failed');
    one.provider.aroundSubmit = null;
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T14']);
    expect(await rig.breaches()).toEqual([]);
  });

  it('that no lookup can tell is reviewed by people when the ladder ends, and never failed (UO-03, P7)', async () => {
    const { payment, end } = await story({
      submit: ['reset_after'],
      lookup: [{ kind: 'lookup_500', times: 'always' }],
    });
    expect(end).toBe('needs_review');
    expect(await rig.history(payment.id)).toEqual(['scheduled', 'submitting', 'unknown', 'needs_review']);
    expect(await rig.openCases(payment.id)).toEqual(['inquiry_exhausted']);
    const evidence = await rig.evidence(payment.id);
    expect(evidence.slice(1)).toEqual(evidence.slice(1).map(() => 'lookup:cannot_tell'));
    expect(evidence.length).toBeGreaterThan(3);
    expect(await submitsOf(payment)).toBe(1);
  });

  it('survives an early absence and a 403: neither proves anything (UO-02)', async () => {
    const { payment, end } = await story({
      submit: ['reset_after', 'reset_after'],
      lookup: ['lookup_absent', 'http_403'],
    });
    expect(end).toBe('succeeded');
    expect(await rig.history(payment.id)).not.toContain('failed');
    expect(await charges(payment)).toBe(1);
  });

  it('that a lookup shows with another amount is reviewed by people (AM-01)', async () => {
    const { payment, end } = await story({ submit: ['reset_after'], lookup: ['other_amount_after'] });
    expect(end).toBe('needs_review');
    expect(await rig.openCases(payment.id)).toEqual(['found_other']);
    expect(await submitsOf(payment)).toBe(1);
    const told = one.events.of('contradiction').map((e) => e.args[0]);
    expect(told).toContain(payment.id);
  });

  it('found by an adapter that overlooked another amount or currency is not adopted (AM-01)', async () => {
    for (const observed of [{ amountMinor: 2_000n }, { currency: 'USD' }]) {
      const careless = await rig.engine();
      careless.provider.aroundLookup = async (lookup) => {
        const answer = await lookup();
        if (answer.kind !== 'found') return answer;
        const { result } = answer;
        return { ...answer, result: { ...result, observed: { ...result.observed, ...observed } } };
      };
      const { payment, end } = await story({ submit: ['reset_after'] }, { on: careless });
      expect(end).toBe('needs_review');
      expect(await rig.openCases(payment.id)).toEqual(['found_other']);
      expect(careless.events.of('contradiction').map((e) => e.args[0])).toEqual([payment.id]);
    }
  });

  it('answered with another amount is reviewed at once, and nothing is sent again (AM-01)', async () => {
    const { payment, end } = await story({
      submit: [{ kind: 'other_amount_after', amount: 5, booked: true }],
    });
    expect(end).toBe('needs_review');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T16']);
    expect((await rig.simulator.effects(payment.id)).charges).toMatchObject([{ amount: 5 }]);
    expect(await submitsOf(payment)).toBe(1);
  });

  it('of which two are found is reviewed, and its lane is paused (rule 9)', async () => {
    const lane = await rig.addLane({});
    const payment = await rig.pay({ lane });
    await rig.simulator.script(payment.id, 'submit', 'reset_after');
    one.provider.aroundSubmit = async (submit) => {
      const answer = await submit();
      await payElsewhere(payment);
      return answer;
    };
    expect(await live(one, payment)).toBe('needs_review');
    one.provider.aroundSubmit = null;
    expect(await rig.openCases(payment.id)).toEqual(['found_many']);
    const [row] = await rig.db.query(`SELECT paused, pause_reason FROM lane WHERE lane = $1`, [lane]);
    expect(row).toEqual({ paused: true, pause_reason: 'several_found' });
  });

  it('whose destination cannot be opened any more ends with people, not in an endless fault', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', 'reset_after');
    const blind = await rig.engine({ cipher: { openDestination: keyIsGone } });
    await Promise.all(Object.values(pair(one, payment)));
    expect(await ask(blind, payment.id)).toBe('needs_review');
    expect(await rig.openCases(payment.id)).toEqual(['inquiry_exhausted']);
  });
});

const keyIsGone = (): Promise<never> => Promise.reject(new UnknownKey());

/** Another client of the account pays under our reference, with a key of its own. */
async function payElsewhere(payment: PaymentRow): Promise<void> {
  const response = await fetch(`${rig.simulator.url}/v1/payouts`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${rig.simulator.apiKeys.A}`,
      'idempotency-key': `elsewhere-${payment.id}`,
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

describe('an answer that nobody understands', () => {
  const bodies = [
    'http_502_html_after',
    'http_500_after',
    'empty_200_after',
    'broken_json_after',
    'truncate_after',
    'unknown_status_after',
    'redirect_307',
  ];
  it.each(bodies)(
    '(%s) makes the payment unknown, and the inquiry settles it with one charge (UO-01)',
    async (fault) => {
      const { payment, end } = await story({ submit: [fault] });
      expect(end).toBe('succeeded');
      expect((await rig.history(payment.id)).slice(0, 3)).toEqual(['scheduled', 'submitting', 'unknown']);
      expect(await charges(payment)).toBe(1);
      const [stored] = await rig.db.query<{ text: string }>(
        `SELECT coalesce(string_agg(e::text, ' '), '') || coalesce((SELECT string_agg(a.code, ' ')
         FROM submission_attempt a WHERE a.payment_id = $1), '') AS text FROM evidence e WHERE e.payment_id = $1`,
        [payment.id],
      );
      expect(stored?.text).not.toMatch(/<html|Bad Gateway|reticulating|went wrong/i);
    },
  );

  it('on every lookup too leaves the payment to people', async () => {
    const { end } = await story({
      submit: ['reset_after'],
      lookup: [{ kind: 'unknown_status_after', times: 'always' }],
    });
    expect(end).toBe('needs_review');
  });
});

describe('a slow answer', () => {
  it('that comes after our deadline is not waited for: the lookup finds the charge (DC-01)', async () => {
    const impatient = await rig.engine();
    impatient.provider.deadlineMs = 150;
    const { payment, end } = await story({ submit: [{ kind: 'slow', afterMs: 900 }] }, { on: impatient });
    expect(end).toBe('succeeded');
    expect(await rig.history(payment.id)).toEqual(['scheduled', 'submitting', 'unknown', 'succeeded']);
    expect(await charges(payment)).toBe(1);
  });

  it('whose payment is executed only after our second call began is charged once (DC-01)', async () => {
    const impatient = await rig.engine();
    impatient.provider.deadlineMs = 150;
    const { payment, end } = await story(
      { submit: [{ kind: 'late_commit', afterMs: 700 }] },
      { on: impatient },
    );
    expect(end).toBe('succeeded');
    const rules = await rig.rules(payment.id);
    expect(rules.slice(0, 5)).toEqual(['T1', 'T7', 'T13', 'T15', 'T13']);
    expect(await rig.attempts(payment.id)).toMatchObject([
      { no: 1, result_class: 'ambiguous' },
      { no: 2, result_class: 'in_flight', evidence: 'ambiguous' },
    ]);
    expect(await charges(payment)).toBe(1);
  });
});

describe('an acknowledged payment', () => {
  it('is polled until it is final (T8, T17; PR-01)', async () => {
    const { payment, end } = await story({ submit: [{ kind: 'pending_then_final', lookups: 2 }] });
    expect(end).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T8', 'T17']);
    const lookups = (await rig.simulator.requests(payment.id)).filter((r) => r.operation === 'lookup');
    expect(lookups).toHaveLength(3);
    // By the id that the provider gave.
    expect(lookups[0]?.path).toMatch(/\/v1\/payouts\/po_/);
  });

  it('that fails in the end fails, with the reason as a code', async () => {
    const { payment, end } = await story({
      submit: [{ kind: 'pending_then_final', lookups: 1, final: 'failed' }],
    });
    expect(end).toBe('failed');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T8', 'T17']);
    const [detail] = await rig.db.query(
      `SELECT detail::json ->> 'code' AS code FROM payment_transition WHERE payment_id = $1 ORDER BY seq DESC`,
      [payment.id],
    );
    expect(detail).toEqual({ code: 'destination_closed' });
    expect(await charges(payment)).toBe(0);
  });

  it('found pending by the inquiry of an unknown outcome is submitted, then final (T14, T17)', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', { kind: 'pending_then_final', lookups: 2 });
    one.provider.aroundSubmit = async (submit, attempt) => {
      const answer = await submit();
      if (attempt.paymentId !== payment.id) return answer;
      return { ...answer, class: 'ambiguous', status: null, providerRef: null, code: 'reset' };
    };
    expect(await live(one, payment)).toBe('succeeded');
    one.provider.aroundSubmit = null;
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T14', 'T17']);
  });

  it('that is pending for longer than the provider says is reviewed by people', async () => {
    const strict = await rig.engine({ provider: { descriptor: { settlesWithinMs: 200 } } });
    const { payment, end } = await story({ submit: [{ kind: 'pending_then_final' }] }, { on: strict });
    expect(end).toBe('needs_review');
    expect(await rig.openCases(payment.id)).toEqual(['inquiry_exhausted']);
    expect(await charges(payment)).toBe(1);
  });

  it('is settled once by two inquiries at once; a stale "pending" moves and plans nothing (PR-02)', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', { kind: 'pending_then_final', lookups: 1 });
    const stale = await rig.engine();
    const seen = new Latch();
    const latch = new Latch();
    stale.provider.aroundLookup = async (lookup) => {
      const answer = await lookup();
      seen.open();
      await latch.wait();
      return answer;
    };
    await Promise.all(Object.values(pair(one, payment)));
    expect(await rig.state(payment.id)).toBe('submitted');
    await rig.makeDue(payment);
    const late = stale.services.inquiry.inquire({ paymentId: payment.id });
    await seen.wait();
    expect(await ask(one, payment.id)).toBe('succeeded');
    latch.open();
    expect(await late).toMatchObject({ kind: 'undecided' });
    expect(await ask(stale, payment.id)).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T8', 'T17']);
    const [row] = await rig.db.query(`SELECT next_action_at FROM payment WHERE id = $1`, [payment.id]);
    expect(row).toEqual({ next_action_at: null });
  });
});

describe('a refusal', () => {
  it.each(['decline', 'decline_funds'])('(%s) fails the payment after one call (DC-05)', async (fault) => {
    const { payment, end } = await story({ submit: [fault] });
    expect(end).toBe('failed');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T10']);
    expect(await submitsOf(payment)).toBe(1);
    expect(await charges(payment)).toBe(0);
  });

  it('that the resend of an unknown outcome replays fails it; the stored answer is proof', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', 'decline');
    let calls = 0;
    one.provider.aroundSubmit = async (submit) => {
      const answer = await submit();
      // The first refusal is lost on its way.
      return calls++ > 0 ? answer : { ...answer, class: 'ambiguous', status: null, code: 'reset' };
    };
    expect(await live(one, payment)).toBe('failed');
    one.provider.aroundSubmit = null;
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T15', 'T10']);
    expect(await rig.breaches()).toEqual([]);
  });

  it('of a resend that is not a replay proves nothing: the first request may still land', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', 'reset_before', 'decline');
    const end = await live(one, payment);
    // The third call repeats the stored refusal, marked; only that fails it.
    expect(end).toBe('failed');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T15', 'T13', 'T15', 'T10']);
    expect(await rig.attempts(payment.id)).toMatchObject([
      { result_class: 'ambiguous', evidence: 'ambiguous' },
      { result_class: 'rejected', evidence: 'ambiguous' },
      { result_class: 'rejected', evidence: 'refused' },
    ]);
    expect(await charges(payment)).toBe(0);
  });
});

describe('while the breaker of its lane is open', () => {
  const openBreaker = (lane: string, probeInSeconds: number) =>
    rig.db.query(
      `UPDATE lane SET breaker = 'open', breaker_reason = 'failures_in_a_row', opened_at = clock_timestamp(),
         probe_at = clock_timestamp() + $2 * interval '1 second' WHERE lane = $1`,
      [lane, probeInSeconds],
    );
  const lookupsOf = async (id: string): Promise<number> =>
    (await rig.simulator.requests(id)).filter((request) => request.operation === 'lookup').length;

  /** A payment whose outcome is unknown and whose inquiry is due. */
  async function unknown(): Promise<PaymentRow> {
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    await rig.simulator.script(payment.id, 'submit', 'reset_after');
    await Promise.all(Object.values(pair(one, payment)));
    expect(await rig.state(payment.id)).toBe('unknown');
    await rig.makeDue(payment);
    return payment;
  }

  it('an unknown payment waits for it instead of asking', async () => {
    const payment = await unknown();
    await openBreaker(payment.lane, 3_600);
    const answer = await one.services.inquiry.inquire({ paymentId: payment.id });
    expect(answer).toMatchObject({ kind: 'undecided' });
    if (answer.kind === 'undecided') expect(answer.afterMs).toBeLessThanOrEqual(10_000);
    expect(await lookupsOf(payment.id)).toBe(0);
  });

  it('it asks again when the breaker lets a call try, and is not given to people at the end of the ladder', async () => {
    const payment = await unknown();
    await rig.plant(`ALTER TABLE submission_attempt DISABLE TRIGGER ALL;
      UPDATE submission_attempt SET closed_at = clock_timestamp() - interval '1 hour' WHERE payment_id = '${payment.id}';
      ALTER TABLE submission_attempt ENABLE TRIGGER ALL`);
    await openBreaker(payment.lane, 0);
    one.provider.aroundLookup = () => Promise.resolve({ kind: 'cannot_tell', code: 'away' });
    expect(await one.services.inquiry.inquire({ paymentId: payment.id })).toMatchObject({
      kind: 'undecided',
    });
    expect(await rig.state(payment.id)).toBe('unknown');
    await rig.makeDue(payment);
    // The key's life is over: waiting for the breaker would save nothing any more.
    await rig.db.query(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`, [
      payment.id,
    ]);
    expect(await one.services.inquiry.inquire({ paymentId: payment.id })).toEqual({ kind: 'review' });
    one.provider.aroundLookup = null;
  });

  it('it asks at once when the life of its key is over', async () => {
    const payment = await unknown();
    await openBreaker(payment.lane, 3_600);
    await rig.db.query(`UPDATE submission SET key_valid_until = clock_timestamp() WHERE payment_id = $1`, [
      payment.id,
    ]);
    expect(await one.services.inquiry.inquire({ paymentId: payment.id })).toEqual({
      kind: 'stopped',
      state: 'succeeded',
    });
  });

  it('a submitted payment is polled all the same', async () => {
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    await rig.simulator.script(payment.id, 'submit', { kind: 'pending_then_final', lookups: 0 });
    await Promise.all(Object.values(pair(one, payment)));
    await openBreaker(payment.lane, 3_600);
    await rig.makeDue(payment);
    expect(await one.services.inquiry.inquire({ paymentId: payment.id })).toEqual({
      kind: 'stopped',
      state: 'succeeded',
    });
  });
});

describe('one step of an inquiry', () => {
  const inquire = (paymentId: string) => one.services.inquiry.inquire({ paymentId });
  const make = (state: Parameters<typeof paymentIn>[0], seed: PaySeed = {}) =>
    paymentIn(state, rig.db.database, { tenant: rig.tenant, lane: rig.lane, ...seed });

  it('before its time asks nobody and says how long to wait', async () => {
    const id = await make('unknown');
    const answer = await inquire(id);
    expect(answer).toMatchObject({ kind: 'undecided' });
    if (answer.kind === 'undecided') expect(answer.afterMs).toBeGreaterThan(50_000);
    expect(await rig.simulator.requests(id)).toEqual([]);
  });

  it.each([
    ['succeeded', { kind: 'stopped', state: 'succeeded' }],
    ['failed', { kind: 'stopped', state: 'failed' }],
    ['cancelled', { kind: 'stopped', state: 'cancelled' }],
    ['returned', { kind: 'stopped', state: 'returned' }],
    ['needs_review', { kind: 'review' }],
    ['submitting', { kind: 'resend' }],
  ] as const)('of a payment in %s answers by its state and asks nobody', async (state, answer) => {
    const id = await make(state);
    expect(await inquire(id)).toEqual(answer);
    expect(await rig.simulator.requests(id)).toEqual([]);
  });

  it('of a payment whose provider this worker does not have goes to people', async () => {
    const id = await make('unknown', { provider: 'elsewhere' });
    await rig.makeDue({ id });
    expect(await inquire(id)).toEqual({ kind: 'review' });
    expect(await rig.openCases(id)).toEqual(['provider_unknown']);
  });

  it('of an id that is not here throws', async () => {
    await expect(inquire(`pay_${'b'.repeat(32)}`)).rejects.toThrow(/does not exist here/);
  });
});
