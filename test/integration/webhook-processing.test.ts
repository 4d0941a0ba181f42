import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { recordOutcomes } from '../../src/submission/outcome.store.js';
import { acceptWhileSubmitting, findByNews } from '../../src/payments/provider-news.store.js';
import { bringTo, closeAttempt, openAttempt, openGeneration, step } from '../support/payment-states.js';
import { resultOf } from '../support/results.js';
import { until } from '../support/until.js';
import {
  AMOUNT,
  counted,
  eventBody,
  found,
  newEventId,
  payoutId,
  WebhookRig,
  type EventSeed,
  type InboxRow,
} from '../support/webhook-rig.js';

let rig: WebhookRig;
beforeAll(async () => {
  rig = await WebhookRig.start();
  rig.inbox().inbox.start();
});
afterAll(() => rig.stop());
beforeEach(() => void (rig.a.asked.length = 0));

/** Sends one event and waits until it is processed. @returns what it came to. */
async function told(paymentId: string, seed: EventSeed = {}, provider = rig.a.name): Promise<string | null> {
  const id = seed.id ?? newEventId();
  await rig.tell(eventBody(paymentId, { ...seed, id }), provider);
  await rig.untilProcessed([id]);
  return (await rig.row(id))?.result ?? null;
}

/** Sends one event and waits until a try of it has come to this. */
async function toldUntil(paymentId: string, result: string, seed: EventSeed = {}): Promise<string> {
  const id = seed.id ?? newEventId();
  await rig.tell(eventBody(paymentId, { ...seed, id }));
  await rig.untilResult(id, result);
  return id;
}

const keyOf = async (paymentId: string): Promise<string> =>
  (
    await rig.db.query<{ key: string }>(
      `SELECT provider_key AS key FROM submission WHERE payment_id = $1 ORDER BY generation DESC LIMIT 1`,
      [paymentId],
    )
  )[0]?.key ?? '';

