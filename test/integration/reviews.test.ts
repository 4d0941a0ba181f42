import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCase } from '../../src/payments/review-moves.js';
import { closeCase } from '../../src/review/review-case.store.js';
import type { Client } from '../support/api.js';
import { seedTenant } from '../support/builders.js';
import { step } from '../support/payment-states.js';
import { createReviewWorld, propose, type ReviewWorld } from '../support/review-world.js';
import { until } from '../support/until.js';

let world: ReviewWorld;
let ada: Client;
let grace: Client;

beforeAll(async () => {
  world = await createReviewWorld();
  ada = await world.person('ada');
  grace = await world.person('grace', { roles: ['approver'] });
});
afterAll(() => world.close());

describe('a review', () => {
  it('shows reason, evidence, age, owner, deadline and the money at risk', async () => {
    const { id, evidence } = await world.makeFound();
    const proposal = await propose(world, ada, id, { evidence: [evidence] });
    const answer = await grace.get(`/v1/reviews/${id}`);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({
      payment_id: id,
      reason: 'ladder_over',
      state: 'needs_review',
      owner: null,
      overdue: false,
      amount_at_risk: 1_999,
      currency: 'EUR',
      provider: 'simulated',
      open_resolution: proposal.body.id as string,
      closed_at: null,
    });
    expect(answer.body.age_seconds).toBeGreaterThanOrEqual(0);
    expect(answer.body.evidence).toMatchObject([
      { source: 'answer', evidence: 'ambiguous' },
      { id: evidence, source: 'lookup', evidence: 'found', status: 'succeeded', observed_amount: '1999' },
    ]);
    expect(answer.body.resolutions).toMatchObject([
      { outcome: 'succeeded', status: 'proposed', proposed_by: 'person:ada', approved_by: null },
    ]);
  });

  it('is taken by whoever says so last, and only by people', async () => {
    const id = await world.make('needs_review');
    expect((await ada.post(`/v1/reviews/${id}/own`)).body).toMatchObject({ owner: 'person:ada' });
    expect((await grace.post(`/v1/reviews/${id}/own`)).body).toMatchObject({ owner: 'person:grace' });
    const key = await world.api.client({ tenant: world.tenant });
    expect((await key.post(`/v1/reviews/${id}/own`)).status).toBe(403);
    expect((await key.get(`/v1/reviews/${id}`)).status).toBe(200);
  });

  it('of a payment that never had one, or of another tenant, does not exist', async () => {
    const never = await world.make('succeeded');
    const id = await world.make('needs_review');
    const eve = await world.person('eve', { tenant: await seedTenant(world.db.database) });
    for (const [who, path] of [
      [ada, `/v1/reviews/${never}`],
      [ada, `/v1/reviews/pay_${'a'.repeat(32)}`],
      [ada, '/v1/reviews/x'],
      [eve, `/v1/reviews/${id}`],
    ] as const) {
      expect((await who.get(path)).status).toBe(404);
    }
    expect((await eve.post(`/v1/reviews/${id}/own`)).status).toBe(404);
    expect((await eve.get('/v1/reviews')).body).toEqual({ data: [], next_cursor: null });
  });

  it('of a payment in review cannot be closed by hand: 409', async () => {
    const id = await world.make('needs_review');
    const answer = await ada.post(`/v1/reviews/${id}/close`, { body: { reason_code: 'news_was_wrong' } });
    expect([answer.status, answer.body.code]).toEqual([409, 'not_applicable']);
  });

  it('of a contradiction is closed once it was looked into, and the payment stays as it was', async () => {
    const id = await world.make('failed');
    const before = await world.head(id);
    await openCase(world.db.database, { paymentId: id, reason: 'contradiction' });
    const close = () => grace.post(`/v1/reviews/${id}/close`, { body: { reason_code: 'settled_with_provider' } });
    expect((await close()).body).toMatchObject({ closed_by: 'person:grace', close_reason: 'settled_with_provider' });
    expect((await close()).status).toBe(409);
    expect(await world.head(id)).toEqual(before);
    await openCase(world.db.database, { paymentId: id, reason: 'contradiction' });
    expect((await ada.get(`/v1/reviews/${id}`)).body).toMatchObject({ closed_at: null });
  }); // prettier-ignore
});

it('a case is not closed while its payment goes to review: the close waits, and then is refused', async () => {
  const { db, tenant } = world;
  const id = await world.make('unknown');
  await openCase(db.database, { paymentId: id, reason: 'contradiction' });
  let commit = (): void => undefined;
  const mayCommit = new Promise<void>((resolve) => (commit = resolve));
  let moved = (): void => undefined;
  const hasMoved = new Promise<void>((resolve) => (moved = resolve));
  const escalating = db.database.transaction(async (tx) => {
    await step(tx, id, { rule: 'T16' });
    moved();
    await mayCommit;
  });
  await hasMoved;
  const of = { tenantId: tenant, paymentId: id, actor: 'person:ada', reason: 'news_was_wrong' };
  const closing = closeCase(db.database, of);
  const isOver = closing.then(() => true);
  await until(
    'the close waits or is over',
    async () => {
      const waiting = await db.query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      );
      return waiting.length > 0 || (await Promise.race([isOver, Promise.resolve(false)]));
    },
    Boolean,
  );
  commit();
  await escalating;
  expect(await closing).toBe(false);
  expect((await ada.get(`/v1/reviews/${id}`)).body).toMatchObject({ closed_at: null });
});

describe('the list of reviews', () => {
  it('walks over every open one, oldest first, and over no closed one', async () => {
    const tenant = await seedTenant(world.db.database);
    const own = await casesOf(tenant, 7);
    const reader = await world.person('ada', { tenant });
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? '' : `&cursor=${cursor}`;
      const page = await reader.get(`/v1/reviews?limit=3${query}`);
      expect(page.status).toBe(200);
      seen.push(...(page.body.data as { payment_id: string }[]).map((row) => row.payment_id));
      cursor = page.body.next_cursor as string | null;
    } while (cursor !== null);
    expect(seen).toEqual(own);
  });

  it.each(['limit=0', 'limit=101', 'cursor=0', 'cursor=x', 'state=open'])('refuses ?%s', async (query) => {
    expect((await ada.get(`/v1/reviews?${query}`)).status).toBe(400);
  });
});

/** Payments of a tenant in review, in the order of their cases. */
async function casesOf(tenant: string, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const id = await world.make('succeeded', tenant);
    await openCase(world.db.database, { paymentId: id, reason: 'contradiction' });
    ids.push(id);
  }
  const closed = await world.make('failed', tenant);
  await openCase(world.db.database, { paymentId: closed, reason: 'contradiction' });
  await world.db.query(`UPDATE review_case SET closed_at = clock_timestamp() WHERE payment_id = $1`, [
    closed,
  ]);
  return ids;
}
