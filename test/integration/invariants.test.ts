import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PAYMENT_STATES, type PaymentState } from '../../src/domain/payment-state.js';
import { checkInvariant } from '../../src/invariants/check-invariants.js';
import { INVARIANTS, NOT_CHECKED } from '../../src/invariants/invariants.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { findBreaches } from '../support/invariants.js';
import {
  addEvidence,
  closeAttempt,
  openAttempt,
  openGeneration,
  paymentIn,
  seedWorker,
} from '../support/payment-states.js';

const TABLES = [
  'payment',
  'payment_transition',
  'submission',
  'submission_attempt',
  'evidence',
  'review_case',
];

let db: TestDatabase;
let tenant: string;
let lane: string;
beforeEach(async () => {
  db = await createTestDatabase();
  tenant = await seedTenant(db.database, { uniqueReferences: true });
  lane = await seedLane(db.database);
});
afterEach(() => db.drop());

const make = (state: PaymentState, reference: string | null = null): Promise<string> =>
  paymentIn(state, db.database, { tenant, lane, reference });

/** What the product's checks report, as `number:payment`. */
async function reported(since: string | null = null): Promise<readonly string[]> {
  const found: string[] = [];
  for (const invariant of INVARIANTS) {
    const result = await checkInvariant(db.database, invariant, { since, limitMs: 5_000 });
    if (result.kind === 'unchecked') throw new Error(`invariant ${invariant.id}`, { cause: result.cause });
    expect(result.ids).toHaveLength(result.count);
    for (const id of result.ids) found.push(`${result.id}:${id}`);
  }
  return found.sort();
}

/** What the judge of the tests reports, in the same form. */
async function judged(): Promise<readonly string[]> {
  const breaches = await findBreaches((text) => db.query(text));
  return [...new Set(breaches.map((b) => `${b.invariant}:${b.paymentId}`))].sort();
}

/** As the owner with every trigger off: what a person with the wrong rights could do. */
async function plant(text: string, values: readonly unknown[] = []): Promise<void> {
  for (const table of TABLES) await db.query(`ALTER TABLE ${table} DISABLE TRIGGER ALL`);
  await db.query(text, values);
}

interface Plant {
  readonly breaks: number;
  readonly what: string;
  /** Makes the world, breaks it and gives the payments that must be reported. */
  readonly by: () => Promise<readonly string[]>;
}

const one =
  (state: PaymentState, text: string, ...more: string[]) =>
  async (): Promise<readonly string[]> => {
    const id = await make(state);
    for (const each of [text, ...more]) await plant(each, [id]);
    return [id];
  };