describe('an event of a provider that can be asked', () => {
  it('makes us ask, and the answer settles an unknown payment and wakes its workflow (T14, UO-03)', async () => {
    const id = await rig.payment('unknown');
    rig.a.holds(id, 'succeeded');
    expect(await told(id)).toBe('moved');
    expect([await rig.state(id), await rig.rules(id), await rig.wakes(id)]).toEqual([
      'succeeded',
      ['T14'],
      1,
    ]);
    expect((await rig.evidence(id)).slice(-2)).toEqual(['webhook:told:succeeded', 'lookup:found:succeeded']);
    expect(rig.a.asked).toMatchObject([{ paymentId: id, generation: 1, by: 'any' }]);
  });

  it('settles a payment that was submitted (T17, PR-01)', async () => {
    for (const status of ['succeeded', 'failed'] as const) {
      const id = await rig.payment('submitted');
      rig.a.holds(id, status);
      expect(await told(id, { status })).toBe('moved');
      expect([await rig.state(id), await rig.rules(id)]).toEqual([status, ['T17']]);
    }
  });

  it('says nothing by itself: what the lookup answers moves the payment, whatever the event claims', async () => {
    const id = await rig.payment('submitted');
    rig.a.holds(id, 'failed');
    expect(await told(id, { status: 'succeeded' })).toBe('contradiction');
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['failed', ['T17']]);
    expect(await rig.openCases(id)).toEqual(['contradiction']);
  });

  it('moves nothing while the lookup finds nothing or cannot tell, and is tried again', async () => {
    for (const answer of [
      { kind: 'absent', by: ['reference'] },
      { kind: 'cannot_tell', code: 'http_5xx' },
    ] as const) {
      const id = await rig.payment('unknown');
      rig.a.ledger.set(id, answer);
      const event = await toldUntil(id, 'undecided');
      expect([await rig.state(id), await rig.rules(id)]).toEqual(['unknown', []]);
      rig.a.holds(id, 'succeeded');
      await rig.makeDue();
      await rig.untilProcessed([event]);
      expect(await rig.state(id)).toBe('succeeded');
      // However often it was tried, what it says is filed once.
      expect((await rig.evidence(id)).filter((line) => line.startsWith('webhook'))).toHaveLength(1);
    }
  });

  it('that names an end which the lookup does not show yet is tried again', async () => {
    const id = await rig.payment('unknown');
    rig.a.holds(id, 'pending');
    const event = await toldUntil(id, 'undecided');
    expect(await rig.state(id)).toBe('submitted');
    rig.a.holds(id, 'succeeded');
    await rig.makeDue();
    await rig.untilProcessed([event]);
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['succeeded', ['T14', 'T17']]);
  });

  it('with another amount at the provider is for people, and the payment is not adopted (AM-01)', async () => {
    for (const observed of [
      { amountMinor: AMOUNT + 1n, currency: 'EUR', destination: 'acct_test' },
      { amountMinor: AMOUNT, currency: 'USD', destination: 'acct_test' },
      { amountMinor: AMOUNT, currency: 'EUR', destination: 'acct_other' },
    ]) {
      const id = await rig.payment('unknown');
      rig.a.ledger.set(id, found(id, 'succeeded', { observed }));
      expect(await told(id)).toBe('contradiction');
      expect([await rig.state(id), await rig.rules(id)]).toEqual(['needs_review', ['T16']]);
      expect(await rig.openCases(id)).toEqual(['found_other']);
    }
  });

  it('of which the provider has two objects pauses the lane, also of a payment that is final (rule 9)', async () => {
    const id = await rig.payment('succeeded');
    rig.a.ledger.set(id, { kind: 'found_many', count: 2 });
    const other = { id: `${payoutId(id)}second` };
    await rig.db.query(`UPDATE payment SET provider_ref = $2 WHERE id = $1`, [id, payoutId(id)]);
    expect(await told(id, { status: 'failed', payout: other })).toBe('ignored');
    expect(await told(id, { status: 'reticulated', type: 'payout.reticulated', payout: other })).toBe(
      'contradiction',
    );
    expect([await rig.state(id), await rig.openCases(id)]).toEqual(['succeeded', ['found_many']]);
    // Not by the object that we know, which would show only that one.
    expect(rig.a.asked.at(-1)).toMatchObject({ providerRef: null, by: 'reference' });
    const [lane] = await rig.db.query<{ paused: boolean; pause_reason: string }>(
      `SELECT l.paused, l.pause_reason FROM lane l JOIN payment p USING (lane) WHERE p.id = $1`,
      [id],
    );
    expect(lane).toEqual({ paused: true, pause_reason: 'several_found' });
    await rig.db.query(`UPDATE lane SET paused = false, pause_reason = NULL`);
  });

  it('of a type that nobody knows is still a hint, and moves nothing that the lookup does not', async () => {
    const id = await rig.payment('submitted');
    rig.a.holds(id, 'pending');
    expect(await told(id, { status: 'reticulated', type: 'payout.reticulated' })).toBe('agreed');
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['submitted', []]);
    expect((await rig.evidence(id)).at(-2)).toBe('webhook:hint');
  });

  it('about something that is no payment is ignored', async () => {
    const id = newEventId();
    await rig.tell(eventBody('pay_none', { id, type: 'account.updated', more: { data: { object: {} } } }));
    await rig.untilProcessed([id]);
    expect(await rig.row(id)).toMatchObject({ payment_id: null, result: 'ignored' });
  });
});

/** The call of a payment in `submitting` ends: the provider has acknowledged it. */
async function recordAccepted(paymentId: string): Promise<void> {
  const [attempt] = await rig.db.query<{ owner: string }>(
    `SELECT owner FROM submission_attempt WHERE payment_id = $1`,
    [paymentId],
  );
  const result = resultOf('accepted', { status: 'pending', providerRef: payoutId(paymentId) });
  const outcome = {
    paymentId,
    generation: 1,
    no: 1,
    owner: attempt?.owner ?? '',
    capabilityClass: 'A',
    phase: 'submit',
    result,
  } as const;
  await recordOutcomes(rig.db.database, [outcome], 1);
}

