import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { restorePerson } from '../../src/auth/revoked-person.store.js';
import type { Client } from '../support/api.js';
import { findBreaches } from '../support/invariants.js';
import { addEvidence } from '../support/payment-states.js';
import {
  approve,
  createReviewWorld,
  propose,
  revoke,
  STATEMENT,
  type ReviewWorld,
} from '../support/review-world.js';
import { seedTenant } from '../support/builders.js';

let world: ReviewWorld;
let ada: Client;
let grace: Client;

beforeAll(async () => {
  world = await createReviewWorld();
  ada = await world.person('ada');
  grace = await world.person('grace', { roles: ['approver'] });
});
afterAll(() => world.close());

/** A payment in review with an open proposal, of ada's unless it is somebody else's. */
async function proposed(by: Client = ada): Promise<{ id: string; resolution: string; version: number }> {
  const { id, evidence } = await world.makeFound();
  const answer = await propose(world, by, id, { evidence: [evidence] });
  expect(answer.status, answer.text).toBe(202);
  return { id, resolution: answer.body.id as string, version: (await world.head(id)).version };
}

/** Lets others of this process go first, this many times. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await turn();
}

/** How many times that is until something has ended. */
async function turnsUntil(end: Promise<unknown>): Promise<number> {
  let hasEnded = false;
  void end.finally(() => (hasEnded = true));
  let count = 0;
  for (; !hasEnded; count++) await turn();
  return count;
}

const rowsOf = (id: string) =>
  world.db.query<Record<string, unknown>>(
    `SELECT outcome, proposed_by, approved_by, void_reason FROM resolution WHERE payment_id = $1 ORDER BY proposed_at`,
    [id],
  );

describe('a resolution by two people (P16)', () => {
  it('moves nothing when it is proposed, and the payment when another person approves (T18)', async () => {
    const { id, resolution, version } = await proposed();
    expect(await world.head(id)).toEqual({ state: 'needs_review', version });
    const nudges = world.api.nudges();
    const answer = await approve(grace, id, resolution);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ id, state: 'succeeded', version: version + 1 });
    expect(answer.headers['etag']).toBe(`"v${version + 1}"`);
    expect(world.api.nudges()).toBe(nudges + 1);
    const log = world.api.logLines.join('');
    for (const event of ['resolution_proposed', 'resolution_approved']) {
      expect(log).toMatch(new RegExp(`"event":"${event}".*"payment_id":"${id}"`));
    }
    const [transition] = await world.db.query<{ actor: string; cause: string; detail: string }>(
      `SELECT actor, cause, detail FROM payment_transition WHERE payment_id = $1 AND seq = $2`,
      [id, version + 1],
    );
    expect(transition).toMatchObject({ actor: 'person:grace', cause: 'resolve' });
    expect(JSON.parse(transition?.detail ?? '')).toEqual({
      rule: 'T18',
      code: 'provider_confirmed',
      outcome: 'succeeded',
      proposed_by: 'person:ada',
      resolution,
    });
    const [review] = await world.db.query(
      `SELECT closed_by, close_reason FROM review_case WHERE payment_id = $1`,
      [id],
    );
    expect(review).toEqual({ closed_by: 'person:grace', close_reason: 'resolve' });
    const wakes = await world.db.query(`SELECT 1 FROM outbox WHERE payment_id = $1 AND kind = 'wake'`, [id]);
    expect(wakes).toHaveLength(1);
    const audited = await world.db.query(
      `SELECT action, actor, code, amount IS NOT NULL AS has_amount, detail::json->>'resolution' AS resolution
         FROM audit_log WHERE target = $1 ORDER BY id`,
      [id],
    );
    const decision = { code: 'provider_confirmed', has_amount: true, resolution };
    expect(audited).toEqual([
      { action: 'resolution_proposed', actor: 'person:ada', ...decision },
      { action: 'resolution_approved', actor: 'person:grace', ...decision },
    ]);
    expect(await findBreaches((text) => world.db.query(text))).toEqual([]);
  });

  it('is refused to the person who proposed, also with another credential of theirs', async () => {
    const { id, resolution } = await proposed();
    const before = await world.head(id);
    for (const same of [
      ada,
      await world.person('ada', { roles: ['approver'] }),
      await world.person('ada', { claims: { jti: 'x', amr: ['hwk', 'mfa'] } }),
    ]) {
      const answer = await approve(same, id, resolution);
      expect([answer.status, answer.body.code]).toEqual([403, 'second_person_required']);
    }
    expect(await world.head(id)).toEqual(before);
  });

  it('is refused to a person without a second factor', async () => {
    const { id, resolution } = await proposed();
    for (const amr of [null, ['pwd'], []]) {
      const answer = await approve(await world.person('grace', { amr }), id, resolution);
      expect([answer.status, answer.body.code]).toEqual([403, 'second_factor_required']);
    }
    expect((await world.head(id)).state).toBe('needs_review');
    expect((await approve(grace, id, resolution)).status).toBe(200);
  });

  it('is closed to API keys, and to another tenant as if it did not exist', async () => {
    const { id, resolution } = await proposed();
    const key = await world.api.client({ tenant: world.tenant });
    for (const answer of [await propose(world, key, id), await approve(key, id, resolution)]) {
      expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
    }
    const foreign = await world.person('eve', { tenant: await seedTenant(world.db.database) });
    for (const answer of [await propose(world, foreign, id), await approve(foreign, id, resolution)]) {
      expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
    }
  });

  it('answers 404 for a proposal that does not exist, or is another payment’s', async () => {
    const [mine, other] = [await proposed(), await proposed()];
    for (const resolution of [other.resolution, '019b1f0a-0000-7000-8000-000000000000', 'x']) {
      expect((await approve(grace, mine.id, resolution)).status).toBe(404);
    }
  });

  it('is repeated without harm by the one who approved, and is 409 for everybody else', async () => {
    const { id, resolution, version } = await proposed();
    expect((await approve(grace, id, resolution)).status).toBe(200);
    const again = await approve(grace, id, resolution);
    expect([again.status, again.body.version]).toEqual([200, version + 1]);
    const late = await approve(await world.person('mary'), id, resolution);
    expect([late.status, late.body.code]).toEqual([409, 'payment_final']);
  });
});

