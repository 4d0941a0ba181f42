import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  PAYMENT_STATES,
  transition,
  TRANSITIONS,
  type PaymentState,
  type TransitionId,
} from '../../src/domain/payment-state.js';
import { GUARDS, move, type MoveRequest, type MoveResult } from '../../src/payments/gate.js';
import { databaseTime, insertScheduled, seedLane, seedTenant, unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { addEvidence, openGeneration, paymentIn, run, step } from '../support/payment-states.js';
import { seedResolution, seedReturn, setKeyLife } from '../support/review-rows.js';

let db: TestDatabase;
let tenant: string;
let lane: string;
/** One payment in each state, for moves that must lose: they change nothing. */
const resting = {} as Record<PaymentState, string>;
beforeAll(async () => {
  db = await createTestDatabase();
  tenant = await seedTenant(db.database);
  lane = await seedLane(db.database);
  for (const state of PAYMENT_STATES) resting[state] = await make(state);
});
afterAll(() => db.drop());

const make = (state: PaymentState): Promise<string> => paymentIn(state, db.database, { tenant, lane });
/** Moves the times of a scheduled payment, which the triggers allow; seconds from now. */
const shift = (id: string, executeIn: number, notAfterIn: number): Promise<unknown> =>
  db.query(
    `UPDATE payment SET execute_at = clock_timestamp() + $2 * interval '1 s',
       not_after = clock_timestamp() + $3 * interval '1 s' WHERE id = $1`,
    [id, executeIn, notAfterIn],
  );
const setHold = (value: 'on' | 'off'): Promise<void> =>
  run(
    db.database,
    `INSERT INTO setting (name, value) VALUES ('recovery_hold', $1)
       ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value`,
    [value],
  );

interface Case {
  readonly rule: TransitionId;
  readonly title: string;
  /** What fulfils the guard beyond the state. */
  readonly prepare?: (id: string, from: PaymentState) => Promise<unknown>;
  readonly request?: (id: string, to: PaymentState) => Promise<Partial<MoveRequest>>;
  readonly after?: () => Promise<unknown>;
}

const tomorrow = async (): Promise<Partial<MoveRequest>> => ({
  newExecuteAt: await databaseTime(db.database, 86_400),
  newNotAfter: await databaseTime(db.database, 172_800),
});

/** A hit that is the instruction. */
const FOUND = { source: 'lookup', kind: 'found', amount: 1_999n, currency: 'EUR' } as const;

/** Moves of one payment, as services ask for them. */
const SINGLE: readonly Case[] = [
  { rule: 'T2', title: 'T2 reschedules', request: tomorrow },
  { rule: 'T3', title: 'T3 holds' },
  { rule: 'T4', title: 'T4 releases' },
  { rule: 'T5', title: 'T5 cancels' },
  {
    rule: 'T6',
    title: 'T6 expires',
    prepare: async (id, from) => {
      if (from === 'held') await move(db.database, requestOf({ rule: 'T4' }, id));
      await shift(id, -20, -10);
      if (from === 'held') await move(db.database, requestOf({ rule: 'T3', cause: 'hold' }, id));
    },
  },
  { rule: 'T14', title: 'T14 settles an unknown outcome' },
  { rule: 'T16', title: 'T16 escalates' },
  { rule: 'T17', title: 'T17 settles a submitted payment' },
  {
    rule: 'T18',
    title: 'T18 resolves to an outcome',
    request: async (id, outcome) => ({
      resolutionId: await seedResolution(db.database, id, { outcome, approvedBy: 'test' }),
    }),
  },
  {
    rule: 'T19',
    title: 'T19 resends after a review',
    prepare: (id) => setKeyLife(db.database, id, 'alive'),
    request: async (id) => ({
      resolutionId: await seedResolution(db.database, id, { outcome: 'resend', approvedBy: 'test' }),
    }),
  },
  {
    rule: 'T20',
    title: 'T20 takes decisive evidence during a review',
    request: async (id, to) => {
      const status = to === 'submitted' ? 'pending' : to;
      await addEvidence(db.database, id, { ...FOUND, status });
      return {};
    },
  },
  { rule: 'T21', title: 'T21 records a return', prepare: (id) => seedReturn(db.database, id) },
  {
    rule: 'T22',
    title: 'T22 recovers after a restore',
    prepare: () => setHold('on'),
    after: () => setHold('off'),
  },
];

/** Moves that the worker makes in batches. */
const BATCH: readonly Case[] = [
  { rule: 'T7', title: 'T7 begins submission' },
  { rule: 'T8', title: 'T8 records an acceptance' },
  { rule: 'T9', title: 'T9 records a success' },
  { rule: 'T10', title: 'T10 records a refusal' },
  { rule: 'T11', title: 'T11 tries again what was not sent' },
  { rule: 'T12', title: 'T12 gives up what was not sent' },
  { rule: 'T13', title: 'T13 records an unknown outcome' },
  { rule: 'T15', title: 'T15 resends an unknown payment' },
];

function requestOf(
  request: Partial<MoveRequest> & Pick<MoveRequest, 'rule'>,
  paymentId: string,
): MoveRequest {
  const rule = transition(request.rule);
  const [to] = rule.to;
  const [cause] = rule.causes;
  return {
    tenant,
    paymentId,
    actor: 'test',
    announce: 'wake',
    ...(to && { to }),
    ...(cause && { cause }),
    ...request,
  };
}

interface Traces {
  readonly state: PaymentState;
  readonly version: number;
  readonly transitions: number;
  readonly wakes: number;
}
async function tracesOf(id: string): Promise<Traces> {
  const [row] = await db.query<Traces>(
    `SELECT state, version,
        (SELECT count(*)::integer FROM payment_transition WHERE payment_id = p.id) AS transitions,
        (SELECT count(*)::integer FROM outbox WHERE payment_id = p.id AND kind = 'wake') AS wakes
       FROM payment p WHERE id = $1`,
    [id],
  );
  if (!row) throw new Error('the payment is gone');
  return row;
}

/** Every target of the rule from every state it starts in. */
const edgesOf = (id: TransitionId) => {
  const rule = transition(id);
  return rule.from.flatMap((from) => rule.to.map((to) => ({ from, to })));
};

async function moveByGate(of: Case, id: string, to: PaymentState): Promise<MoveResult> {
  return move(db.database, requestOf({ rule: of.rule, to, ...(await of.request?.(id, to)) }, id));
}

describe('a move of one payment', () => {
  it.each(SINGLE)('$title from each of its states and no other', async (of) => {
    for (const { from, to } of edgesOf(of.rule)) {
      const id = await make(from);
      await of.prepare?.(id, from);
      const before = await tracesOf(id);
      const result = await moveByGate(of, id, to);
      expect(result).toEqual({ kind: 'moved', from, to, version: before.version + 1 });
      expect(await tracesOf(id)).toEqual({
        state: to,
        version: before.version + 1,
        transitions: before.transitions + 1,
        wakes: before.wakes + 1,
      });
    }
    for (const state of PAYMENT_STATES.filter((each) => !transition(of.rule).from.includes(each))) {
      const id = resting[state];
      const before = await tracesOf(id);
      const [to] = transition(of.rule).to;
      if (!to) throw new Error('a rule without a target');
      expect(await moveByGate(of, id, to)).toEqual({ kind: 'lost', state, version: before.version });
      expect(await tracesOf(id)).toEqual(before);
    }
    await of.after?.();
  });

  it('loses against another version than the caller saw, and tells the one found', async () => {
    const id = await make('scheduled');
    const stale = requestOf({ rule: 'T5', expectedVersion: 7 }, id);
    expect(await move(db.database, stale)).toEqual({ kind: 'lost', state: 'scheduled', version: 1 });
    expect(await move(db.database, { ...stale, expectedVersion: 1 })).toMatchObject({
      kind: 'moved',
      version: 2,
    });
  });

  it('finds nothing for another tenant, and changes nothing', async () => {
    const id = await make('scheduled');
    const other = await seedTenant(db.database);
    expect(await move(db.database, requestOf({ rule: 'T5', tenant: other }, id))).toEqual({
      kind: 'missing',
    });
    expect(await move(db.database, requestOf({ rule: 'T5' }, unique('pay')))).toEqual({ kind: 'missing' });
    expect(await tracesOf(id)).toMatchObject({ state: 'scheduled', version: 1 });
    expect(await move(db.database, requestOf({ rule: 'T5', tenant: null }, id))).toMatchObject({
      kind: 'moved',
    });
  });

  it('writes cause, actor and codes into its transition', async () => {
    const id = await make('scheduled');
    await move(db.database, requestOf({ rule: 'T3', cause: 'prepare_failed', actor: 'worker:w1', detail: { code: 'x', n: 2 } }, id)); // prettier-ignore
    const rows = await db.query(
      `SELECT from_state, to_state, cause, actor, detail FROM payment_transition WHERE payment_id = $1 AND seq = 2`,
      [id],
    );
    expect(rows).toEqual([
      {
        from_state: 'scheduled',
        to_state: 'held',
        cause: 'prepare_failed',
        actor: 'worker:w1',
        detail: '{"rule":"T3","code":"x","n":2}',
      },
    ]);
  });

  it('announces nothing when its own activity asked', async () => {
    const id = await make('scheduled');
    await move(db.database, requestOf({ rule: 'T5', announce: null }, id));
    expect(await tracesOf(id)).toMatchObject({ state: 'cancelled', wakes: 0 });
  });

  it('is made once of many at the same time', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => make('scheduled')));
    for (const id of ids) {
      const results = await Promise.all(
        Array.from({ length: 4 }, () => move(db.database, requestOf({ rule: 'T5' }, id))),
      );
      expect(results.filter((result) => result.kind === 'moved')).toHaveLength(1);
      expect(results.filter((result) => result.kind === 'lost' && result.state === 'cancelled')).toHaveLength(
        3,
      );
      expect(await tracesOf(id)).toMatchObject({ version: 2, transitions: 2, wakes: 1 });
    }
  });

  it('is refused as a bug when its rule is of the batch, its target open or its state foreign', async () => {
    const id = resting.scheduled;
    await expect(move(db.database, requestOf({ rule: 'T7' }, id))).rejects.toThrow(
      'not a move of one payment',
    );
    const open = { ...requestOf({ rule: 'T14' }, id), to: undefined } as unknown as MoveRequest;
    await expect(move(db.database, open)).rejects.toThrow('needs one target');
    await expect(move(db.database, requestOf({ rule: 'T5', to: 'failed' }, id))).rejects.toThrow(
      'needs one target',
    );
    await expect(move(db.database, requestOf({ rule: 'T5', from: ['submitting'] }, id))).rejects.toThrow(
      'does not start in submitting',
    );
    expect(await tracesOf(id)).toMatchObject({ state: 'scheduled', version: 1 });
  });
});