describe('an event while our own call is under way', () => {
  it('is matched by provider key and records the end; the call itself then changes nothing (T8, T9)', async () => {
    for (const [status, rule] of [['pending', 'T8'], ['succeeded', 'T9']] as const) {
      const id = await rig.payment('submitting');
      const [attempt] = await rig.db.query<{ owner: string }>(
        `SELECT owner FROM submission_attempt WHERE payment_id = $1`,
        [id],
      );
      rig.a.holds(id, status);
      const payout = { reference: 'lost by the provider' };
      expect(await told(id, { status, payout, key: await keyOf(id) })).toBe('moved');
      const to = status === 'pending' ? 'submitted' : 'succeeded';
      expect([await rig.state(id), await rig.rules(id), await rig.wakes(id)]).toEqual([to, [rule], 1]);
      const late = {
        paymentId: id, generation: 1, no: 1, owner: attempt?.owner ?? '', capabilityClass: 'A', phase: 'submit',
      } as const;
      const results = await recordOutcomes(rig.db.database, [{ ...late, result: resultOf('rejected') }], 1);
      expect(results).toEqual([{ kind: 'late' }]);
      expect(await rig.state(id)).toBe(to);
    }
  }); // prettier-ignore

  it('that says failed waits until the call has ended: an earlier request may still land', async () => {
    const id = await rig.payment('submitting');
    rig.a.holds(id, 'failed');
    const event = await toldUntil(id, 'undecided', { status: 'failed' });
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['submitting', []]);
    await recordAccepted(id);
    await rig.makeDue();
    await rig.untilProcessed([event]);
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['failed', ['T8', 'T17']]);
  });
});

describe('old, doubled and contradictory news', () => {
  it('never moves a payment back (PR-02)', async () => {
    for (const state of ['succeeded', 'failed', 'returned'] as const) {
      const id = await rig.payment(state);
      rig.a.holds(id, state === 'failed' ? 'failed' : 'succeeded');
      for (const status of ['pending', state === 'failed' ? 'failed' : 'succeeded', 'pending']) {
        expect(await told(id, { status })).toBe('agreed');
      }
      expect([await rig.state(id), await rig.rules(id), await rig.openCases(id)]).toEqual([state, [], []]);
    }
  });

  it('against a final state opens one case and rewrites nothing', async () => {
    for (const [state, status] of [['succeeded', 'failed'], ['failed', 'succeeded']] as const) {
      const id = await rig.payment(state);
      rig.a.holds(id, status);
      const before = await counted('contradictions_total{source="lookup"}');
      expect(await told(id, { status })).toBe('contradiction');
      expect(await told(id, { status })).toBe('contradiction');
      expect([await rig.state(id), await rig.rules(id)]).toEqual([state, []]);
      expect(await rig.openCases(id)).toEqual(['contradiction']);
      expect(await counted('contradictions_total{source="lookup"}')).toBe(before + 2);
    }
  }); // prettier-ignore

  it('of a payment that was failed for its absence, and lives, opens a case', async () => {
    const id = await rig.payment('failed');
    rig.a.holds(id, 'pending');
    expect(await told(id, { status: 'pending' })).toBe('contradiction');
    expect([await rig.state(id), await rig.openCases(id)]).toEqual(['failed', ['contradiction']]);
  });

  it('in review settles what nobody could tell, and closes its case (T20)', async () => {
    const id = await rig.payment('needs_review');
    rig.a.holds(id, 'succeeded');
    expect(await told(id)).toBe('moved');
    expect([await rig.state(id), await rig.rules(id), await rig.openCases(id)]).toEqual([
      'succeeded',
      ['T20'],
      [],
    ]);
  });

  it('in review leaves a contradiction to people', async () => {
    const id = await rig.payment('needs_review');
    await rig.db.query(`UPDATE review_case SET reason = 'found_many' WHERE payment_id = $1`, [id]);
    rig.a.holds(id, 'succeeded');
    expect(await told(id)).toBe('with_people');
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['needs_review', []]);
  });

  it('of an earlier generation that moved money opens a case', async () => {
    const id = await rig.payment('submitted');
    await rig.db.query(
      `INSERT INTO submission SELECT (jsonb_populate_record(s, jsonb_build_object('generation', 2,
         'provider_key', s.provider_key || '-2'))).* FROM submission s WHERE payment_id = $1`,
      [id],
    );
    rig.a.holds(id, 'succeeded');
    expect(await told(id, { generation: 1, status: 'failed' })).toBe('agreed');
    expect(await told(id, { generation: 1 })).toBe('contradiction');
    expect([await rig.state(id), await rig.openCases(id)]).toEqual(['needs_review', ['other_generation']]);
    expect(rig.a.asked).toEqual([]);
  });
});

