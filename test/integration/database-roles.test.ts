import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FUNCTION_GRANTS, GRANTS, TENANT_TABLES, type RoleGrants } from '../../src/persistence/grants.js';
import { migrate } from '../../src/persistence/migrate.js';
import { DATABASE_ROLES, type DatabaseRole } from '../../src/persistence/roles.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startTestServer } from '../support/embedded-postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(() => db.drop());

/** Role -> table -> `SELECT`, `UPDATE (column)` and so on, sorted. */
type Rights = Record<string, Record<string, readonly string[]>>;

async function catalogueRights(): Promise<Rights> {
  const rows = await db.query<{ role: string; table: string; rights: readonly string[] }>(
    `WITH entry AS (
       SELECT c.relname, a.grantee, a.privilege_type AS right
         FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND a.grantee <> c.relowner
       UNION ALL
       SELECT c.relname, a.grantee, format('%s (%s)', a.privilege_type, t.attname)
         FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid CROSS JOIN LATERAL aclexplode(t.attacl) a
        WHERE c.relnamespace = 'public'::regnamespace)
     SELECT coalesce(r.rolname, 'PUBLIC') AS role, e.relname AS table, array_agg(e.right::text ORDER BY e.right) AS rights
       FROM entry e LEFT JOIN pg_roles r ON r.oid = e.grantee GROUP BY 1, 2`,
  );
  const rights: Rights = {};
  for (const row of rows) (rights[row.role] ??= {})[row.table] = [...row.rights].sort();
  return rights;
}

function committedRights(grants: RoleGrants): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(grants).map(([table, of]) => {
      const words = (right: string, columns: 'all' | readonly string[] | undefined): readonly string[] => {
        if (columns === undefined) return [];
        return columns === 'all' ? [right] : columns.map((column) => `${right} (${column})`);
      };
      const all = [
        ...words('SELECT', of.select),
        ...words('INSERT', of.insert),
        ...words('UPDATE', of.update),
        ...(of.delete === true ? ['DELETE'] : []),
      ];
      return [table, all.sort()];
    }),
  );
}

const COMMITTED: Rights = Object.fromEntries(
  Object.entries(GRANTS).map(([role, grants]) => [role, committedRights(grants)]),
);

describe('the catalogue and the committed grants', () => {
  it.each(Object.keys(COMMITTED))('agree about %s', async (role) => {
    expect((await catalogueRights())[role] ?? {}).toEqual(COMMITTED[role]);
  });

  it('know nobody else: not PUBLIC and no role of another name', async () => {
    expect(Object.keys(await catalogueRights()).sort()).toEqual(Object.keys(COMMITTED).sort());
  });

  describe('when somebody grants more by hand', () => {
    afterEach(async () => {
      await db.query(`REVOKE ALL ON worker FROM PUBLIC`);
      await db.query(`REVOKE UPDATE ON payment_transition FROM payments_api`);
      await db.query(`REVOKE UPDATE (amount) ON payment FROM payments_worker`);
    });

    it.each([
      ['payments_api', 'GRANT UPDATE ON payment_transition TO payments_api'],
      ['payments_worker', 'GRANT UPDATE (amount) ON payment TO payments_worker'],
      ['PUBLIC', 'GRANT SELECT ON worker TO PUBLIC'],
    ])('differ about %s', async (role, grant) => {
      await db.query(grant);
      expect((await catalogueRights())[role] ?? {}).not.toEqual(COMMITTED[role] ?? {});
    });
  });

  it('agree about functions, which nobody calls by default', async () => {
    const rows = await db.query<{ name: string; roles: readonly string[] }>(
      `SELECT p.proname AS name, array_agg(coalesce(r.rolname, 'PUBLIC')::text) AS roles
         FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
         LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.pronamespace = 'public'::regnamespace AND a.grantee <> p.proowner GROUP BY 1`,
    );
    const found = Object.fromEntries(rows.map((row) => [row.name, [...row.roles].sort()]));
    const wanted = Object.entries(FUNCTION_GRANTS).map(([name, roles]) => [name, [...roles].sort()] as const);
    expect(found).toEqual(Object.fromEntries(wanted));
  });

  it('agree about sequences: only a copy reads them', async () => {
    const rows = await db.query<{ role: string; right: string }>(
      `SELECT DISTINCT coalesce(r.rolname, 'PUBLIC') AS role, a.privilege_type AS right
         FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'S' AND a.grantee <> c.relowner`,
    );
    for (const row of rows) expect(row).toEqual({ role: 'payments_backup', right: 'SELECT' });
  });
});