const PLANTS: readonly Plant[] = [
  {
    breaks: 1,
    what: 'a submission start before execute_at',
    by: one(
      'submitting',
      `UPDATE payment SET submission_started_at = execute_at - interval '1 us' WHERE id = $1`,
    ),
  },
  {
    breaks: 1,
    what: 'a call before execute_at',
    by: one(
      'submitted',
      `UPDATE submission_attempt a SET call_started_at = p.execute_at - interval '1 us'
         FROM payment p WHERE p.id = a.payment_id AND p.id = $1`,
    ),
  },
  ...(['cancelled', 'expired'] as const).map((state) => ({
    breaks: 2,
    what: `an attempt of a payment that is ${state}`,
    by: async () => {
      const id = await make(state);
      await openGeneration(db.database, id);
      await openAttempt(db.database, id);
      await closeAttempt(db.database, id, 'not_sent');
      return [id];
    },
  })),
  {
    breaks: 3,
    what: 'two open attempts',
    by: async () => {
      const id = await make('submitting');
      await db.query('DROP INDEX submission_attempt_one_open');
      await openAttempt(db.database, id, 2);
      return [id];
    },
  },
  {
    breaks: 4,
    what: 'a second generation without proof that the first was not executed',
    by: async () => {
      const id = await make('unknown');
      await openGeneration(db.database, id, 2);
      return [id];
    },
  },
  {
    breaks: 4,
    what: 'one provider key on two payments',
    by: async () => {
      const [a, b] = [await make('unknown'), await make('unknown')];
      await db.query('ALTER TABLE submission DROP CONSTRAINT submission_provider_key_unique');
      await plant(
        `UPDATE submission SET provider_key = (SELECT provider_key FROM submission WHERE payment_id = $1)
          WHERE payment_id = $2`,
        [a, b],
      );
      return [a, b];
    },
  },
  {
    breaks: 4,
    what: 'two provider keys in one generation',
    by: async () => {
      const id = await make('unknown');
      await db.query('ALTER TABLE submission DROP CONSTRAINT submission_pkey CASCADE');
      await openGeneration(db.database, id);
      return [id];
    },
  },
  {
    breaks: 5,
    what: 'a head row in another state than its history',
    by: one('scheduled', `UPDATE payment SET state = 'held' WHERE id = $1`),
  },
  {
    breaks: 5,
    what: 'a version that is not the number of transitions',
    by: one('held', `UPDATE payment SET version = version + 1 WHERE id = $1`),
  },
  {
    breaks: 5,
    what: 'a deleted tail of the history',
    by: one('cancelled', `DELETE FROM payment_transition WHERE payment_id = $1 AND seq = 2`),
  },
  {
    breaks: 5,
    what: 'a payment without history',
    by: one('scheduled', `DELETE FROM payment_transition WHERE payment_id = $1`),
  },
  {
    breaks: 6,
    what: 'a changed actor',
    by: one('held', `UPDATE payment_transition SET actor = 'somebody' WHERE payment_id = $1 AND seq = 1`),
  },
  {
    breaks: 6,
    what: 'a changed hash',
    by: one('held', `UPDATE payment_transition SET hash = sha256(hash) WHERE payment_id = $1 AND seq = 2`),
  },
  {
    breaks: 6,
    what: 'a deleted row in the middle',
    by: one('succeeded', `DELETE FROM payment_transition WHERE payment_id = $1 AND seq = 2`),
  },
  {
    breaks: 7,
    what: 'a failure after an ambiguous attempt without evidence',
    by: one(
      'unknown',
      `WITH t AS (INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, hash)
         SELECT id, version + 1, tenant_id, state, 'failed', 'record-outcome', 'test', ''::bytea
           FROM payment WHERE id = $1)
       UPDATE payment SET state = 'failed', version = version + 1 WHERE id = $1`,
    ),
  },
  {
    breaks: 8,
    what: 'a success over another amount',
    by: async () => {
      const id = await make('succeeded');
      await addEvidence(db.database, id, {
        source: 'settlement',
        kind: 'line',
        status: 'succeeded',
        amount: 2_000n,
      });
      return [id];
    },
  },
  {
    breaks: 8,
    what: 'a success in another currency',
    by: async () => {
      const id = await make('returned');
      await addEvidence(db.database, id, {
        source: 'lookup',
        kind: 'found',
        status: 'succeeded',
        currency: 'USD',
      });
      return [id];
    },
  },
  {
    breaks: 9,
    what: 'one reference paid twice where references are unique',
    by: async () => [await make('succeeded', 'invoice-1'), await make('succeeded', 'invoice-1')],
  },
  {
    breaks: 10,
    what: 'an attempt that nobody claims',
    by: one(
      'submitting',
      `UPDATE submission_attempt SET owner = NULL, call_started_at = NULL,
         opened_at = clock_timestamp() - interval '31 s' WHERE payment_id = $1`,
    ),
  },
  {
    breaks: 10,
    what: 'an attempt whose owner is gone',
    by: one(
      'submitting',
      `UPDATE submission_attempt SET owner = 'nobody', call_started_at = clock_timestamp() - interval '31 s'
        WHERE payment_id = $1`,
      `UPDATE payment SET execute_at = clock_timestamp() - interval '40 s',
         submission_started_at = clock_timestamp() - interval '35 s' WHERE id = $1`,
    ),
  },
  {
    breaks: 10,
    what: 'a call that began long ago, its owner alive',
    by: one(
      'submitting',
      `UPDATE submission_attempt SET call_started_at = clock_timestamp() - interval '91 s' WHERE payment_id = $1`,
      `UPDATE payment SET execute_at = clock_timestamp() - interval '100 s',
         submission_started_at = clock_timestamp() - interval '95 s' WHERE id = $1`,
    ),
  },
  {
    breaks: 11,
    what: 'a payment two minutes past execute_at',
    by: one(
      'scheduled',
      `UPDATE payment SET execute_at = clock_timestamp() - interval '121 s' WHERE id = $1`,
    ),
  },
  {
    breaks: 12,
    what: 'an unknown payment that nobody will ask about',
    by: one('unknown', `UPDATE payment SET next_action_at = NULL WHERE id = $1`),
  },
  {
    breaks: 13,
    what: 'a review without a case',
    by: one('needs_review', `DELETE FROM review_case WHERE payment_id = $1`),
  },
  {
    breaks: 13,
    what: 'a review without an owner past its deadline',
    by: one(
      'needs_review',
      `UPDATE review_case SET due_at = clock_timestamp() - interval '1 s' WHERE payment_id = $1`,
    ),
  },
  {
    breaks: 14,
    what: 'an outbox row older than a minute',
    by: one(
      'held',
      `UPDATE outbox SET created_at = clock_timestamp() - interval '61 s' WHERE payment_id = $1`,
    ),
  },
  {
    breaks: 15,
    what: 'a cause that the edge does not have',
    by: one('held', `UPDATE payment_transition SET cause = 'cancel' WHERE payment_id = $1 AND seq = 2`),
  },
  {
    breaks: 15,
    what: 'a transition that does not follow the one before',
    by: one('held', `UPDATE payment_transition SET from_state = 'held' WHERE payment_id = $1 AND seq = 2`),
  },
  {
    breaks: 16,
    what: 'a move out of a final state',
    by: one(
      'cancelled',
      `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, hash)
       SELECT id, version + 1, tenant_id, state, 'scheduled', 'release', 'test', ''::bytea FROM payment WHERE id = $1`,
    ),
  },
  {
    breaks: 17,
    what: 'a resolution by one person',
    by: one(
      'needs_review',
      `WITH t AS (INSERT INTO payment_transition
           (payment_id, seq, tenant_id, from_state, to_state, cause, actor, detail, hash)
         SELECT id, version + 1, tenant_id, state, 'failed', 'resolve', 'person:a', '{"proposed_by":"person:a"}',
           ''::bytea FROM payment WHERE id = $1)
       UPDATE payment SET state = 'failed', version = version + 1 WHERE id = $1`,
    ),
  },
  {
    breaks: 19,
    what: 'a transition earlier than the one before',
    by: one(
      'held',
      `UPDATE payment_transition SET at = at - interval '1 day' WHERE payment_id = $1 AND seq = 2`,
    ),
  },
];