describe('an event whose payment got a new generation while we asked', () => {
  /** Two people send it again under another key. */
  async function sendAgain(id: string): Promise<void> {
    const sql = rig.db.database;
    await step(sql, id, { rule: 'T16' });
    await rig.db.query(`UPDATE submission SET proof = 'of a test' WHERE payment_id = $1`, [id]);
    await openGeneration(sql, id, 2);
    await step(sql, id, { rule: 'T19' });
    await openAttempt(sql, id, 1, 2);
  }
  const openAttempts = (id: string) =>
    rig.db.query(`SELECT generation FROM submission_attempt WHERE payment_id = $1 AND closed_at IS NULL`, [
      id,
    ]);

  it.each([
    ['waits for its lane', async () => undefined, ['T16']],
    [
      'ended ambiguous, too',
      async (id: string) => {
        await closeAttempt(rig.db.database, id, 'ambiguous');
        await step(rig.db.database, id, { rule: 'T13' });
      },
      ['T16'],
    ],
  ] as const)('and the new one %s: is for people, and never ends the new one', async (_what, then, rules) => {
    const id = await rig.payment('unknown');
    rig.a.ledger.set(id, async () => {
      await sendAgain(id);
      await then(id);
      return found(id, 'succeeded');
    });
    expect(await told(id)).toBe('contradiction');
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['needs_review', rules]);
    expect([await rig.openCases(id), await openAttempts(id)]).toEqual([['other_generation'], []]);
    expect((await rig.evidence(id)).slice(-2)).toEqual(['webhook:told:succeeded', 'lookup:found:succeeded']);
  });

  it('and says that the old one failed: changes nothing', async () => {
    const id = await rig.payment('unknown');
    rig.a.ledger.set(id, async () => {
      await sendAgain(id);
      return found(id, 'failed');
    });
    expect(await told(id, { status: 'failed' })).toBe('agreed');
    expect([await rig.state(id), await rig.openCases(id)]).toEqual(['submitting', []]);
    expect(await openAttempts(id)).toEqual([{ generation: 2 }]);
  });

  it('is refused by the statement that accepts while submitting, whoever asks', async () => {
    const id = await rig.payment('unknown');
    const refs = { provider: rig.a.name, account: 'test', providerKey: null, providerRef: null };
    const target = await findByNews(rig.db.database, { ...refs, paymentId: id, generation: 1 });
    if (!target) throw new Error('the payment of the test is not found');
    await sendAgain(id);
    const accepted = {
      to: 'succeeded',
      source: 'lookup',
      providerRef: null,
      actor: 'test',
      detail: {},
    } as const;
    expect(await acceptWhileSubmitting(rig.db.database, target, { ...accepted, nextPollMs: null })).toBe(
      false,
    );
    expect(await rig.state(id)).toBe('submitting');
  });
});

