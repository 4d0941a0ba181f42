import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { describeSimulated } from '../../src/providers/simulated/simulated.descriptor.js';
import {
  armedFor,
  EngineRig,
  live,
  pair,
  type EngineOptions,
  type LifeEnd,
  type TestEngine,
} from '../support/engine.js';
import type { FaultInput } from '../support/simulator.js';

/** What each class may do when it does not know: B, C and D. A has its own tests, T too. */

let rig: EngineRig;
const engines = new Map<string, TestEngine>();
beforeAll(async () => {
  rig = await EngineRig.start();
  for (const profile of ['B', 'C', 'D'] as const) {
    const options: EngineOptions = {
      callDeadlineMs: 200,
      provider: { profile, descriptor: { settlesWithinMs: 600 } },
    };
    engines.set(profile, await rig.engine(options));
  }
});
afterAll(() => rig.stop());

const on = (profile: 'B' | 'C' | 'D'): TestEngine => {
  const engine = engines.get(profile);
  if (!engine) throw new Error(`no engine of class ${profile}`);
  return engine;
};

async function story(
  profile: 'B' | 'C' | 'D',
  faults: { readonly submit?: readonly FaultInput[]; readonly lookup?: readonly FaultInput[] } = {},
): Promise<{ readonly payment: PaymentRow; readonly end: LifeEnd }> {
  // A lane of its own: one payment's trouble must not close another's lane.
  const payment = await rig.pay({ lane: await rig.addLane({}) });
  await rig.simulator.plan({ scripts: [{ reference: payment.id, ...faults }] });
  return { payment, end: await live(on(profile), payment) };
}

const operations = async ({ id }: PaymentRow): Promise<readonly (string | null)[]> =>
  (await rig.simulator.requests(id)).map((request) => request.operation);
const submitsOf = async (payment: PaymentRow): Promise<number> =>
  (await operations(payment)).filter((operation) => operation === 'submit').length;
const effects = async ({ id }: PaymentRow): Promise<number> => (await rig.simulator.effects(id)).count;

const UNANSWERED = ['hang', 'reset_before', 'reset_after', 'http_500_after', 'http_502_html_after'];

describe('class B, a key and no lookup', () => {
  it.each(UNANSWERED)(
    'sends an unknown payment (%s) again under its key, never asks, and pays once',
    async (fault) => {
      const { payment, end } = await story('B', { submit: [fault] });
      expect(end).toBe('succeeded');
      expect(await operations(payment)).toEqual(['submit', 'submit']);
      expect((await rig.rules(payment.id)).slice(2)).toEqual(['T13', 'T15', 'T9']);
      expect(await effects(payment)).toBe(1);
    },
  );

  it('goes to people when no answer comes at all, and silence never fails it (T16)', async () => {
    const { payment, end } = await story('B', { submit: [{ kind: 'hang', times: 'always' }] });
    expect(end).toBe('needs_review');
    expect(await rig.openCases(payment.id)).toEqual(['inquiry_exhausted']);
    expect(await rig.history(payment.id)).not.toContain('failed');
    expect(await submitsOf(payment)).toBeLessThanOrEqual(10);
  });

  it('goes to people when its acknowledged payment does not settle in time: nobody can be asked', async () => {
    const { payment, end } = await story('B', { submit: [{ kind: 'pending_then_final' }] });
    expect(end).toBe('needs_review');
    expect(await operations(payment)).toEqual(['submit']);
  });

  it('is not sent again after the life of its key (DC-02)', async () => {
    const short = await rig.engine({
      callDeadlineMs: 200,
      provider: { profile: 'B', keyLifeMs: 200, keyMarginMs: 50 },
    });
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    await rig.simulator.script(payment.id, 'submit', 'hang');
    expect(await live(short, payment)).toBe('needs_review');
    expect(await submitsOf(payment)).toBe(1);
  });
});