describe('no role', () => {
  it('is a superuser, passes by row-level security, replicates or makes databases', async () => {
    const rows = await db.query(
      `SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)
          AND (rolsuper OR rolbypassrls OR rolreplication OR rolcreatedb)`,
      [[...DATABASE_ROLES]],
    );
    expect(rows).toEqual([]);
  });

  it('but the owner makes roles, owns a table or creates in the schema', async () => {
    const others = DATABASE_ROLES.filter((role) => role !== 'payments_owner');
    const makers = await db.query(`SELECT rolname FROM pg_roles WHERE rolname = ANY ($1) AND rolcreaterole`, [
      others,
    ]);
    expect(makers).toEqual([]);
    const owners = await db.query<{ owner: string }>(
      `SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')`,
    );
    expect(owners).toEqual([{ owner: 'payments_owner' }]);
    const creators = await db.query<{ role: string }>(
      `SELECT r.rolname AS role FROM pg_roles r
        WHERE r.rolname = ANY ($1) AND has_schema_privilege(r.oid, 'public', 'CREATE')`,
      [[...DATABASE_ROLES]],
    );
    expect(creators).toEqual([{ role: 'payments_owner' }]);
  });

  it('is a member of another', async () => {
    const rows = await db.query(
      `SELECT m.roleid::regrole::text AS role, m.member::regrole::text AS member FROM pg_auth_members m
        WHERE m.member::regrole::text = ANY ($1) AND NOT m.member::regrole::text = 'payments_owner'`,
      [[...DATABASE_ROLES]],
    );
    expect(rows).toEqual([]);
  });

  it('reads ciphertexts for invariants, metrics or an audit', async () => {
    for (const role of ['payments_read', 'payments_auditor'] as const) {
      for (const text of [
        'SELECT destination FROM payment',
        'SELECT parameters FROM submission',
        'SELECT body FROM webhook_inbox',
        'SELECT digest FROM api_key',
      ]) {
        await expect(db.as(role, `${role}-cipher`, 1).query({ name: text, text })).rejects.toThrow(
          /permission denied/,
        );
      }
    }
  });

  it('of administration sees a payment', async () => {
    const admin = db.as('payments_admin', 'admin', 1);
    for (const table of ['payment', 'payment_transition', 'evidence', 'outbox', 'submission']) {
      const text = `SELECT 1 FROM ${table}`;
      await expect(admin.query({ name: text, text })).rejects.toThrow(/permission denied/);
    }
  });
});

describe('row-level security', () => {
  it('is enabled and forced on every table with tenant_id, but on the keys that tell whose a call is', async () => {
    const rows = await db.query<{ name: string; on: boolean; forced: boolean }>(
      `SELECT c.relname AS name, c.relrowsecurity AS on, c.relforcerowsecurity AS forced FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
          AND (c.relname = ANY ($1) OR EXISTS (SELECT 1 FROM pg_attribute a
                WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)) ORDER BY 1`,
      [[...TENANT_TABLES]],
    );
    const open = rows.filter(({ on, forced }) => !on || !forced).map(({ name }) => name);
    expect(open).toEqual(['api_key']);
    const secured = rows.filter(({ on }) => on).map(({ name }) => name);
    expect(secured).toEqual([...TENANT_TABLES].sort());
  });

  it('lets the API see rows by its tenant only, and the owner none', async () => {
    const rows = await db.query<{
      table: string;
      roles: readonly string[];
      permissive: string;
      condition: string;
    }>(
      `SELECT tablename AS table, roles::text[] AS roles, permissive,
              coalesce(qual, '') || ' ' || coalesce(with_check, '') AS condition
         FROM pg_policies WHERE schemaname = 'public'`,
    );
    const openTo = (role: DatabaseRole | 'public') =>
      rows.filter((row) => row.roles.includes(role) && row.permissive === 'PERMISSIVE');
    for (const row of openTo('payments_api')) {
      expect(row.condition, row.table).toMatch(/current_setting\('payments\.tenant'|of_tenant\.id/);
      expect(row.condition, row.table).not.toMatch(/\btrue\b(?!\))/);
    }
    expect(openTo('payments_owner')).toEqual([]);
    expect(openTo('public')).toEqual([]);
  });
});

describe('migrations that make the roles', () => {
  it('agree when several databases of a new server migrate at once, whoever is first', async () => {
    const server = await startTestServer();
    const admin = new pg.Client({ connectionString: `${server.url}postgres` });
    try {
      await admin.connect();
      const names = Array.from({ length: 4 }, (_, i) => `first_${i}`);
      for (const name of names) await admin.query(`CREATE DATABASE ${name}`);
      await Promise.all(names.map((name) => migrate(`${server.url}${name}`)));
      const roles = await admin.query('SELECT 1 FROM pg_roles WHERE rolname = ANY ($1) AND NOT rolcanlogin', [
        [...DATABASE_ROLES],
      ]);
      expect(roles.rowCount).toBe(DATABASE_ROLES.length);
      for (const name of names) {
        const client = new pg.Client({ connectionString: `${server.url}${name}` });
        await client.connect();
        // Made by a superuser, and handed over.
        const { rows } = await client.query(
          `SELECT DISTINCT pg_get_userbyid(relowner)::text AS owner FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')`,
        );
        await client.end();
        expect(rows).toEqual([{ owner: 'payments_owner' }]);
      }
    } finally {
      await admin.end();
      await server.stop();
    }
  });

  it('close the database to PUBLIC', async () => {
    const copy = await createTestDatabase('empty');
    try {
      await migrate(copy.url);
      const [row] = await copy.query<{ open: string }>(
        `SELECT coalesce(string_agg(a.privilege_type, ','), '') AS open FROM pg_database d
           CROSS JOIN LATERAL aclexplode(d.datacl) a WHERE d.datname = current_database() AND a.grantee = 0`,
      );
      expect(row?.open).toBe('');
    } finally {
      await copy.drop();
    }
  });
});