describe('a proposal is bound', () => {
  it('to the version that was seen: 412, and 428 without one', async () => {
    const { id, resolution, version } = await proposed();
    const stale = await propose(world, ada, id, { version: version - 1, proof: STATEMENT });
    expect([stale.status, stale.body.code]).toEqual([412, 'version_mismatch']);
    expect(stale.body).toMatchObject({ state: 'needs_review', version });
    expect((await propose(world, ada, id, { version: null, proof: STATEMENT })).status).toBe(428);
    const approval = await approve(grace, id, resolution, `"v${version - 1}"`);
    expect([approval.status, approval.body.code]).toEqual([412, 'version_mismatch']);
    expect((await approve(grace, id, resolution, `"v${version}"`)).status).toBe(200);
  });

  it('to the payment’s version: one that another review was about never moves this one', async () => {
    const { id, resolution } = await proposed();
    await world.db.query('ALTER TABLE resolution DISABLE TRIGGER resolution_frozen');
    await world.db.query(`UPDATE resolution SET payment_version = payment_version - 1 WHERE id = $1`, [
      resolution,
    ]);
    await world.db.query('ALTER TABLE resolution ENABLE ALWAYS TRIGGER resolution_frozen');
    const answer = await approve(grace, id, resolution);
    expect([answer.status, answer.body.code]).toEqual([412, 'version_mismatch']);
    expect(await rowsOf(id)).toMatchObject([{ approved_by: null, void_reason: 'payment_moved' }]);
  });

  it('to what is known: anything new voids it, the same once more does not', async () => {
    const { id, resolution } = await proposed();
    const found = {
      source: 'lookup',
      kind: 'found',
      status: 'succeeded',
      amount: 1_999n,
      currency: 'EUR',
    } as const;
    await addEvidence(world.db.database, id, found);
    const shown = await grace.get(`/v1/reviews/${id}`);
    expect(shown.body.resolutions).toMatchObject([{ id: resolution, status: 'proposed' }]);
    await addEvidence(world.db.database, id, { source: 'webhook', kind: 'event', status: 'failed' });
    const answer = await approve(grace, id, resolution);
    expect([answer.status, answer.body.code]).toEqual([409, 'proposal_void']);
    expect(await rowsOf(id)).toMatchObject([{ approved_by: null, void_reason: 'evidence_changed' }]);
    expect((await approve(grace, id, resolution)).status).toBe(409);
    expect((await world.head(id)).state).toBe('needs_review');
  });

  it('to 24 hours', async () => {
    const age = async (resolution: string, interval: string) => {
      await world.db.query('ALTER TABLE resolution DISABLE TRIGGER resolution_frozen');
      await world.db.query(`UPDATE resolution SET proposed_at = proposed_at - $2::interval WHERE id = $1`, [resolution, interval]);
      await world.db.query('ALTER TABLE resolution ENABLE ALWAYS TRIGGER resolution_frozen');
    };
    const [old, young] = [await proposed(), await proposed()];
    await age(old.resolution, '24 hours 1 second');
    await age(young.resolution, '23 hours 58 minutes');
    const answer = await approve(grace, old.id, old.resolution);
    expect([answer.status, answer.body.code]).toEqual([409, 'proposal_void']);
    expect(await rowsOf(old.id)).toMatchObject([{ void_reason: 'expired' }]);
    expect((await approve(grace, young.id, young.resolution)).status).toBe(200);
  }); // prettier-ignore

  it('to its place: another proposal replaces it, and the same one again is the same', async () => {
    const { id, resolution, version } = await proposed();
    const [row] = await world.db.query<{ evidence: string }>(
      `SELECT evidence_ids[1]::text AS evidence FROM resolution WHERE id = $1`,
      [resolution],
    );
    const again = await propose(world, ada, id, { evidence: [row?.evidence ?? ''] });
    expect([again.status, again.body.id]).toEqual([202, resolution]);
    const other = await propose(world, ada, id, { outcome: 'failed', reason: 'provider_refused', proof: STATEMENT });
    expect(other.status).toBe(202);
    expect((await approve(grace, id, resolution)).body.code).toBe('proposal_void');
    expect(await rowsOf(id)).toMatchObject([{ void_reason: 'superseded' }, { void_reason: null }]);
    expect((await approve(grace, id, other.body.id as string)).body).toMatchObject({ state: 'failed', version: version + 1 });
  }); // prettier-ignore

  it('by the database itself: nobody changes one, approves their own, deletes one or opens a second', async () => {
    const { id, resolution } = await proposed();
    const refused = (text: string, why: RegExp) => expect(world.db.query(text, [resolution])).rejects.toThrow(why);
    await refused(`UPDATE resolution SET outcome = 'failed' WHERE id = $1`, /keeps what it says/);
    await refused(`UPDATE resolution SET approved_by = proposed_by, approved_at = clock_timestamp() WHERE id = $1`, /resolution_two_people/);
    await refused(`DELETE FROM resolution WHERE id = $1`, /history/);
    await refused(
      `INSERT INTO resolution (id, payment_id, tenant_id, outcome, reason_code, payment_version, evidence_digest, evidence_ids, proposed_by)
       SELECT 'second', payment_id, tenant_id, 'failed', 'provider_refused', 1, '', '{}', 'person:eve' FROM resolution WHERE id = $1`,
      /resolution_one_open/,
    );
    expect((await approve(grace, id, resolution)).status).toBe(200);
    await refused(`UPDATE resolution SET approved_by = 'person:eve' WHERE id = $1`, /keeps what it says/);
  }); // prettier-ignore
});

