import { MIGRATIONS } from '../../persistence/migrations/index.js';
import type { Sql, Statement } from '../../persistence/database.js';
import { monotonicMs, wallMs } from '../../platform/clock.js';
import { failed, ok, skipped, warning, type Check } from './check.js';

const VERSION: Statement = {
  name: 'doctor-version',
  text: `SELECT current_setting('server_version_num')::integer AS number, current_setting('server_version') AS text`,
};
const OLDEST = 180_000;

/** Postgres answers, and its version is one that the migrations were written for. */
async function reachable(sql: Sql): Promise<Check> {
  const name = 'postgres';
  const { rows } = await sql.query<{ number: number; text: string }>(VERSION);
  const version = rows[0];
  if (!version || version.number < OLDEST) {
    return failed(name, `It is version ${version?.text}; 18 or newer is needed.`);
  }
  return ok(name, `version ${version.text}`);
}

const DURABILITY: Statement = {
  name: 'doctor-durability',
  text: `SELECT name, setting FROM pg_settings
          WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name`,
};
/** remote_apply waits for more than on does. */
const DURABLE = new Set(['on', 'remote_apply']);

/** With one of these off, a killed server forgets payments that were acknowledged. */
async function durability(sql: Sql): Promise<Check> {
  const name = 'postgres durability';
  const { rows } = await sql.query<{ name: string; setting: string }>(DURABILITY);
  const wrong = rows.filter((row) => !DURABLE.has(row.setting)).map((row) => `${row.name} is ${row.setting}`);
  if (wrong.length === 0) return ok(name, 'fsync, full_page_writes and synchronous_commit are on');
  return failed(name, `${wrong.join(', ')}: a kill would lose acknowledged payments. Set to on.`);
}

const HAS_TABLE: Statement = {
  name: 'doctor-has-migrations',
  text: `SELECT to_regclass('public.schema_migration') IS NOT NULL AS present`,
};
const APPLIED: Statement = { name: 'doctor-migrations', text: 'SELECT name FROM schema_migration' };

/** Every migration of this release has run, and none of a newer one. */
async function schema(sql: Sql): Promise<Check> {
  const name = 'schema';
  const { rows } = await sql.query<{ present: boolean }>(HAS_TABLE);
  if (rows[0]?.present !== true) return failed(name, 'The database is empty. Run payments migrate.');
  const applied = new Set((await sql.query<{ name: string }>(APPLIED)).rows.map((row) => row.name));
  const ours = MIGRATIONS.map((migration) => migration.name);
  const missing = ours.filter((each) => !applied.has(each));
  const unknown = [...applied].filter((each) => !ours.includes(each));
  if (missing.length > 0) return failed(name, `${missing.join(', ')} did not run. Run payments migrate.`);
  if (unknown.length > 0) {
    return warning(name, `${unknown.join(', ')} is of a newer release than this program.`);
  }
  return ok(name, `${ours.length} of ${ours.length} migrations`);
}

const CLOCK: Statement = {
  name: 'doctor-clock',
  text: `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::double precision AS ms`,
};
const SAMPLES = 5;
/** As the worker: above the first a ticket is due, above the second it starts nothing (ms). */
const SKEW_WARNING_MS = 250;
const SKEW_STOP_MS = 1_000;

/** This machine's clock less the database's, by the sample with the shortest way. */
async function clock(sql: Sql): Promise<Check> {
  const name = 'clock';
  let shortest = Infinity;
  let offsetMs = 0;
  for (let i = 0; i < SAMPLES; i++) {
    const before = monotonicMs();
    const wallBefore = wallMs();
    const { rows } = await sql.query<{ ms: number }>(CLOCK);
    const way = monotonicMs() - before;
    if (rows[0] && way < shortest) {
      shortest = way;
      offsetMs = wallBefore + way / 2 - rows[0].ms;
    }
  }
  const text = `${Math.round(Math.abs(offsetMs))} ms ${offsetMs < 0 ? 'behind' : 'ahead of'} Postgres`;
  if (Math.abs(offsetMs) > SKEW_STOP_MS) {
    return failed(name, `${text}: workers start nothing until the clocks agree. Check NTP.`);
  }
  return Math.abs(offsetMs) > SKEW_WARNING_MS ? warning(name, `${text}. Check NTP.`) : ok(name, text);
}

const AFTER_REACHABLE = { 'postgres durability': durability, schema, clock } as const;

/** All checks that Postgres has to answer; the later ones are skipped when it does not answer at all. */
export async function postgresChecks(sql: Sql): Promise<readonly Check[]> {
  let first: Check;
  try {
    first = await reachable(sql);
  } catch (error) {
    const cause = (error as { cause?: { code?: unknown } }).cause?.code;
    const why = typeof cause === 'string' ? ` (${cause})` : '';
    first = failed('postgres', `It did not answer${why}. Check PAYMENTS_DATABASE_URL and the server.`);
    return [first, ...Object.keys(AFTER_REACHABLE).map((name) => skipped(name, 'needs Postgres'))];
  }
  const checks: Check[] = [first];
  for (const [name, check] of Object.entries(AFTER_REACHABLE)) {
    checks.push(await check(sql).catch(() => failed(name, 'Postgres did not answer this one. Try again.')));
  }
  return checks;
}