describe('the guard of a move', () => {
  it('T2 refuses a time in the past and takes one ahead', async () => {
    const id = await make('scheduled');
    const past = await databaseTime(db.database, -1);
    const later = await databaseTime(db.database, 60);
    const request = requestOf({ rule: 'T2', newExecuteAt: past, newNotAfter: later }, id);
    expect(await move(db.database, request)).toMatchObject({ kind: 'lost', state: 'scheduled' });
    const ahead = await databaseTime(db.database, 30);
    expect(await move(db.database, { ...request, newExecuteAt: ahead })).toMatchObject({ kind: 'moved' });
    const [row] = await db.query(`SELECT execute_at, not_after FROM payment WHERE id = $1`, [id]);
    expect(row).toEqual({ execute_at: ahead, not_after: later });
  });

  it('T4 refuses a release after not_after', async () => {
    const id = await make('scheduled');
    await shift(id, -20, -10);
    await move(db.database, requestOf({ rule: 'T3' }, id));
    expect(await move(db.database, requestOf({ rule: 'T4' }, id))).toMatchObject({
      kind: 'lost',
      state: 'held',
    });
  });

  it('T6 refuses before not_after and in a recovery hold', async () => {
    const id = await make('scheduled');
    const expire = requestOf({ rule: 'T6' }, id);
    await shift(id, -20, 60);
    expect(await move(db.database, expire)).toMatchObject({ kind: 'lost', state: 'scheduled' });
    await shift(id, -20, -10);
    await setHold('on');
    expect(await move(db.database, expire)).toMatchObject({ kind: 'lost', state: 'scheduled' });
    await setHold('off');
    expect(await move(db.database, expire)).toMatchObject({ kind: 'moved', to: 'expired' });
  });

  it('T7 refuses before execute_at and after not_after, by the clock of the database', async () => {
    const id = await make('scheduled');
    const begin = { rule: 'T7', guard: GUARDS.DUE_NOW } as const;
    await shift(id, 60, 120);
    expect(await step(db.database, id, begin)).toBeNull();
    await shift(id, -20, -10);
    expect(await step(db.database, id, begin)).toBeNull();
    expect(await tracesOf(id)).toMatchObject({ state: 'scheduled', version: 1, transitions: 1 });
    await shift(id, -20, 60);
    expect(await step(db.database, id, begin)).toBe(2);
  });

  it.each([
    ['nobody decided', () => null],
    ['one person alone', (id: string) => seedResolution(db.database, id, { outcome: 'failed' })],
    ['two people, about another outcome', (id: string) => seedResolution(db.database, id, { outcome: 'succeeded', approvedBy: 'test' })],
    ['two people, about an older version', (id: string) => seedResolution(db.database, id, { outcome: 'failed', approvedBy: 'test', versionsAgo: 1 })],
    ['two other people than the actor', (id: string) => seedResolution(db.database, id, { outcome: 'failed', approvedBy: 'person:else' })],
  ] as const)('T18 refuses what was decided by %s', async (_who, decide) => {
    const id = await make('needs_review');
    const resolutionId = await decide(id);
    expect(await move(db.database, requestOf({ rule: 'T18', to: 'failed', resolutionId }, id))).toMatchObject({
      kind: 'lost',
      state: 'needs_review',
    });
  }); // prettier-ignore

  it.each([
    ['another amount succeeded', { ...FOUND, kind: 'found_other', status: 'succeeded', amount: 1_998n }],
    ['something else was found, however it stands', { source: 'lookup', kind: 'found_other' }],
    ['the key was somebody else’s', { source: 'answer', kind: 'key_mismatch' }],
    ['a settlement line names another amount', { source: 'settlement', kind: 'amount_differs' }],
    ['a settlement line names another currency', { source: 'settlement', kind: 'currency_differs' }],
    ['an event names another currency', { source: 'webhook', kind: 'told', amount: 1_999n, currency: 'USD' }],
  ] as const)('T18 refuses a success when %s', async (_what, seen) => {
    const id = await make('needs_review');
    await addEvidence(db.database, id, seen);
    const resolutionId = await seedResolution(db.database, id, { outcome: 'succeeded', approvedBy: 'test' });
    expect(
      await move(db.database, requestOf({ rule: 'T18', to: 'succeeded', resolutionId }, id)),
    ).toMatchObject({ kind: 'lost' });
  });

  it.each([
    ['a part came back', { source: 'webhook', kind: 'returned', amount: 500n, currency: 'EUR' }],
    ['an inert object has other money', { ...FOUND, status: 'inert', amount: 1_998n }],
    ['nothing but silence was heard', { source: 'lookup', kind: 'absent' }],
  ] as const)('T18 takes a success when %s', async (_what, seen) => {
    const id = await make('needs_review');
    await addEvidence(db.database, id, seen);
    const resolutionId = await seedResolution(db.database, id, { outcome: 'succeeded', approvedBy: 'test' });
    expect(
      await move(db.database, requestOf({ rule: 'T18', to: 'succeeded', resolutionId }, id)),
    ).toMatchObject({ kind: 'moved' });
  });

  it('T19 refuses a key whose life is over and a generation without proof', async () => {
    const resend = async (id: string, outcome: string): Promise<MoveResult> => {
      const resolutionId = await seedResolution(db.database, id, { outcome, approvedBy: 'test' });
      return move(db.database, requestOf({ rule: 'T19', resolutionId }, id));
    };
    const late = await make('needs_review');
    await setKeyLife(db.database, late, 'over');
    expect(await resend(late, 'resend')).toMatchObject({ kind: 'lost' });
    const unproven = await make('needs_review');
    expect(await resend(unproven, 'resend_new_generation')).toMatchObject({ kind: 'lost' });
    const opened = await make('needs_review');
    await openGeneration(db.database, opened, 2);
    expect(await resend(opened, 'resend_new_generation')).toMatchObject({ kind: 'lost' });
    await db.query(`UPDATE submission SET proof = 'of a test' WHERE payment_id = $1 AND generation = 1`, [
      opened,
    ]);
    expect(await resend(opened, 'resend_new_generation')).toMatchObject({ kind: 'moved', to: 'submitting' });
  });

  it('T19 refuses a new generation over news that the one before was paid', async () => {
    const id = await make('needs_review');
    await openGeneration(db.database, id, 2);
    await db.query(`UPDATE submission SET proof = 'of a test' WHERE payment_id = $1 AND generation = 1`, [
      id,
    ]);
    await addEvidence(db.database, id, { ...FOUND, status: 'pending' });
    const resolutionId = await seedResolution(db.database, id, {
      outcome: 'resend_new_generation',
      approvedBy: 'test',
    });
    expect(await move(db.database, requestOf({ rule: 'T19', resolutionId }, id))).toMatchObject({
      kind: 'lost',
    });
  });

  it.each([
    ['no evidence', () => Promise.resolve()],
    ['another amount', (id: string) => addEvidence(db.database, id, { ...FOUND, status: 'succeeded', amount: 1_998n })],
    ['another currency', (id: string) => addEvidence(db.database, id, { ...FOUND, status: 'succeeded', currency: 'USD' })],
    ['no amount', (id: string) => addEvidence(db.database, id, { source: 'webhook', kind: 'found', status: 'succeeded' })],
    ['another status', (id: string) => addEvidence(db.database, id, { ...FOUND, status: 'pending' })],
  ] as const)('T20 refuses a success on %s', async (_what, file) => {
    const id = await make('needs_review');
    await file(id);
    expect(await move(db.database, requestOf({ rule: 'T20', to: 'succeeded' }, id))).toMatchObject({
      kind: 'lost',
      state: 'needs_review',
    });
  }); // prettier-ignore

  it('T20 refuses what was known before the review: people were asked because of it', async () => {
    const id = await make('unknown');
    await addEvidence(db.database, id, { ...FOUND, status: 'succeeded' });
    await move(db.database, requestOf({ rule: 'T16' }, id));
    const news = requestOf({ rule: 'T20', to: 'succeeded' }, id);
    expect(await move(db.database, news)).toMatchObject({ kind: 'lost' });
    await addEvidence(db.database, id, { ...FOUND, status: 'succeeded' });
    expect(await move(db.database, news)).toMatchObject({ kind: 'moved' });
  });

  it('T21 refuses without a recorded return, and more than was paid', async () => {
    const id = await make('succeeded');
    expect(await move(db.database, requestOf({ rule: 'T21' }, id))).toMatchObject({ kind: 'lost' });
    await seedReturn(db.database, id, 1_000n);
    await seedReturn(db.database, id, 1_000n);
    expect(await move(db.database, requestOf({ rule: 'T21' }, id))).toMatchObject({ kind: 'lost' });
  });

  it('T22 refuses without a recovery hold', async () => {
    for (const state of ['scheduled', 'held'] as const) {
      const id = await make(state);
      expect(await move(db.database, requestOf({ rule: 'T22' }, id))).toMatchObject({ kind: 'lost', state });
    }
  });
});

