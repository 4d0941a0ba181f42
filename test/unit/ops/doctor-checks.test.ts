import { describe, expect, it } from 'vitest';
import { postgresChecks } from '../../../src/ops/doctor/postgres-checks.js';
import { StorageUnavailable } from '../../../src/persistence/database-errors.js';
import type { Sql, Statement } from '../../../src/persistence/database.js';
import { MIGRATIONS } from '../../../src/persistence/migrations/index.js';

const NAMES = MIGRATIONS.map((migration) => migration.name);

interface Server {
  readonly version?: number;
  readonly settings?: Readonly<Record<string, string>>;
  readonly migrations?: readonly string[] | null;
  readonly aheadMs?: number;
}

/** A Postgres that answers the statements of doctor as it is told. */
function server(of: Server): Sql {
  const settings = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', ...of.settings };
  const rowsOf = ({ name }: Statement): readonly object[] => {
    switch (name) {
      case 'doctor-version':
        return [{ number: of.version ?? 180_004, text: '18.4' }];
      case 'doctor-durability':
        return Object.entries(settings).map(([each, setting]) => ({ name: each, setting }));
      case 'doctor-has-migrations':
        return [{ present: of.migrations !== null }];
      case 'doctor-migrations':
        return (of.migrations ?? NAMES).map((each) => ({ name: each }));
      case 'doctor-clock':
        return [{ ms: Date.now() + (of.aheadMs ?? 0) }];
      default:
        throw new Error(`doctor asked ${name}`);
    }
  };
  return {
    query: async <R>(statement: Statement) => {
      const rows = rowsOf(statement) as R[];
      return { rows, rowCount: rows.length };
    },
  };
}

async function resultOf(name: string, of: Server): Promise<{ result?: string; detail?: string }> {
  return (await postgresChecks(server(of))).find((check) => check.name === name) ?? {};
}

describe('doctor on Postgres', () => {
  it('finds nothing wrong with a server that is well', async () => {
    expect((await postgresChecks(server({}))).map((check) => check.result)).toEqual(['ok', 'ok', 'ok', 'ok']);
  });

  it('fails an old version', async () => {
    expect(await resultOf('postgres', { version: 170_002 })).toMatchObject({ result: 'failed' });
  });

  it.each(['fsync', 'full_page_writes', 'synchronous_commit'])('fails when %s is off', async (setting) => {
    const check = await resultOf('postgres durability', { settings: { [setting]: 'off' } });
    expect(check.result).toBe('failed');
    expect(check.detail).toContain(`${setting} is off`);
  });

  it.each(['local', 'remote_write'])('fails synchronous_commit = %s', async (setting) => {
    const check = await resultOf('postgres durability', { settings: { synchronous_commit: setting } });
    expect(check.result).toBe('failed');
  });

  it('takes synchronous_commit = remote_apply, which waits for more', async () => {
    const check = await resultOf('postgres durability', { settings: { synchronous_commit: 'remote_apply' } });
    expect(check.result).toBe('ok');
  });

  it('fails an empty database and a migration that did not run, and warns of a newer one', async () => {
    expect(await resultOf('schema', { migrations: null })).toMatchObject({ result: 'failed' });
    expect(await resultOf('schema', { migrations: [] })).toMatchObject({ result: 'failed' });
    expect(await resultOf('schema', { migrations: [...NAMES, 'Newer1'] })).toMatchObject({
      result: 'warning',
    });
  });

  it.each([
    [-60_000, 'failed', 'ahead of'],
    [60_000, 'failed', 'behind'],
    [-600, 'warning', 'ahead of'],
    [600, 'warning', 'behind'],
  ])('judges a database clock %d ms ahead as %s', async (aheadMs, result, word) => {
    const check = await resultOf('clock', { aheadMs });
    expect(check.result).toBe(result);
    expect(check.detail).toContain(word);
  });

  it('skips the rest when Postgres does not answer, and shows no address or password', async () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED secret.host'), { code: 'ECONNREFUSED' });
    const down: Sql = { query: () => Promise.reject(new StorageUnavailable('x', { cause })) };
    const checks = await postgresChecks(down);
    expect(checks.map((check) => check.result)).toEqual(['failed', 'skipped', 'skipped', 'skipped']);
    expect(JSON.stringify(checks)).not.toContain('secret.host');
    expect(checks[0]?.detail).toContain('ECONNREFUSED');
  });
});