describe('the invariants', () => {
  it('hold for one lawful payment in each state, in the product and for the judge', async () => {
    for (const state of PAYMENT_STATES) await make(state);
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });

  it.each(PLANTS)('$breaks reports $what', async ({ breaks, by }) => {
    await make('succeeded');
    const ids = await by();
    const found = await reported();
    for (const id of ids) expect(found).toContain(`${breaks}:${id}`);
    expect(found).toEqual(await judged());
    expect(new Set(found.map((f) => f.split(':')[1]))).toEqual(new Set(ids));
  });

  it('are each broken by some plant above', () => {
    expect([...new Set(PLANTS.map((p) => p.breaks))]).toEqual(INVARIANTS.map((i) => i.id));
    expect([...INVARIANTS, ...NOT_CHECKED].map((i) => i.id).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 19 }, (_, i) => i + 1),
    );
  });

  it('find the same when they look only at what changed, and nothing when it did not', async () => {
    const id = await make('cancelled');
    await openGeneration(db.database, id);
    await openAttempt(db.database, id);
    const [hour] = await db.query<{ at: string }>(`SELECT clock_timestamp() - interval '1 hour' AS at`);
    const [now] = await db.query<{ at: string }>(`SELECT clock_timestamp() AS at`);
    expect(await reported(hour?.at)).toEqual([`2:${id}`]);
    expect(await reported(now?.at)).toEqual([]);
  });

  it('let a payment wait in a paused lane, for its turn, held, and in a recovery hold', async () => {
    const late = `execute_at = clock_timestamp() - interval '10 minutes'`;
    const [held, turn, due] = [await make('held'), await make('scheduled'), await make('scheduled')];
    await plant(`UPDATE payment SET ${late} WHERE id = $1`, [held]);
    await plant(
      `UPDATE payment SET ${late}, wake_after = clock_timestamp() - interval '1 minute' WHERE id = $1`,
      [turn],
    );
    expect(await reported()).toEqual([]);
    await plant(`UPDATE payment SET ${late} WHERE id = $1`, [due]);
    expect(await reported()).toEqual([`11:${due}`]);
    await db.query(`INSERT INTO setting (name, value) VALUES ('recovery_hold', 'on')`);
    expect(await reported()).toEqual([]);
    await db.query(`UPDATE setting SET value = 'off'`);
    await db.query('UPDATE lane SET paused = true');
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });

  it('let a failure stand that has a proof, and references repeat where tenants allow it', async () => {
    const id = await make('failed');
    const other = await seedTenant(db.database);
    for (let i = 0; i < 2; i++) {
      await paymentIn('succeeded', db.database, { tenant: other, lane, reference: 'rent' });
    }
    await plant(`UPDATE submission_attempt SET evidence = 'ambiguous' WHERE payment_id = $1`, [id]);
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });

  it('do not take one lookup that finds nothing for a proof (UO-02)', async () => {
    const id = await make('unknown');
    await addEvidence(db.database, id, { source: 'lookup', kind: 'absent' });
    await plant(`UPDATE payment SET state = 'failed' WHERE id = $1`, [id]);
    expect(await reported()).toContain(`7:${id}`);
    expect(await judged()).toContain(`7:${id}`);
  });

  it('let a living worker work on its attempt', async () => {
    const id = await make('submitting');
    const worker = await seedWorker(db.database);
    await plant(
      `UPDATE submission_attempt SET owner = $2, call_started_at = clock_timestamp() - interval '50 s'
        WHERE payment_id = $1`,
      [id, worker],
    );
    await plant(`UPDATE payment SET execute_at = clock_timestamp() - interval '60 s' WHERE id = $1`, [id]);
    await plant(`UPDATE payment SET submission_started_at = execute_at WHERE id = $1`, [id]);
    expect(await reported()).toEqual([]);
    expect(await judged()).toEqual([]);
  });
});

