import type { Sql, Statement } from './database.js';
import { OutcomeUnknown, StorageUnavailable } from './database-errors.js';
import { GRANTS, TENANT_TABLES, type Columns, type TableGrants } from './grants.js';
import type { DatabaseRole } from './roles.js';

/** Postgres or the log-in is not what this process may run on. Starting again changes nothing. */
export class StartUpRefused extends Error {
  override readonly name = 'StartUpRefused';
}

/** A role that a process works as. */
export type ProcessRole = Exclude<DatabaseRole, 'payments_owner'>;

const DURABILITY: Statement = {
  name: 'start-durability',
  text: `SELECT name, setting FROM pg_settings
          WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name`,
};
/** remote_apply and remote_write wait for the local log too. */
const DURABLE: ReadonlySet<string> = new Set(['on', 'remote_apply', 'remote_write']);

/** `$1`: the role whose rights the log-in should have. Member of it, of nothing else, owner of nothing. */
const STANDING: Statement = {
  name: 'start-standing',
  text: `SELECT r.rolname AS name, r.rolsuper AS superuser, r.rolbypassrls AS bypasses, r.rolcreaterole AS makes_roles,
      r.rolcreatedb AS makes_databases, r.rolreplication AS replicates,
      has_schema_privilege('public', 'CREATE') AS creates,
      (SELECT min(c.relname) FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
         AND pg_has_role(c.relowner, 'MEMBER')) AS owns,
      (SELECT min(o.rolname) FROM pg_roles o WHERE o.rolname NOT IN (r.rolname, $1) AND NOT r.rolsuper
         AND pg_has_role(o.oid, 'MEMBER')) AS also
    FROM pg_roles r WHERE r.rolname = current_user`,
};

interface Standing {
  readonly name: string;
  readonly superuser: boolean;
  readonly bypasses: boolean;
  readonly makes_roles: boolean;
  readonly makes_databases: boolean;
  readonly replicates: boolean;
  readonly creates: boolean;
  readonly owns: string | null;
  readonly also: string | null;
}

/** What the log-in may do in effect, through itself, its memberships and PUBLIC. */
const RIGHTS: Statement = {
  name: 'start-rights',
  text: `SELECT c.relname AS table, p.right AS right, NULL AS column
      FROM pg_class c CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES',
        'TRIGGER', 'MAINTAIN']) AS p ("right")
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
       AND has_table_privilege(c.oid, p.right)
    UNION ALL
    SELECT c.relname, p.right, a.attname
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) AS p ("right")
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
       AND NOT has_table_privilege(c.oid, p.right) AND has_column_privilege(c.oid, a.attnum, p.right)`,
};

interface Right {
  readonly table: string;
  readonly right: string;
  readonly column: string | null;
}

const ROW_SECURITY: Statement = {
  name: 'start-row-security',
  text: `SELECT relname AS table FROM pg_class WHERE relnamespace = 'public'::regnamespace
           AND relname = ANY ($1::text[]) AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY relname`,
};

/**
 * Whether a process may run as this log-in on this server.
 * @returns one sentence for each reason against it; empty: none.
 * @throws faults of storage: nothing is known then.
 */
export async function startUpRefusals(sql: Sql, role: ProcessRole): Promise<readonly string[]> {
  const refusals: string[] = [];
  const { rows: settings } = await sql.query<{ name: string; setting: string }>(DURABILITY);
  for (const { name, setting } of settings) {
    if (DURABLE.has(setting)) continue;
    refusals.push(`Postgres runs with ${name} = ${setting}: a kill would lose acknowledged payments.`);
  }
  const standing = (await sql.query<Standing>(STANDING, [role])).rows[0];
  if (standing === undefined) throw new Error('Postgres does not know the role it works as');
  const power = powersOf(standing);
  // Whoever may do everything needs no list of it.
  if (power.length > 0) return [...refusals, ...power];
  const { rows: rights } = await sql.query<Right>(RIGHTS);
  const excess = rights.filter((right) => !isGranted(GRANTS[role][right.table], right)).map(wordsOf);
  if (excess.length > 0) {
    refusals.push(`The log-in ${standing.name} may do more than ${role}: ${inShort(excess)}.`);
  }
  const { rows: open } = await sql.query<{ table: string }>(ROW_SECURITY, [TENANT_TABLES]);
  if (open.length > 0) {
    const tables = inShort(open.map((row) => row.table));
    refusals.push(`Row-level security is not enabled and forced on ${tables}.`);
  }
  return refusals;
}

/**
 * The same as an error.
 * @throws StartUpRefused when something speaks against it; StorageUnavailable when Postgres could not
 * be asked, which is no refusal: ask again.
 */
export async function refuseToStart(sql: Sql, role: ProcessRole): Promise<void> {
  let refusals: readonly string[];
  try {
    refusals = await startUpRefusals(sql, role);
  } catch (error) {
    if (!(error instanceof OutcomeUnknown)) throw error;
    throw new StorageUnavailable('Postgres did not say whether this process may start', { cause: error });
  }
  if (refusals.length > 0) throw new StartUpRefused(refusals.join(' '));
}

function powersOf(of: Standing): readonly string[] {
  const powers: readonly (readonly [has: boolean, says: string])[] = [
    [of.superuser, 'is a superuser'],
    [of.bypasses, 'passes by row-level security (BYPASSRLS)'],
    [of.makes_roles, 'may make roles'],
    [of.makes_databases, 'may make databases'],
    [of.replicates, 'may replicate'],
    [of.creates, 'may create tables in the schema'],
    [of.owns !== null, `owns ${of.owns}, or is a member of its owner`],
    [of.also !== null, `is also a member of ${of.also}`],
  ];
  return powers.filter(([has]) => has).map(([, says]) => `The log-in ${of.name} ${says}.`);
}

function isGranted(grants: TableGrants | undefined, { right, column }: Right): boolean {
  if (grants === undefined) return false;
  if (right === 'DELETE') return grants.delete === true;
  const columns = { SELECT: grants.select, INSERT: grants.insert, UPDATE: grants.update }[right];
  return covers(columns, column);
}

function covers(columns: Columns | undefined, column: string | null): boolean {
  if (columns === undefined) return false;
  return columns === 'all' || (column !== null && columns.includes(column));
}

const wordsOf = ({ table, right, column }: Right): string =>
  `${right}${column === null ? '' : ` (${column})`} on ${table}`;

const MOST_NAMED = 5;

function inShort(names: readonly string[]): string {
  const named = names.slice(0, MOST_NAMED).join(', ');
  return names.length > MOST_NAMED ? `${named} and ${names.length - MOST_NAMED} more` : named;
}
