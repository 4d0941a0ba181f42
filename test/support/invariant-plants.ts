import type { PaymentState } from '../../src/domain/payment-state.js';
import { seedLane, seedTenant } from './builders.js';
import type { TestDatabase } from './database.js';
import { addEvidence, closeAttempt, openAttempt, openGeneration, paymentIn } from './payment-states.js';

const TABLES = [
  ...[
    'payment',
    'payment_transition',
    'submission',
    'submission_attempt',
    'evidence',
    'review_case',
    'resolution',
  ],
];

/** A database with a tenant, whose references are unique, and an open lane. */
export interface World {
  readonly db: TestDatabase;
  readonly tenant: string;
  readonly lane: string;
  /** A payment that lived up to this state by legal moves. Before the first `plant` only. */
  make(state: PaymentState, reference?: string): Promise<string>;
  /** As the owner with every trigger off: what a person with the wrong rights could do. */
  plant(text: string, values?: readonly unknown[]): Promise<void>;
}

export async function createWorld(db: TestDatabase): Promise<World> {
  const tenant = await seedTenant(db.database, { uniqueReferences: true });
  const lane = await seedLane(db.database);
  return {
    db,
    tenant,
    lane,
    make: (state, reference) => paymentIn(state, db.database, { tenant, lane, reference: reference ?? null }),
    plant: async (text, values = []) => {
      for (const table of TABLES) await db.query(`ALTER TABLE ${table} DISABLE TRIGGER ALL`);
      await db.query(text, values);
    },
  };
}

/** A file whose report goes from so many days ago to so many. */
async function addSettlementFile(
  world: World,
  days: { readonly from: number; readonly to: number },
): Promise<void> {
  await world.db.query(
    `INSERT INTO settlement_file (provider, sha256, format, size_bytes, first_booked_at, last_booked_at, finished_at)
     VALUES ('simulated', sha256('x'), 'csv', 1, clock_timestamp() - $1 * interval '1 day',
       clock_timestamp() - $2 * interval '1 day', clock_timestamp())`,
    [days.from, days.to],
  );
}

async function addSettlementRow(
  world: World,
  line: { readonly txn: string; readonly paymentId: string | null },
): Promise<void> {
  await world.db.query(
    `INSERT INTO settlement_row (provider, txn_id, file_id, row_no, kind, gross, fee, net, currency, booked_at,
       payment_id, bucket)
     VALUES ('simulated', $1, 1, 1, 'payment', -1999, 0, -1999, 'EUR', clock_timestamp(), $2::text,
       CASE WHEN $2::text IS NULL THEN 'unexpected_at_provider' ELSE 'matched' END)`,
    [line.txn, line.paymentId],
  );
}

export interface Plant {
  /** Number of the invariant. */
  readonly breaks: number;
  readonly what: string;
  /** Makes payments, breaks them and gives those that must be reported. */
  readonly by: (world: World) => Promise<readonly string[]>;
}

const one =
  (state: PaymentState, ...texts: string[]) =>
  async (world: World): Promise<readonly string[]> => {
    const id = await world.make(state);
    for (const text of texts) await world.plant(text, [id]);
    return [id];
  };

/** At least one breach of every invariant that the stored tables can express. */
export const PLANTS: readonly Plant[] = [
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
    by: async (world: World) => {
      const id = await world.make(state);
      await openGeneration(world.db.database, id);
      await openAttempt(world.db.database, id);
      await closeAttempt(world.db.database, id, 'not_sent');
      return [id];
    },
  })),
  {
    breaks: 3,
    what: 'two open attempts',
    by: async (world) => {
      const id = await world.make('submitting');
      await world.db.query('DROP INDEX submission_attempt_one_open');
      await openAttempt(world.db.database, id, 2);
      return [id];
    },
  },
  {
    breaks: 4,
    what: 'a second generation without proof that the first was not executed',
    by: async (world) => {
      const id = await world.make('unknown');
      await openGeneration(world.db.database, id, 2);
      return [id];
    },
  },
  {
    breaks: 4,
    what: 'one provider key on two payments',
    by: async (world) => {
      const [a, b] = [await world.make('unknown'), await world.make('unknown')];
      await world.db.query('ALTER TABLE submission DROP CONSTRAINT submission_provider_key_unique');
      await world.plant(
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
    by: async (world) => {
      const id = await world.make('unknown');
      await world.db.query('ALTER TABLE submission DROP CONSTRAINT submission_pkey CASCADE');
      await openGeneration(world.db.database, id);
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
    by: async (world) => {
      const id = await world.make('succeeded');
      await addEvidence(world.db.database, id, {
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
    by: async (world) => {
      const id = await world.make('returned');
      await addEvidence(world.db.database, id, {
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
    by: async (world) => [
      await world.make('succeeded', 'invoice-1'),
      await world.make('succeeded', 'invoice-1'),
    ],
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
    what: 'a wake older than a minute',
    by: one(
      'held',
      `UPDATE outbox SET kind = 'wake', created_at = clock_timestamp() - interval '61 s' WHERE payment_id = $1`,
    ),
  },
  {
    breaks: 14,
    what: 'a start that was put off for too long',
    by: one(
      'scheduled',
      `UPDATE outbox SET created_at = clock_timestamp() - interval '1 day',
          due_at = clock_timestamp() + interval '15 minutes' - interval '61 s' WHERE payment_id = $1`,
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
    breaks: 17,
    what: 'a resolution that one person proposed and approved, under another name in the history',
    by: async (world) => {
      const id = await world.make('needs_review');
      await world.db.query('ALTER TABLE resolution DROP CONSTRAINT resolution_two_people');
      await world.plant(
        `WITH r AS (INSERT INTO resolution (id, payment_id, tenant_id, outcome, reason_code, payment_version,
             evidence_digest, evidence_ids, proposed_by, approved_by, approved_at)
           SELECT 'r-' || id, id, tenant_id, 'submitted', 'provider_pending', version, ''::bytea, '{}', 'person:a',
             'person:a', clock_timestamp() FROM payment WHERE id = $1),
         t AS (INSERT INTO payment_transition
             (payment_id, seq, tenant_id, from_state, to_state, cause, actor, detail, hash)
           SELECT id, version + 1, tenant_id, state, 'submitted', 'resolve', 'person:a', '{"proposed_by":"person:b"}',
             ''::bytea FROM payment WHERE id = $1)
         UPDATE payment SET state = 'submitted', version = version + 1 WHERE id = $1`,
        [id],
      );
      return [id];
    },
  },
  {
    breaks: 18,
    what: 'a settlement line without payment',
    by: async (world) => {
      await addSettlementFile(world, { from: 10, to: 1 });
      await addSettlementRow(world, { txn: 'txn_ghost', paymentId: null });
      return ['simulated/txn_ghost'];
    },
  },
  {
    breaks: 18,
    what: 'a succeeded payment without a line, its booking lag over before the report ends',
    by: async (world) => {
      const [id, told, young] = [
        await world.make('succeeded'),
        await world.make('succeeded'),
        await world.make('succeeded'),
      ];
      for (const [each, days] of [
        [id, 5],
        [told, 5],
        [young, 2.5],
      ] as const) {
        await world.plant(
          `UPDATE payment SET execute_at = clock_timestamp() - $2 * interval '1 day',
             submission_started_at = clock_timestamp() - $2 * interval '1 day' WHERE id = $1`,
          [each, days],
        );
      }
      await addSettlementFile(world, { from: 10, to: 1 });
      await addSettlementRow(world, { txn: 'txn_told', paymentId: told });
      return [id];
    },
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