describe('an event whose payment is not known', () => {
  it('waits, and is matched once its submission is recorded', async () => {
    const id = await rig.payment('scheduled');
    const event = await toldUntil(id, 'unmatched');
    expect([await rig.state(id), await rig.evidence(id), rig.a.asked]).toEqual(['scheduled', [], []]);
    await bringTo('submitting', rig.db.database, id);
    rig.a.holds(id, 'succeeded');
    await rig.makeDue();
    await rig.untilProcessed([event]);
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['succeeded', ['T9']]);
  });

  it('waits when its parts do not fit together: the key of one payment, the id of another', async () => {
    const [one, other] = [await rig.payment('submitted'), await rig.payment('submitted')];
    for (const id of [one, other]) rig.a.holds(id, 'succeeded');
    await toldUntil(one, 'unmatched', { key: await keyOf(other) });
    expect([await rig.state(one), await rig.state(other)]).toEqual(['submitted', 'submitted']);
  });

  it('waits when the payment belongs to another provider: no tenant is paid by the news of a stranger', async () => {
    const id = await rig.payment('submitted', rig.b);
    rig.a.holds(id, 'succeeded');
    await toldUntil(id, 'unmatched');
    expect([await rig.state(id), await rig.evidence(id)]).toEqual(['submitted', ['answer:accepted:pending']]);
  });

  it('waits when the payment was sent through another account of the provider', async () => {
    const id = await rig.payment('submitted');
    await rig.db.query(
      `ALTER TABLE submission DISABLE TRIGGER submission_frozen;
       UPDATE submission SET account = 'other' WHERE payment_id = '${id}';
       ALTER TABLE submission ENABLE ALWAYS TRIGGER submission_frozen`,
    );
    rig.a.holds(id, 'succeeded');
    await toldUntil(id, 'unmatched');
    expect(await rig.state(id)).toBe('submitted');
  });

  it('is found by the provider’s object when the event names nothing else', async () => {
    const id = await rig.payment('submitted');
    await rig.db.query(`UPDATE payment SET provider_ref = $2 WHERE id = $1`, [id, payoutId(id)]);
    rig.a.holds(id, 'succeeded');
    expect(await told(id, { payout: { reference: 'nothing of ours' } })).toBe('moved');
    expect(await rig.state(id)).toBe('succeeded');
  });
});

describe('an event of a provider that cannot be asked', () => {
  const b = () => rig.b.name;

  it('moves the payment if it is our instruction to the last field (rule 9; T14, T17, T20, T9)', async () => {
    for (const [state, rule] of [
      ['unknown', 'T14'],
      ['submitted', 'T17'],
      ['needs_review', 'T20'],
      ['submitting', 'T9'],
    ] as const) {
      const id = await rig.payment(state, rig.b);
      expect([state, await told(id, {}, b())]).toEqual([state, 'moved']);
      expect([await rig.state(id), await rig.rules(id)]).toEqual(['succeeded', [rule]]);
    }
    expect(rig.b.asked).toEqual([]);
  });

  it('with another amount, currency or destination is for people (AM-01)', async () => {
    for (const payout of [{ amount: 2_000 }, { currency: 'USD' }, { destination: 'acct_other' }]) {
      const id = await rig.payment('unknown', rig.b);
      expect(await told(id, { payout }, b())).toBe('contradiction');
      expect([await rig.state(id), await rig.rules(id)]).toEqual(['needs_review', ['T16']]);
      expect(await rig.openCases(id)).toEqual(['other_money']);
    }
  });

  it('that leaves out payment or generation moves nothing', async () => {
    const id = await rig.payment('unknown', rig.b);
    const key = await keyOf(id);
    expect(await told(id, { key, payout: { reference: 'lost' } }, b())).toBe('ignored');
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['unknown', []]);
  });

  it('of another generation than the newest moves nothing', async () => {
    const id = await rig.payment('unknown', rig.b);
    await rig.tell(eventBody(id, { generation: 2 }), b());
    await until('it is tried', () => rig.db.query<{ result: string }>(
      `SELECT result FROM webhook_inbox WHERE provider = $1 AND result = 'unmatched'`, [b()]), (r) => r.length === 1); // prettier-ignore
    expect(await rig.state(id)).toBe('unknown');
  });

  it('about another object than the payment is known to be is for people', async () => {
    const id = await rig.payment('submitted', rig.b);
    await rig.db.query(`UPDATE payment SET provider_ref = $2 WHERE id = $1`, [id, payoutId(id)]);
    expect(await told(id, { payout: { id: `${payoutId(id)}second` } }, b())).toBe('contradiction');
    expect([await rig.state(id), await rig.openCases(id)]).toEqual(['needs_review', ['other_object']]);
  });
});

