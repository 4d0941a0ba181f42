import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ADVISORY_LOCKS } from '../../src/persistence/advisory-locks.js';
import type { Database } from '../../src/persistence/database.js';
import { newUuid } from '../../src/platform/ids.js';
import { approveResolution, insertResolution } from '../../src/review/resolution.store.js';
import type { ApiAnswer, Client } from '../support/api.js';
import {
  approve,
  createReviewWorld,
  propose,
  revoke,
  STATEMENT,
  type ReviewWorld,
} from '../support/review-world.js';
import { until } from '../support/until.js';

let world: ReviewWorld;
let api: Database;
let other: pg.Client;
let count = 0;

beforeAll(async () => {
  world = await createReviewWorld();
  api = world.db.as('payments_api');
  other = new pg.Client({ connectionString: world.db.url });
  await other.connect();
});
/** What a test that failed left open would fail the next ones. */
afterEach(() => other.query('ROLLBACK'));
afterAll(async () => {
  await other.end();
  await world.close();
});

interface Proposed {
  readonly id: string;
  readonly resolution: string;
  readonly proposer: string;
  readonly approver: string;
  /** The approver's. */
  readonly client: Client;
}

/** A payment in review, an open proposal, and two people whom no other test knows. */
async function proposed(): Promise<Proposed> {
  count++;
  const [proposer, approver] = [`proposer-${count}`, `approver-${count}`];
  const { id, evidence } = await world.makeFound();
  const answer = await propose(world, await world.person(proposer), id, { evidence: [evidence] });
  expect(answer.status, answer.text).toBe(202);
  const client = await world.person(approver, { roles: ['approver'] });
  return { id, resolution: answer.body.id as string, proposer, approver, client };
}

const rowOf = async (resolution: string) =>
  (
    await world.db.query<{ approved_by: string | null; void_reason: string | null }>(
      `SELECT approved_by, void_reason FROM resolution WHERE id = $1`,
      [resolution],
    )
  )[0];

/** How many sessions wait for a lock on people, or on this table. */
async function waiting(table: string | null): Promise<number> {
  const [row] = await world.db.query<{ count: number }>(
    `SELECT count(*)::integer AS count FROM pg_locks WHERE NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND CASE WHEN $1::text IS NULL THEN locktype = 'advisory' AND objid = $2 ELSE relation = $1::regclass END`,
    [table, ADVISORY_LOCKS.revokePeople],
  );
  return row?.count ?? 0;
}

describe('the statement', () => {
  /** As if the proposal had come beside the revocation: nothing ended it. */
  async function withoutTriggers(subject: string): Promise<void> {
    await world.db.query('ALTER TABLE revoked_person DISABLE TRIGGER revoked_person_void_proposals');
    try {
      await world.db.query(
        `INSERT INTO revoked_person (subject, revoked_by, reason) VALUES ($1, 'operator:test', 'suspected')`,
        [subject],
      );
    } finally {
      await world.db.query('ALTER TABLE revoked_person ENABLE ALWAYS TRIGGER revoked_person_void_proposals');
    }
  }
  const approveIt = ({ resolution, approver }: Proposed): Promise<boolean> =>
    api.ofTenant(world.tenant).transaction((tx) => approveResolution(tx, resolution, `person:${approver}`));

  it('that approves refuses when the proposer is revoked, by itself', async () => {
    const of = await proposed();
    await withoutTriggers(of.proposer);
    expect(await approveIt(of)).toBe(false);
    const answer = await approve(of.client, of.id, of.resolution);
    expect([answer.status, answer.body.code]).toEqual([409, 'proposal_void']);
    expect(await rowOf(of.resolution)).toEqual({ approved_by: null, void_reason: null });
    await world.db.query(`DELETE FROM revoked_person WHERE subject = $1`, [of.proposer]);
    expect(await approveIt(of)).toBe(true);
  });

  it('that approves refuses when the approver is revoked, by itself', async () => {
    const of = await proposed();
    await withoutTriggers(of.approver);
    expect(await approveIt(of)).toBe(false);
    await world.db.query(`DELETE FROM revoked_person WHERE subject = $1`, [of.approver]);
    expect(await approveIt(of)).toBe(true);
  });

  it('that proposes refuses a revoked person, by itself', async () => {
    const { id: paymentId } = await world.makeFound();
    const insert = (actor: string): Promise<boolean> =>
      api.ofTenant(world.tenant).transaction((tx) =>
        insertResolution(tx, {
          ...{ id: newUuid(), paymentId, actor },
          proposal: { outcome: 'failed', reasonCode: 'provider_refused', evidenceIds: [], proof: null },
        }),
      );
    await revoke(world, 'gone');
    expect([await insert('person:gone'), await insert('person:gone-2')]).toEqual([false, true]);
  });
});

