import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { retryNotSent } from '../../src/submission/resend.store.js';
import { openCase, settleInReview } from '../../src/payments/review-moves.js';
import type { Client } from '../support/api.js';
import { findBreaches } from '../support/invariants.js';
import { addEvidence, seedWorker } from '../support/payment-states.js';
import { setKeyLife } from '../support/review-rows.js';
import {
  approve,
  createReviewWorld,
  propose,
  STATEMENT,
  type ProposalSeed,
  type ReviewWorld,
} from '../support/review-world.js';

let world: ReviewWorld;
let ada: Client;
let grace: Client;

beforeAll(async () => {
  world = await createReviewWorld();
  ada = await world.person('ada');
  grace = await world.person('grace', { roles: ['approver'] });
});
afterAll(() => world.close());

/** Proposed by ada, approved by grace. */
async function resolve(id: string, seed: ProposalSeed) {
  const proposal = await propose(world, ada, id, seed);
  expect(proposal.status, proposal.text).toBe(202);
  return approve(grace, id, proposal.body.id as string);
}

/** As if the last call had been a day ago: nothing of it can still arrive. */
async function agesAgo(id: string): Promise<void> {
  await world.db.query('ALTER TABLE submission_attempt DISABLE TRIGGER submission_attempt_closed');
  await world.db.query(
    `UPDATE submission_attempt SET call_started_at = call_started_at - interval '1 day' WHERE payment_id = $1`,
    [id],
  );
  await world.db.query('ALTER TABLE submission_attempt ENABLE ALWAYS TRIGGER submission_attempt_closed');
}

async function laneOf(id: string): Promise<string> {
  const [row] = await world.db.query<{ lane: string }>(`SELECT lane FROM payment WHERE id = $1`, [id]);
  return row?.lane ?? '';
}

const attemptsOf = (id: string) =>
  world.db.query(
    `SELECT generation, no, evidence FROM submission_attempt WHERE payment_id = $1 ORDER BY 1, 2`,
    [id],
  );

const evidenceOf = async (id: string, file: Parameters<typeof addEvidence>[2]): Promise<string> => {
  await addEvidence(world.db.database, id, file);
  const [row] = await world.db.query<{ id: string }>(
    `SELECT max(id)::text AS id FROM evidence WHERE payment_id = $1`,
    [id],
  );
  return row?.id ?? '';
};

describe('T18 takes what two people decided', () => {
  it.each([
    ['succeeded', { source: 'settlement', kind: 'line', status: 'succeeded', amount: 1_999n, currency: 'EUR' }],
    ['failed', { source: 'webhook', kind: 'event', status: 'failed' }],
    ['submitted', { source: 'lookup', kind: 'found', status: 'pending', amount: 1_999n, currency: 'EUR' }],
  ] as const)('%s, on evidence that says so, and files the decision', async (outcome, seen) => {
    const id = await world.make('needs_review');
    const evidence = [await evidenceOf(id, seen)];
    const answer = await resolve(id, { outcome, evidence });
    expect([answer.status, answer.body.state]).toEqual([200, outcome]);
    const filed = await world.db.query(
      `SELECT source, kind, code FROM evidence WHERE payment_id = $1 ORDER BY id DESC LIMIT 1`,
      [id],
    );
    expect(filed).toEqual([{ source: 'person', kind: 'resolution', code: 'provider_confirmed' }]);
  }); // prettier-ignore

  it.each(['succeeded', 'failed', 'submitted'])(
    '%s, on a written statement of the provider',
    async (outcome) => {
      const id = await world.make('needs_review');
      const answer = await resolve(id, { outcome, proof: STATEMENT });
      expect([answer.status, answer.body.state]).toEqual([200, outcome]);
    },
  );

  it('submitted goes on being asked about, and the final states are not', async () => {
    const id = await world.make('needs_review');
    const answer = await resolve(id, { outcome: 'submitted', proof: STATEMENT });
    expect(answer.body.next_action_at).not.toBeNull();
  });
});