describe('a revoked proposer', () => {
  it('is refused: every open proposal is void, says why, and stays so when access is given back', async () => {
    const leaver = await world.person('leaver');
    const [one, two, approved, other] = [
      ...[await proposed(leaver), await proposed(leaver), await proposed(leaver), await proposed()],
    ] as const;
    expect((await approve(grace, approved.id, approved.resolution)).status).toBe(200);
    expect(await revoke(world, 'leaver')).toEqual({ kind: 'revoked', voided: 2 });
    const refused = async (of: typeof one) => {
      const answer = await approve(grace, of.id, of.resolution);
      expect([answer.status, answer.body.code]).toEqual([409, 'proposal_void']);
      expect(await rowsOf(of.id)).toMatchObject([{ approved_by: null, void_reason: 'proposer_revoked' }]);
      expect(await world.head(of.id)).toEqual({ state: 'needs_review', version: of.version });
    };
    await refused(one);
    const shown = await grace.get(`/v1/reviews/${two.id}`);
    expect(shown.body).toMatchObject({ open_resolution: null, resolutions: [{ status: 'void', void_reason: 'proposer_revoked' }] });
    expect(await rowsOf(approved.id)).toMatchObject([{ approved_by: 'person:grace', void_reason: null }]);
    expect((await approve(grace, other.id, other.resolution)).status).toBe(200);
    await world.admin.transaction((tx) => restorePerson(tx, 'leaver'));
    await refused(two);
    const anew = await propose(world, leaver, two.id, { proof: STATEMENT });
    expect((await approve(grace, two.id, anew.body.id as string)).status).toBe(200);
  }); // prettier-ignore
});

