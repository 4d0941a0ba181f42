import type { Database, Sql, Statement, Transactions } from '../../src/persistence/database.js';
import { TENANT_TABLES } from '../../src/persistence/grants.js';
import type { TestDatabase } from './database.js';

/**
 * The two nets that keep tenants apart, each to be taken away alone: the stores' filter and row-level
 * security. What holds with one of them gone is held by the other.
 */

/** `p.tenant_id = $1`, `tenant_id = $2`, `p.tenant_id = c.tenant_id`. The parameter stays, with its type. */
const FILTER = /\b(?:\w+\.)?tenant_id\s*=\s*(\$\d+|\w+\.tenant_id)\b/g;

/** The statement as it would be if its author had forgotten the tenant. */
export function unfiltered(statement: Statement): Statement {
  const text = statement.text.replace(FILTER, (_, value: string) => `(${value} IS NULL OR TRUE)`);
  if (text === statement.text) return statement;
  return {
    name: `${statement.name}-unfiltered`,
    text: text.replaceAll(/\((\$\d+) IS NULL/g, '($1::text IS NULL'),
  };
}

export interface UnfilteredDatabase {
  readonly database: Database;
  /** Names of the statements that ran without their filter: an empty one proves nothing. */
  readonly rewritten: ReadonlySet<string>;
}

/**
 * The same pool, whose statements do not filter by tenant ("without the store filter"). Tenants are
 * still told to Postgres, so that row-level security is what is left.
 */
export function withoutStoreFilter(database: Database): UnfilteredDatabase {
  const rewritten = new Set<string>();
  const rewrite = (statement: Statement): Statement => {
    const changed = unfiltered(statement);
    if (changed !== statement) rewritten.add(statement.name);
    return changed;
  };
  const sql = (inner: Sql): Sql => ({
    query: (statement, values) => inner.query(rewrite(statement), values),
  });
  const transactions = (inner: Transactions): Transactions => ({
    ...sql(inner),
    transaction: (work) => inner.transaction((tx) => work(sql(tx))),
  });
  const own: Partial<Database> = {
    ...transactions(database),
    ofTenant: (tenantId) => transactions(database.ofTenant(tenantId)),
  };
  const proxy = new Proxy(database, {
    get: (target, name) => {
      const value = (Reflect.get(own, name) ?? Reflect.get(target, name)) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { database: proxy, rewritten };
}

/**
 * Switches row-level security off in a test's database ("without row-level security"), so that the
 * stores' filter is what is left. Processes that start afterwards refuse to.
 */
export async function withoutRowSecurity(db: TestDatabase): Promise<void> {
  for (const table of TENANT_TABLES) {
    await db.query(`ALTER TABLE ${table} NO FORCE ROW LEVEL SECURITY`);
    await db.query(`ALTER TABLE ${table} DISABLE ROW LEVEL SECURITY`);
  }
}

/** Switches it on again. */
export async function withRowSecurity(db: TestDatabase): Promise<void> {
  for (const table of TENANT_TABLES) {
    await db.query(`ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`);
    await db.query(`ALTER TABLE ${table} FORCE ROW LEVEL SECURITY`);
  }
}