const UNSUPPORTED: readonly (readonly [
  string,
  string,
  (id: string) => Promise<ProposalSeed>,
])[] = [
  ['a success on nothing', 'unsupported', () => Promise.resolve({ outcome: 'succeeded' })],
  ['a failure on nothing', 'unsupported', () => Promise.resolve({ outcome: 'failed' })],
  ['a pending outcome on nothing', 'unsupported', () => Promise.resolve({ outcome: 'submitted' })],
  [
    'a failure because the clock went on: one absence proves nothing',
    'unsupported',
    async (id) => ({ outcome: 'failed', evidence: [await evidenceOf(id, { source: 'lookup', kind: 'absent' })] }),
  ],
  [
    'a success on another amount (AM-01)',
    'other_money_seen',
    async (id) => ({
      outcome: 'succeeded',
      evidence: [
        await evidenceOf(id, { source: 'lookup', kind: 'found_other', status: 'succeeded', amount: 1_998n, currency: 'EUR' }),
      ],
    }),
  ],
  [
    'a success on a proof that it was not executed',
    'unsupported',
    () => Promise.resolve({ outcome: 'succeeded', proof: { kind: 'absence_proof', statement: 'x' } }),
  ],
  [
    'evidence of another payment',
    'evidence_unknown',
    async () => ({ outcome: 'succeeded', evidence: [(await world.makeFound()).evidence] }),
  ],
  ['another key without a proof', 'proof_missing', () => Promise.resolve({ outcome: 'resend_new_generation' })],
  [
    'another key while a lost request may still arrive',
    'still_in_flight',
    () => Promise.resolve({ outcome: 'resend_new_generation', proof: STATEMENT }),
  ],
  [
    'another key after a success was seen, whatever anybody states',
    'seen_at_provider',
    async (id) => {
      await agesAgo(id);
      await evidenceOf(id, { source: 'webhook', kind: 'event', status: 'succeeded', amount: 1_999n, currency: 'EUR' });
      return { outcome: 'resend_new_generation', proof: STATEMENT };
    },
  ],
  [
    'the same key after its life (DC-02)',
    'key_unusable',
    async (id) => {
      await setKeyLife(world.db.database, id, 'over');
      return { outcome: 'resend', reason: 'safe_under_same_key' };
    },
  ],
  [
    'the same key for something that the provider has',
    'seen_at_provider',
    async (id) => {
      await setKeyLife(world.db.database, id, 'alive');
      await evidenceOf(id, { source: 'lookup', kind: 'found', status: 'pending' });
      return { outcome: 'resend', reason: 'safe_under_same_key' };
    },
  ],
]; // prettier-ignore

describe('a proposal', () => {
  it.each(UNSUPPORTED)('is refused with its reason: %s', async (_what, reason, prepare) => {
    const id = await world.make('needs_review');
    const answer = await propose(world, ada, id, await prepare(id));
    expect([answer.status, answer.body.code, answer.body.reason]).toEqual([422, 'resolution_not_allowed', reason]);
    expect(answer.body).toMatchObject({ state: 'needs_review' });
    expect(await world.db.query(`SELECT 1 FROM resolution WHERE payment_id = $1`, [id])).toEqual([]);
  }); // prettier-ignore

  it('of another form is 400, and names the member', async () => {
    const id = await world.make('needs_review');
    const send = (body: object) =>
      ada.post(`/v1/payments/${id}/resolutions`, { headers: { 'if-match': '"v4"' }, body });
    for (const [pointer, body] of [
      ['/outcome', { outcome: 'cancelled', reason_code: 'provider_confirmed' }],
      ['/reason_code', { outcome: 'failed', reason_code: 'because' }],
      ['/evidence/0', { outcome: 'failed', reason_code: 'provider_refused', evidence: ['0'] }],
      ['/proof/kind', { outcome: 'failed', reason_code: 'provider_refused', proof: { kind: 'x', statement: 'x' } }],
      ['', { outcome: 'failed', reason_code: 'provider_refused', approved_by: 'person:ada' }],
    ] as const) {
      const answer = await send(body);
      expect([answer.status, answer.body.errors[0].pointer]).toEqual([400, pointer]);
    }
  }); // prettier-ignore
});