describe('a decision and a revocation at once', () => {
  /** Starts a decision whose token is good, and revokes the person when it waits for the lock on people. */
  async function revokedMeanwhile(subject: string, decide: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
    await other.query(`BEGIN; SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.revokePeople})`);
    const answer = decide();
    await until(
      'the decision that waits',
      () => waiting(null),
      (sessions) => sessions === 1,
    );
    await other.query(
      `INSERT INTO revoked_person (subject, revoked_by, reason) VALUES ($1, 'operator:test', 'suspected')`,
      [subject],
    );
    await other.query('COMMIT');
    return answer;
  }

  it('ends with 401 for an approver whose token was checked a moment before, and nothing moves', async () => {
    const of = await proposed();
    const answer = await revokedMeanwhile(of.approver, () => approve(of.client, of.id, of.resolution));
    expect([answer.status, answer.body.code]).toEqual([401, 'unauthenticated']);
    expect(await rowOf(of.resolution)).toEqual({ approved_by: null, void_reason: null });
    expect((await world.head(of.id)).state).toBe('needs_review');
  });

  it('ends with 409 when it is the proposer who is revoked', async () => {
    const of = await proposed();
    const answer = await revokedMeanwhile(of.proposer, () => approve(of.client, of.id, of.resolution));
    expect([answer.status, answer.body.code]).toEqual([409, 'proposal_void']);
    expect(await rowOf(of.resolution)).toEqual({ approved_by: null, void_reason: 'proposer_revoked' });
  });

  it('ends with 401 for a proposer whose token was checked a moment before, and the open proposal stays', async () => {
    const of = await proposed();
    const late = await world.person('late');
    const answer = await revokedMeanwhile('late', () => propose(world, late, of.id, { proof: STATEMENT }));
    expect([answer.status, answer.body.code]).toEqual([401, 'unauthenticated']);
    expect(await rowOf(of.resolution)).toEqual({ approved_by: null, void_reason: null });
  });

  it.each(['proposer', 'approver'] as const)(
    'an approval that is under way is committed before the %s is revoked',
    async (who) => {
      const of = await proposed();
      // The approval has run its statement and stands before its entry in the audit log.
      await other.query('BEGIN; LOCK TABLE audit_log IN SHARE MODE');
      const answer = approve(of.client, of.id, of.resolution);
      await until(
        'the approval that waits',
        () => waiting('audit_log'),
        (sessions) => sessions === 1,
      );
      let whenRevoked: string | null | undefined;
      const revoking = revoke(world, of[who]).then(async () => {
        whenRevoked = (await rowOf(of.resolution))?.approved_by;
      });
      await until(
        'the revocation that waits, or has not waited',
        async () => (await waiting(null)) === 1 || whenRevoked !== undefined,
        (isThere) => isThere,
      );
      await other.query('COMMIT');
      await revoking;
      expect((await answer).status).toBe(200);
      expect(whenRevoked).toBe(`person:${of.approver}`);
    },
  );
});

describe('payments_admin', () => {
  const asAdmin = (text: string, values: readonly unknown[] = []) =>
    world.admin.query<Record<string, unknown>>({ name: text.slice(0, 63), text }, values);

  it('sees of proposals those of revoked people alone, and not what they are about', async () => {
    const [of, untouched] = [await proposed(), await proposed()];
    await revoke(world, of.proposer);
    const { rows } = await asAdmin('SELECT id, void_reason FROM resolution');
    const ids = rows.map((row) => row['id']);
    expect([ids.includes(of.resolution), ids.includes(untouched.resolution)]).toEqual([true, false]);
    for (const column of ['payment_id', 'tenant_id', 'outcome', 'proof_statement']) {
      await expect(asAdmin(`SELECT ${column} FROM resolution`)).rejects.toThrow(/permission denied/);
    }
  });

  it('ends no other proposal, for no other reason, and approves none', async () => {
    const of = await proposed();
    const end = `UPDATE resolution SET voided_at = clock_timestamp(), void_reason = 'expired' WHERE id = $1`;
    expect((await asAdmin(end, [of.resolution])).rowCount).toBe(0);
    await world.db.query('ALTER TABLE revoked_person DISABLE TRIGGER revoked_person_void_proposals');
    await revoke(world, of.proposer);
    await world.db.query('ALTER TABLE revoked_person ENABLE ALWAYS TRIGGER revoked_person_void_proposals');
    await expect(asAdmin(end, [of.resolution])).rejects.toThrow(/row-level security/);
    await expect(asAdmin(`UPDATE resolution SET approved_by = 'person:eve'`)).rejects.toThrow(
      /permission denied/,
    );
    expect(await rowOf(of.resolution)).toEqual({ approved_by: null, void_reason: null });
  });

  it('takes no word back that it said: who is revoked, when and why is not changed', async () => {
    await revoke(world, 'fixed');
    for (const text of [
      `UPDATE revoked_person SET reason = 'other'`,
      `INSERT INTO revoked_person (subject, revoked_at, revoked_by, reason) VALUES ('x', '2020-01-01', 'y', 'zz')`,
      'TRUNCATE revoked_person',
    ]) {
      await expect(asAdmin(text)).rejects.toThrow(/permission denied/);
    }
  });
});