describe('class C, a lookup and no key', () => {
  it('is looked up by reference before it is sent, also the first time', async () => {
    const { payment, end } = await story('C');
    expect(end).toBe('succeeded');
    expect(await operations(payment)).toEqual(['lookup', 'submit']);
    const [lookup] = await rig.simulator.requests(payment.id);
    expect(decodeURIComponent(lookup?.path ?? '')).toContain(`${payment.id}/1`);
    expect(await effects(payment)).toBe(1);
  });

  it('is adopted and not sent when it is there already, for example after a restore', async () => {
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    const response = await fetch(`${rig.simulator.url}/v1/payouts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${rig.simulator.apiKeys.C}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        amount: Number(payment.amount),
        currency: payment.currency,
        destination: 'acct_test',
        reference: `${payment.id}/1`,
      }),
    });
    expect(response.status).toBeLessThan(300);
    expect(await live(on('C'), payment)).toBe('succeeded');
    expect(await operations(payment)).toEqual(['submit', 'lookup']);
    expect(await effects(payment)).toBe(1);
  });

  it('is not sent while the lookup tells nothing: the attempt is proven not sent and tried again', async () => {
    const { payment, end } = await story('C', { lookup: ['lookup_500'] });
    expect(end).toBe('succeeded');
    expect(await operations(payment)).toEqual(['lookup', 'lookup', 'submit']);
    expect(await rig.attempts(payment.id)).toMatchObject([
      { evidence: 'not_sent', code: 'look_before_send_failed' },
      { evidence: 'accepted' },
    ]);
  });

  it('goes to people instead of being sent when something else is there under its reference', async () => {
    const { payment, end } = await story('C', { lookup: ['other_object_after'] });
    expect(['needs_review', 'succeeded']).toContain(end);
    if (end === 'needs_review') expect(await submitsOf(payment)).toBe(0);
    expect(await effects(payment)).toBeLessThanOrEqual(1);
  });

  it.each(['reset_after', 'http_500_after', 'hang_after'])(
    'whose send ends unknown (%s) is only looked for, never sent again, and found',
    async (fault) => {
      const { payment, end } = await story('C', { submit: [fault] });
      expect(end).toBe('succeeded');
      expect(await submitsOf(payment)).toBe(1);
      expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T14']);
      expect(await effects(payment)).toBe(1);
    },
  );

  it('of which nothing is found is not sent again, whatever the absence says', async () => {
    const { payment, end } = await story('C', { submit: ['reset_before'] });
    expect(end).toBe('needs_review');
    expect(await submitsOf(payment)).toBe(1);
  });
});

describe('class D, neither', () => {
  it.each(UNANSWERED)(
    'with an unknown outcome (%s) goes to people at once, after one send',
    async (fault) => {
      const { payment, end } = await story('D', { submit: [fault] });
      expect(end).toBe('needs_review');
      expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T16']);
      expect(await rig.openCases(payment.id)).toEqual(['cannot_be_asked']);
      expect(await operations(payment)).toEqual(['submit']);
      expect(await effects(payment)).toBeLessThanOrEqual(1);
    },
  );

  it('is sent again only when the first send provably never left (T11)', async () => {
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    await rig.simulator.suspend();
    const end = live(on('D'), payment);
    const closed = async (): Promise<boolean> => (await rig.attempts(payment.id))[0]?.closed === true;
    while (!(await closed())) await new Promise((next) => setTimeout(next, 20));
    await rig.simulator.resume();
    expect(await end).toBe('succeeded');
    expect((await rig.attempts(payment.id))[0]).toMatchObject({ evidence: 'not_sent' });
    expect(await submitsOf(payment)).toBe(1);
    expect(await effects(payment)).toBe(1);
  });
});

describe('a generation is frozen (rule 5)', () => {
  it.each([
    ['another account', { account: 'acct_moved' }],
    ['another class', { descriptor: { lookup: { by: [], consistency: 'none' } } }],
  ] as const)('and is not sent again by an adapter with %s', async (_, changed) => {
    const old = await rig.engine();
    const now = await rig.engine({ provider: changed as EngineOptions['provider'] });
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    await rig.simulator.script(payment.id, 'submit', 'reset_before');
    const { begin, submit } = {
      begin: old.services.begin.beginSubmission({ paymentId: payment.id, lane: payment.lane, version: 1 }),
      submit: old.services.submit.submitPayment({ paymentId: payment.id, lane: payment.lane, version: 1 }),
    };
    await begin;
    expect(await submit).toMatchObject({ kind: 'outcome_open' });
    expect(await live(now, payment)).toBe('needs_review');
    expect(await submitsOf(payment)).toBe(1);
  });

  /** Opened again (T15) by one worker, claimed by another that calls with another credential. */
  async function claimedByOther(scope: 'account' | 'api_key') {
    const { idempotency } = describeSimulated({ profile: 'A' });
    const descriptor = { idempotency: { ...idempotency, scope } };
    const old = await rig.engine({ provider: { descriptor } });
    // A name of its own for the key: the simulator takes it for another account's.
    const other = await rig.engine({ provider: { descriptor, apiKey: rig.simulator.apiKeys.B } });
    const payment = await rig.pay({ lane: await rig.addLane({}) });
    await rig.simulator.script(payment.id, 'submit', 'reset_before');
    expect(await pair(old, payment).submit).toMatchObject({ kind: 'outcome_open' });
    await rig.makeDue(payment);
    expect(await old.services.inquiry.inquire({ paymentId: payment.id })).toEqual({ kind: 'resend' });
    const answer = await other.services.submit.submitPayment(armedFor(payment));
    return { payment, other, answer };
  }

  it('and is not called with another credential where keys belong to one', async () => {
    const { payment, other, answer } = await claimedByOther('api_key');
    expect(answer).toMatchObject({ kind: 'outcome_open' });
    expect(other.provider.submits).toEqual([]);
    expect(await effects(payment)).toBe(0);
    // The first request may still land, so that the call that never was proves nothing.
    expect((await rig.attempts(payment.id)).at(-1)).toMatchObject({
      result_class: 'not_sent',
      code: 'credential_changed',
      evidence: 'ambiguous',
    });
    expect(await rig.state(payment.id)).toBe('unknown');
  });

  it('and may be called with another credential of an account that keeps keys for all', async () => {
    const { other } = await claimedByOther('account');
    expect(other.provider.submits).toHaveLength(1);
  });
});
