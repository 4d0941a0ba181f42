import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { paymentIn } from '../support/payment-states.js';
import { DATABASE_ROLES } from '../../src/persistence/roles.js';

/** Every role that a process, a command or a person logs in as; the owner runs no process. */
const ROLES = DATABASE_ROLES.filter((role) => role !== 'payments_owner');

const INSERT = `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor)
  VALUES ($1, 2, $2, 'scheduled', 'held', 'hold', 'test')`;
/** Follows nothing, so that no rule but the tenant's has a word: the first one is there already. */
const INSERT_FIRST = `INSERT INTO payment_transition (payment_id, seq, tenant_id, to_state, cause, actor)
  VALUES ($1, 1, $2, 'scheduled', 'create', 'test')`;

let db: TestDatabase;
const sessions = new Map<string, pg.Client>();
let tenant: string;
let foreignTenant: string;
let id: string;
let foreignId: string;
let before: unknown;
const history = (): Promise<unknown> =>
  db.query(`SELECT *, encode(hash, 'hex') AS hex FROM payment_transition ORDER BY payment_id, seq`);

beforeAll(async () => {
  db = await createTestDatabase();
  for (const role of ROLES) {
    const client = new pg.Client({ connectionString: db.urlOf(role) });
    await client.connect();
    sessions.set(role, client);
  }
  tenant = await seedTenant(db.database);
  foreignTenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  id = await paymentIn('scheduled', db.database, { tenant, lane });
  foreignId = await paymentIn('scheduled', db.database, { tenant: foreignTenant, lane });
});
beforeEach(async () => {
  before = await history();
});
afterAll(async () => {
  for (const client of sessions.values()) await client.end();
  await db.drop();
});

function session(role: string): pg.Client {
  const client = sessions.get(role);
  if (!client) throw new Error(`no session of ${role}`);
  return client;
}