describe('an event of money that came back', () => {
  const returned = { id: 'ret_00000001', amount: 1_999 };

  it('is recorded once, however often it comes (T21, PR-01)', async () => {
    const id = await rig.payment('succeeded');
    const back = { ...returned, id: 'ret_once0001' };
    rig.a.holds(id, 'succeeded');
    expect(await told(id, { returned: back })).toBe('moved');
    expect(await told(id, { returned: back })).toBe('agreed');
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['returned', ['T21']]);
    const rows = await rig.db.query(`SELECT return_id FROM payment_return WHERE payment_id = $1`, [id]);
    expect(rows).toEqual([{ return_id: 'ret_once0001' }]);
  });

  it('before the success is known here first brings the success (out of order)', async () => {
    const id = await rig.payment('submitted');
    rig.a.holds(id, 'succeeded');
    const event = await toldUntil(id, 'undecided', { returned: { ...returned, id: 'ret_early001' } });
    await rig.makeDue();
    await rig.untilProcessed([event]);
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['returned', ['T17', 'T21']]);
  });

  it('before its success is kept for as long as the payment is open, and recorded after people decide', async () => {
    const id = await rig.payment('needs_review');
    rig.a.ledger.set(id, { kind: 'cannot_tell', code: 'http_5xx' });
    const event = await toldUntil(id, 'undecided', { returned: { ...returned, id: 'ret_kept0001' } });
    await rig.db.query(
      `UPDATE webhook_inbox SET received_at = received_at - interval '16 minutes' WHERE event_id = $1`,
      [event],
    );
    const { tries = 0 } = (await rig.row(event)) ?? {};
    await rig.makeDue();
    const isTried = (row: InboxRow | undefined) => (row?.tries ?? 0) > tries && row?.result !== null;
    await until('another try', () => rig.row(event), isTried);
    await until('its end, or not', () => rig.db.query(
      `SELECT 1 FROM webhook_inbox WHERE event_id = $1 AND taken_until IS NULL`, [event]), (r) => r.length === 1); // prettier-ignore
    expect(await rig.row(event)).toMatchObject({ processed: false, result: 'undecided' });
    await step(rig.db.database, id, { rule: 'T18', to: 'succeeded' });
    await rig.makeDue();
    await rig.untilProcessed([event]);
    expect([await rig.state(id), (await rig.row(event))?.result]).toEqual(['returned', 'moved']);
  });

  it('of more than was paid, or in another currency, is a contradiction', async () => {
    for (const back of [{ amount: 2_000 }, { amount: 1, currency: 'USD' }]) {
      const id = await rig.payment('succeeded');
      const seed = { returned: { id: `ret_${id.slice(-8)}`, ...back } };
      const payout = back.currency ? { currency: back.currency } : {};
      expect(await told(id, { ...seed, payout })).toBe('contradiction');
      expect([await rig.state(id), await rig.openCases(id)]).toEqual(['succeeded', ['contradiction']]);
    }
  });
});