describe('T19 sends again what two people decided', () => {
  it('under the same key: submitting, without an open attempt until the worker opens the next', async () => {
    const id = await world.make('needs_review');
    await setKeyLife(world.db.database, id, 'alive');
    const answer = await resolve(id, { outcome: 'resend', reason: 'safe_under_same_key' });
    expect([answer.status, answer.body.state]).toEqual([200, 'submitting']);
    expect(await attemptsOf(id)).toEqual([{ generation: 1, no: 1, evidence: 'ambiguous' }]);
    const worker = await seedWorker(world.db.database);
    expect(await retryNotSent(world.db.database, await laneOf(id), worker, [id])).toEqual(new Set([id]));
    expect(await attemptsOf(id)).toEqual([
      { generation: 1, no: 1, evidence: 'ambiguous' },
      { generation: 1, no: 2, evidence: null },
    ]);
  });

  it('under another key after a written proof, whose generation the worker opens', async () => {
    const id = await world.make('needs_review');
    await agesAgo(id);
    const answer = await resolve(id, {
      outcome: 'resend_new_generation',
      reason: 'proven_not_executed',
      proof: STATEMENT,
    });
    expect([answer.status, answer.body.state], answer.text).toEqual([200, 'submitting']);
    const generations = await world.db.query<{ generation: number; provider_key: string; proof: string | null }>(
      `SELECT generation, provider_key, proof FROM submission WHERE payment_id = $1 ORDER BY generation`,
      [id],
    );
    expect(generations).toMatchObject([
      { generation: 1, proof: expect.stringMatching(/^resolution /) as string },
      { generation: 2, proof: null },
    ]);
    expect(generations[1]?.provider_key).not.toBe(generations[0]?.provider_key);
    const worker = await seedWorker(world.db.database);
    expect(await retryNotSent(world.db.database, await laneOf(id), worker, [id])).toEqual(new Set([id]));
    expect(await attemptsOf(id)).toEqual([
      { generation: 1, no: 1, evidence: 'ambiguous' },
      { generation: 2, no: 1, evidence: null },
    ]);
    expect(await findBreaches((text) => world.db.query(text), { except: [1] })).toEqual([]);
  }); // prettier-ignore

  it('is refused when it became impossible between proposal and approval, and stays in review', async () => {
    const id = await world.make('needs_review');
    await setKeyLife(world.db.database, id, 'alive');
    const proposal = await propose(world, ada, id, { outcome: 'resend', reason: 'safe_under_same_key' });
    await setKeyLife(world.db.database, id, 'over');
    const answer = await approve(grace, id, proposal.body.id as string);
    expect([answer.status, answer.body.reason]).toEqual([422, 'key_unusable']);
    expect((await world.head(id)).state).toBe('needs_review');
    const [row] = await world.db.query(`SELECT approved_by FROM resolution WHERE payment_id = $1`, [id]);
    expect(row).toEqual({ approved_by: null });
  });
});

describe('T20: the provider’s own word during a review', () => {
  const news = { source: 'webhook', code: 'paid', providerRef: 'po_9', actor: 'webhook' } as const;
  const settle = (id: string, to: 'submitted' | 'succeeded' | 'failed') =>
    world.db.database.transaction(async (tx) => {
      await addEvidence(tx, id, {
        source: 'webhook',
        kind: 'event',
        status: to === 'submitted' ? 'pending' : to,
        amount: 1_999n,
        currency: 'EUR',
      });
      return settleInReview(tx, { ...news, paymentId: id, to, nextActionInMs: to === 'submitted' ? 1_000 : null });
    }); // prettier-ignore

  it.each(['submitted', 'succeeded', 'failed'] as const)('moves to %s, closes the case and voids proposals', async (to) => {
    const { id, evidence } = await world.makeFound();
    const proposal = await propose(world, ada, id, { evidence: [evidence] });
    expect(await settle(id, to)).toMatchObject({ kind: 'moved', to });
    const [row] = await world.db.query(
      `SELECT c.closed_by, c.close_reason, r.void_reason FROM review_case c JOIN resolution r USING (payment_id)
        WHERE c.payment_id = $1`,
      [id],
    );
    expect(row).toEqual({ closed_by: 'webhook', close_reason: 'record-outcome', void_reason: 'payment_moved' });
    const answer = await approve(grace, id, proposal.body.id as string);
    expect([answer.status, answer.body.code]).toEqual([409, to === 'submitted' ? 'not_applicable' : 'payment_final']);
    expect(await settle(id, to)).toMatchObject({ kind: 'lost' });
  }); // prettier-ignore

  it('and an approval at the same time: one moves, and the other finds it moved', async () => {
    for (let round = 0; round < 20; round++) {
      const { id, evidence } = await world.makeFound();
      const proposal = await propose(world, ada, id, { evidence: [evidence] });
      const { version } = await world.head(id);
      const [answer, settled] = await Promise.all([
        approve(grace, id, proposal.body.id as string),
        settle(id, 'succeeded'),
      ]);
      expect([answer.status === 200, settled.kind === 'moved'].filter(Boolean)).toHaveLength(1);
      expect(await world.head(id)).toEqual({ state: 'succeeded', version: version + 1 });
    }
  });
});

describe('contradictory news about a final state', () => {
  it('opens one case and rewrites nothing, however often it comes (PR-02)', async () => {
    const id = await world.make('succeeded');
    const before = await world.head(id);
    const open = () => openCase(world.db.database, { paymentId: id, reason: 'contradiction' });
    expect(await Promise.all([open(), open(), open()])).toEqual(expect.arrayContaining([true, false, false]));
    expect(await world.head(id)).toEqual(before);
    const answer = await propose(world, ada, id, { outcome: 'failed', proof: STATEMENT });
    expect([answer.status, answer.body.code]).toEqual([409, 'payment_final']);
  });
});