describe('a check of an invariant', () => {
  it('names at most 100 payments and counts all', async () => {
    const many = {
      id: 99,
      title: 'x',
      scoped: false,
      text: () => `SELECT 'pay_' || n AS id FROM generate_series(1, 250) n`,
    };
    const result = await checkInvariant(db.database, many, { since: null, limitMs: 1_000 });
    expect(result).toMatchObject({ kind: 'checked', count: 250 });
    expect(result.kind === 'checked' && result.ids).toHaveLength(100);
  });

  it('is unchecked, never clean, when its query takes too long or fails', async () => {
    const slow = { id: 98, title: 'x', scoped: false, text: () => `SELECT pg_sleep(30)::text AS id` };
    expect(await checkInvariant(db.database, slow, { since: null, limitMs: 20 })).toMatchObject({
      kind: 'unchecked',
      code: 'timeout',
    });
    const wrong = { id: 97, title: 'x', scoped: false, text: () => `SELECT id FROM nowhere` };
    expect(await checkInvariant(db.database, wrong, { since: null, limitMs: 1_000 })).toMatchObject({
      kind: 'unchecked',
      code: 'failed',
    });
  });

  it('cannot write', async () => {
    const writing = {
      id: 96,
      title: 'x',
      scoped: false,
      text: () => `SELECT nextval('outbox_id_seq')::text AS id`,
    };
    expect(await checkInvariant(db.database, writing, { since: null, limitMs: 1_000 })).toMatchObject({
      kind: 'unchecked',
    });
  });
});