describe('at the same time', () => {
  it('an approval and the revocation of one of the two, 50 races: approved before, or not at all', async () => {
    const race = async (name: string, whom: 'first' | 'second', begin: (approval: Promise<unknown>) => Promise<void>) => {
      const [first, second] = [`first-${name}`, `second-${name}`];
      const approver = await world.person(second, { roles: ['approver'] });
      const { id, resolution, version } = await proposed(await world.person(first));
      const approvedBy = async () => (await rowsOf(id))[0]?.['approved_by'];
      const approval = approve(approver, id, resolution);
      await begin(approval);
      await revoke(world, { first, second }[whom]);
      const whenRevoked = await approvedBy();
      const { status } = await approval;
      expect([200, 401, 409]).toContain(status);
      // What the revocation left is the end of it: nothing is approved later.
      expect([whenRevoked, await approvedBy()]).toEqual(Array(2).fill(status === 200 ? `person:${second}` : null));
      const end = status === 200 ? (['succeeded', version + 1] as const) : (['needs_review', version] as const);
      expect(await world.head(id)).toEqual({ state: end[0], version: end[1] });
      return status;
    };
    // How long an approval takes when it is alone and the code is warm: the revocations begin all over it,
    // most of them early, where the decision is.
    let most = 0;
    for (const name of ['cold', 'warmer', 'warm']) {
      await race(name, 'first', async (approval) => {
        most = await turnsUntil(approval);
      });
    }
    const statuses: number[] = [];
    for (let i = 0; i < 50; i++) {
      const begin = () => turns(Math.floor(most * (i / 50) ** 2));
      statuses.push(await race(String(i), i % 2 === 0 ? 'first' : 'second', begin));
    }
    expect([statuses.includes(200), statuses.some((status) => status !== 200)]).toEqual([true, true]);
    expect(await findBreaches((text) => world.db.query(text))).toEqual([]);
  }); // prettier-ignore

  it('two approvers of one proposal: one wins, in 200 races (P16)', async () => {
    const mary = await world.person('mary');
    let byGrace = 0;
    for (let round = 0; round < 20; round++) {
      const proposals = await Promise.all(Array.from({ length: 10 }, () => proposed()));
      const races = await Promise.all(
        proposals.map(async ({ id, resolution, version }, i) => {
          const pair = i % 2 === 0 ? [grace, mary] : [mary, grace];
          const answers = await Promise.all(pair.map((who) => approve(who, id, resolution)));
          return { id, version, answers };
        }),
      );
      for (const { id, version, answers } of races) {
        expect(answers.map((a) => a.status).sort()).toEqual([200, 409]);
        expect(await world.head(id)).toEqual({ state: 'succeeded', version: version + 1 });
        const [row] = await rowsOf(id);
        if (row?.['approved_by'] === 'person:grace') byGrace++;
      }
    }
    expect(byGrace).toBeGreaterThan(0);
    expect(byGrace).toBeLessThan(200);
    expect(await findBreaches((text) => world.db.query(text))).toEqual([]);
  });

  it('one person in both roles never wins, however often they try', async () => {
    for (let round = 0; round < 10; round++) {
      const { id, resolution } = await proposed();
      const tokens = await Promise.all(Array.from({ length: 4 }, () => world.person('ada')));
      const answers = await Promise.all(tokens.map((same) => approve(same, id, resolution)));
      expect(answers.map((a) => a.status)).toEqual([403, 403, 403, 403]);
      expect((await world.head(id)).state).toBe('needs_review');
    }
  });

  it('two proposals of one payment: one stays open, and only that one can be approved', async () => {
    for (let round = 0; round < 10; round++) {
      const { id } = await world.makeFound();
      const outcomes = ['succeeded', 'failed', 'submitted'];
      const answers = await Promise.all(
        outcomes.map((outcome) => propose(world, ada, id, { outcome, proof: STATEMENT })),
      );
      expect(answers.map((a) => a.status)).toEqual([202, 202, 202]);
      const approvals = await Promise.all(answers.map((a) => approve(grace, id, a.body.id as string)));
      expect(approvals.filter((a) => a.status === 200)).toHaveLength(1);
      const rows = await rowsOf(id);
      expect(rows.filter((row) => row['void_reason'] === 'superseded')).toHaveLength(2);
      expect(rows.find((row) => row['approved_by'] !== null)?.['outcome']).toBe((await world.head(id)).state);
    }
  });

  it('an approval and news that changes what is known: one of them is first, never half of both', async () => {
    for (let round = 0; round < 20; round++) {
      const { id, resolution } = await proposed();
      const [answer] = await Promise.all([
        approve(grace, id, resolution),
        addEvidence(world.db.database, id, { source: 'webhook', kind: 'event', status: 'failed' }),
      ]);
      const { state } = await world.head(id);
      expect([answer.status, state]).toEqual(
        answer.status === 200 ? [200, 'succeeded'] : [409, 'needs_review'],
      );
    }
  });
});