/** The SQLSTATE of the refusal, or null when it was accepted; undone either way. */
async function refusalOf(
  client: pg.Client,
  text: string,
  options: { readonly values?: readonly unknown[]; readonly as?: string | null } = {},
): Promise<string | null> {
  const { values = [], as = tenant } = options;
  await client.query('BEGIN');
  try {
    if (as !== null) await client.query(`SELECT set_config('payments.tenant', $1, true)`, [as]);
    await (values.length > 0 ? client.query(text, [...values]) : client.query(text));
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
];

describe.each(ROLES)('the history against %s', (role) => {
  it.each(REFUSED)('refuses %s, and no row changes (AU-01)', async (what, text) => {
    const code = await refusalOf(session(role), text);
    // 42501: insufficient privilege. A grant without the right to give it is a warning in Postgres.
    if (what === 'a grant to itself') expect([null, '42501']).toContain(code);
    else expect(code).toBe('42501');
    expect(await history()).toEqual(before);
  });

  it('gives nothing by the grant that it tried to give itself', async () => {
    const client = session(role);
    await client.query('GRANT UPDATE ON payment_transition TO CURRENT_USER').catch(() => undefined);
    expect(await refusalOf(client, `UPDATE payment_transition SET actor = 'nobody'`)).toBe('42501');
  });

  it('owns nothing of the schema', async () => {
    const owned = await db.query(
      `SELECT relname FROM pg_class WHERE pg_has_role($1, relowner, 'MEMBER') AND relnamespace = 'public'::regnamespace`,
      [role],
    );
    expect(owned).toEqual([]);
  });
});

describe('what the API writes', () => {
  const api = (): pg.Client => session('payments_api');
  const insert = (paymentId: string, of: string, as: string | null): Promise<string | null> =>
    refusalOf(api(), INSERT_FIRST, { values: [paymentId, of], as });

  it('is taken for the tenant of its transaction, so that the refusals below mean something', async () => {
    expect(await refusalOf(api(), INSERT, { values: [id, tenant] })).toBeNull();
    // 23505: it got as far as the unique key.
    expect(await insert(id, tenant, tenant)).toBe('23505');
  });

  it('is refused for another tenant (AU-01)', async () => {
    expect(await insert(foreignId, foreignTenant, tenant)).toBe('42501');
    expect(await insert(id, foreignTenant, tenant)).toBe('42501');
  });

  it('is refused without a tenant, also after a transaction that had one (AU-01)', async () => {
    expect(await insert(id, tenant, null)).toBe('42501');
    expect(await insert(id, tenant, '')).toBe('42501');
    expect(await insert(id, '', '')).toBe('42501');
  });

  const OF_TENANT: readonly (readonly [table: string, text: string])[] = [
    ['payment', `INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount,
       currency, destination, destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at,
       not_after, state, created_by) VALUES ('pay_' || $1 || 'x', $2, 'k', '', 1, 1, 'EUR', '', 'k', '', 'k', 'p',
       'l', now() + interval '1 day', now() + interval '2 days', 'scheduled', 'test')`],
    ['evidence', `INSERT INTO evidence (payment_id, tenant_id, source, kind) VALUES ($1, $2, 'person', 'resolution')`],
    ['review_case', `INSERT INTO review_case (payment_id, tenant_id, reason, due_at) VALUES ($1, $2, 'operator', now())`],
    ['resolution', `INSERT INTO resolution (id, payment_id, tenant_id, outcome, reason_code, payment_version,
       evidence_digest, evidence_ids, proposed_by) VALUES ('r' || $1, $1, $2, 'failed', 'other', 1, '', '{}', 'person:a')`],
  ]; // prettier-ignore

  it.each(OF_TENANT)('holds for %s too (AU-01)', async (_table, text) => {
    expect(await refusalOf(api(), text, { values: [id, tenant], as: tenant })).toBeNull();
    for (const as of [foreignTenant, null, '']) {
      expect(await refusalOf(api(), text, { values: [id, tenant], as })).toBe('42501');
    }
  });

  it('opens no attempt, and no submission that two people did not approve', async () => {
    const submission = `INSERT INTO submission (payment_id, generation, provider_key, parameters, parameters_key_id,
      parameters_sha256, adapter, adapter_version, api_version, credential_id, account, base_url)
      VALUES ($1, $2, 'k' || $1, '', 'k', '', 'a', '1', '1', 'c', 'a', 'u')`;
    for (const generation of [1, 2]) {
      expect(await refusalOf(api(), submission, { values: [id, generation] })).toBe('42501');
    }
    const attempt = `INSERT INTO submission_attempt (payment_id, generation, no) VALUES ($1, 1, 1)`;
    expect(await refusalOf(api(), attempt, { values: [id] })).toBe('42501');
  });

  it('never names an object at the provider', async () => {
    const text = `UPDATE payment SET provider_ref = 'tr_1' WHERE id = $1`;
    expect(await refusalOf(api(), text, { values: [id] })).toBe('42501');
    expect(await refusalOf(session('payments_worker'), text, { values: [id] })).toBeNull();
  });
});

describe('what the API sees', () => {
  const TABLES = ['payment', 'payment_transition'];

  it.each(TABLES)('of %s is its tenant’s, whatever it asks for, and nothing without one', async (table) => {
    const api = session('payments_api');
    const seen = async (as: string | null): Promise<readonly unknown[]> => {
      await api.query('BEGIN');
      if (as !== null) await api.query(`SELECT set_config('payments.tenant', $1, true)`, [as]);
      const { rows } = await api.query<{ tenant_id: string }>(`SELECT DISTINCT tenant_id FROM ${table}`);
      await api.query('ROLLBACK');
      return rows.map((row) => row.tenant_id);
    };
    expect(await seen(tenant)).toEqual([tenant]);
    expect(await seen(foreignTenant)).toEqual([foreignTenant]);
    expect(await seen(null)).toEqual([]);
    expect(await seen('')).toEqual([]);
  });

  it('changes no foreign row, which is as if it were not there', async () => {
    const api = session('payments_api');
    await api.query('BEGIN');
    await api.query(`SELECT set_config('payments.tenant', $1, true)`, [tenant]);
    const { rowCount } = await api.query(`UPDATE payment SET updated_at = now() WHERE id = $1`, [foreignId]);
    await api.query('ROLLBACK');
    expect(rowCount).toBe(0);
  });

  it('is nothing for the owner of the schema either: row-level security is forced', async () => {
    const owner = new pg.Client({ connectionString: db.urlOf('payments_owner') });
    await owner.connect();
    try {
      // What a table belongs to in this copy of the template, whoever made it.
      expect((await owner.query('SELECT count(*)::integer AS rows FROM payment')).rows).toEqual([
        { rows: 0 },
      ]);
    } finally {
      await owner.end();
    }
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