describe('what a move leaves on the head row', () => {
  const marks = `UPDATE payment SET wake_after = clock_timestamp(), armed_by = 'worker' WHERE id = $1`;
  const rowOf = async (id: string) =>
    (
      await db.query(`SELECT wake_after, armed_by, next_action_at, provider_ref FROM payment WHERE id = $1`, [
        id,
      ])
    )[0];

  it.each(['T2', 'T3', 'T4'] as const)('%s clears the marks of an armed payment', async (rule) => {
    const id = await make(rule === 'T4' ? 'held' : 'scheduled');
    await db.query(marks, [id]);
    await move(db.database, requestOf({ rule, ...(rule === 'T2' ? await tomorrow() : {}) }, id));
    expect(await rowOf(id)).toMatchObject({ wake_after: null, armed_by: null });
  });

  it('T14 plans the next look and keeps the name that the provider gave', async () => {
    const id = await make('unknown');
    const news = { to: 'submitted', nextActionInMs: 5_000, providerRef: 'po_1' } as const;
    await move(db.database, requestOf({ rule: 'T14', ...news }, id));
    const row = await rowOf(id);
    expect(row?.['provider_ref']).toBe('po_1');
    expect(row?.['next_action_at']).not.toBeNull();
    await move(db.database, requestOf({ rule: 'T17', to: 'succeeded', providerRef: null }, id));
    expect(await rowOf(id)).toMatchObject({ provider_ref: 'po_1', next_action_at: null });
  });

  it('T2 leaves nothing half done when the new deadline is not after the new time', async () => {
    const id = await make('scheduled');
    const time = await databaseTime(db.database, 60);
    const request = requestOf({ rule: 'T2', newExecuteAt: time, newNotAfter: time }, id);
    await expect(move(db.database, request)).rejects.toThrow('payment_not_after_later');
    expect(await tracesOf(id)).toMatchObject({ version: 1, transitions: 1, wakes: 0 });
  });
});

