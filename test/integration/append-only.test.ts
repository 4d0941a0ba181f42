import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { paymentIn } from '../support/payment-states.js';

/** An application role as an operator would make it: what the API needs, and nothing that it owns. */
const ROLE = `test_api_${randomBytes(4).toString('hex')}`;
const PASSWORD = randomBytes(8).toString('hex');
const UPDATABLE = 'state, version, execute_at, not_after, next_action_at, wake_after, armed_by, updated_at';
const GRANTS = [
  `CREATE ROLE ${ROLE} LOGIN PASSWORD '${PASSWORD}'`,
  `GRANT SELECT, INSERT ON payment, payment_transition, outbox, evidence TO ${ROLE}`,
  `GRANT UPDATE (${UPDATABLE}) ON payment TO ${ROLE}`,
  `GRANT SELECT ON tenant, lane, setting, submission, submission_attempt TO ${ROLE}`,
];

const INSERT = `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor)
  SELECT id, 2, tenant_id, 'scheduled', 'held', 'hold', 'test' FROM payment WHERE id = $1`;

let db: TestDatabase;
let role: pg.Client;
let id: string;
let before: unknown;
const history = (): Promise<unknown> =>
  db.query(`SELECT *, encode(hash, 'hex') AS hex FROM payment_transition ORDER BY payment_id, seq`);

beforeAll(async () => {
  db = await createTestDatabase();
  for (const grant of GRANTS) await db.query(grant);
  const url = new URL(db.url);
  url.username = ROLE;
  url.password = PASSWORD;
  role = new pg.Client({ connectionString: url.href });
  await role.connect();
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  id = await paymentIn('scheduled', db.database, { tenant, lane });
});
beforeEach(async () => {
  before = await history();
});
afterAll(async () => {
  await role.end();
  await db.query(`DROP OWNED BY ${ROLE}`);
  await db.query(`DROP ROLE ${ROLE}`);
  await db.drop();
});

/** The SQLSTATE of the refusal, or null when it was accepted; undone either way. */
async function refusalOf(client: pg.Client, text: string): Promise<string | null> {
  await client.query('BEGIN');
  try {
    await client.query(text);
    return null;
  } catch (error) {
    return (error as { code?: string }).code ?? 'unknown';
  } finally {
    await client.query('ROLLBACK');
  }
}

const REFUSED: readonly (readonly [what: string, text: string])[] = [
  ['UPDATE', `UPDATE payment_transition SET actor = 'nobody'`],
  ['DELETE', `DELETE FROM payment_transition`],
  ['TRUNCATE', `TRUNCATE payment_transition`],
  ['TRUNCATE of the parent with CASCADE', `TRUNCATE payment CASCADE`],
  ['DROP TABLE', `DROP TABLE payment_transition`],
  ['DROP of the parent with CASCADE', `DROP TABLE payment CASCADE`],
  ['DROP TRIGGER', `DROP TRIGGER payment_transition_no_change ON payment_transition`],
  ['DISABLE TRIGGER', `ALTER TABLE payment_transition DISABLE TRIGGER ALL`],
  ['replica role', `SET session_replication_role = replica`],
  [
    'ON CONFLICT DO UPDATE',
    `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor)
     SELECT payment_id, seq, tenant_id, from_state, to_state, cause, 'nobody' FROM payment_transition
     ON CONFLICT (payment_id, seq) DO UPDATE SET actor = EXCLUDED.actor`,
  ],
  [
    'MERGE',
    `MERGE INTO payment_transition t USING payment p ON p.id = t.payment_id
     WHEN MATCHED THEN UPDATE SET actor = 'nobody'`,
  ],
  ['SELECT FOR UPDATE', `SELECT * FROM payment_transition FOR UPDATE`],
  ['a changed function', `ALTER FUNCTION payment_transition_before_insert() RENAME TO gone`],
  [
    'a replaced function',
    `CREATE OR REPLACE FUNCTION payment_edge_is_legal(from_state text, to_state text, cause text)
     RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'`,
  ],
  ['ownership', `ALTER TABLE payment_transition OWNER TO CURRENT_USER`],
  ['a grant to itself', `GRANT UPDATE ON payment_transition TO CURRENT_USER`],
  ['DELETE of evidence', `DELETE FROM evidence`],
  ['UPDATE of evidence', `UPDATE evidence SET kind = 'accepted'`],
  ['DELETE of the head row', `DELETE FROM payment`],
  ['UPDATE of the amount', `UPDATE payment SET amount = 1`],
  ['UPDATE of an attempt', `UPDATE submission_attempt SET evidence = 'not_sent'`],
];

describe('the history against an application role (AU-01)', () => {
  it('takes a lawful transition, so that the refusals below mean something', async () => {
    await role.query('BEGIN');
    expect((await role.query(INSERT, [id])).rowCount).toBe(1);
    await role.query('ROLLBACK');
  });

  it.each(REFUSED)('refuses %s, and no row changes', async (what, text) => {
    const code = await refusalOf(role, text);
    // 42501: insufficient privilege. A grant without the right to give it is a warning in Postgres.
    if (what === 'a grant to itself') expect([null, '42501']).toContain(code);
    else expect(code).toBe('42501');
    expect(await history()).toEqual(before);
  });

  it('gives nothing by the grant that it tried to give itself', async () => {
    await role.query('GRANT UPDATE ON payment_transition TO CURRENT_USER').catch(() => undefined);
    expect(await refusalOf(role, `UPDATE payment_transition SET actor = 'nobody'`)).toBe('42501');
  });

  it('belongs to somebody else, as everything in the schema', async () => {
    const owned = await db.query(`SELECT relname FROM pg_class WHERE pg_get_userbyid(relowner) = $1`, [ROLE]);
    expect(owned).toEqual([]);
  });
});

describe('the history against a superuser', () => {
  let superuser: pg.Client;
  beforeAll(async () => {
    superuser = new pg.Client({ connectionString: db.url });
    await superuser.connect();
  });
  afterAll(() => superuser.end());

  const BY_TRIGGER = REFUSED.filter(([what]) =>
    /^(UPDATE|DELETE|TRUNCATE|TRUNCATE of the parent with CASCADE|MERGE|ON CONFLICT DO UPDATE|DELETE of the head row)$/.test(
      what,
    ),
  );

  it.each(BY_TRIGGER)('refuses %s by trigger', async (_what, text) => {
    expect(await refusalOf(superuser, text)).toBe('42501');
    expect(await history()).toEqual(before);
  });

  it.each(BY_TRIGGER)('refuses %s in replica mode, where ordinary triggers sleep', async (_what, text) => {
    expect(await refusalOf(superuser, `SET LOCAL session_replication_role = replica; ${text}`)).toBe('42501');
    expect(await history()).toEqual(before);
  });

  it('fires every one of its triggers always', async () => {
    const rows = await db.query<{ name: string }>(
      `SELECT tgname AS name FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'A'`,
    );
    expect(rows).toEqual([]);
  });
});