describe('a move of the batch form', () => {
  it.each(BATCH)('$title from each of its states and no other', async (of) => {
    for (const { from, to } of edgesOf(of.rule)) {
      const id = await make(from);
      const before = await tracesOf(id);
      expect(await step(db.database, id, { rule: of.rule, to })).toBe(before.version + 1);
      expect(await tracesOf(id)).toMatchObject({ state: to, transitions: before.transitions + 1 });
    }
    for (const state of PAYMENT_STATES.filter((each) => !transition(of.rule).from.includes(each))) {
      const before = await tracesOf(resting[state]);
      expect(await step(db.database, resting[state], { rule: of.rule })).toBeNull();
      expect(await tracesOf(resting[state])).toEqual(before);
    }
  });

  it('T1 creates a payment as version 1 with its transition and a start, and never twice', async () => {
    const key = unique('key');
    const row = await insertScheduled(db.database, { tenant, lane, key });
    expect(row).toMatchObject({ state: 'scheduled', version: 1 });
    await expect(insertScheduled(db.database, { tenant, lane, key })).rejects.toThrow('exists');
    const outbox = await db.query(`SELECT kind FROM outbox WHERE payment_id = $1`, [row.id]);
    expect(outbox).toEqual([{ kind: 'start' }]);
    expect(await tracesOf(row.id)).toMatchObject({ transitions: 1 });
  });

  it('covers with the single moves every rule of the table', () => {
    const covered = [...SINGLE, ...BATCH].map((each) => each.rule).concat('T1');
    expect(covered.sort()).toEqual(TRANSITIONS.map((rule) => rule.id).sort());
  });
});
