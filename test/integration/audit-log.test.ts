import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { recordAudit, type AuditEntry } from '../../src/audit/audit-log.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(() => db.drop());

const ENTRY: AuditEntry = {
  tenantId: 'tenant-a',
  actor: 'person:anna',
  action: 'limits_changed',
  target: 'tenant-a',
  code: 'raised',
  detail: { per_second_before: 10, per_second_after: 20, burst: true },
  money: { amountMinor: 9_007_199_254_740_993n, currency: 'EUR' },
};

interface Row {
  readonly [column: string]: unknown;
}
const rows = (): Promise<Row[]> => db.query<Row>('SELECT * FROM audit_log ORDER BY id');

describe('the audit log', () => {
  it('keeps who did what to which target, exact amounts, and the time and role of the database', async () => {
    const [before] = await db.query<{ now: string }>('SELECT clock_timestamp() AS now');
    await recordAudit(db.database, ENTRY);
    const [row] = await rows();
    expect(row).toMatchObject({
      tenant_id: 'tenant-a',
      actor: 'person:anna',
      action: 'limits_changed',
      target: 'tenant-a',
      code: 'raised',
      amount: 9_007_199_254_740_993n,
      currency: 'EUR',
      detail: '{"per_second_before":10,"per_second_after":20,"burst":true}',
    });
    expect(String(row?.['at']) > String(before?.now)).toBe(true);
  });

  it('does not let a writer choose the time or the database role', async () => {
    await db.query(
      `INSERT INTO audit_log (at, db_role, actor, action, target) VALUES ('2000-01-01Z', 'nobody', 'person:eve', 'key_made', 'x')`,
    );
    const [row] = await db.query<{ is_now: boolean; is_mine: boolean }>(
      `SELECT at > clock_timestamp() - interval '1 minute' AS is_now, db_role = session_user AS is_mine
         FROM audit_log WHERE actor = 'person:eve'`,
    );
    expect(row).toEqual({ is_now: true, is_mine: true });
  });

  it.each([
    ['an amount where nobody decided about money', { action: 'lane_paused' }],
    ['free text', { detail: { note: 'please pay Anna quickly' } }],
    ['a key that is no name', { detail: { 'a b': 1 } }],
  ] as const)('refuses %s', async (_what, change) => {
    const { length } = await rows();
    await expect(recordAudit(db.database, { ...ENTRY, ...change } as AuditEntry)).rejects.toThrow(
      'audit entry',
    );
    expect(await rows()).toHaveLength(length);
  });

  it.each([
    ['a line break in the actor', { actor: 'person:a\nb' }, 'audit_log_actor_one_line'],
    ['a sentence as target', { target: 'all of it' }, 'audit_log_target_form'],
    ['a sentence as code', { code: 'because I say so' }, 'audit_log_code_form'],
  ] as const)('has the database refuse %s', async (_what, change, constraint) => {
    await expect(recordAudit(db.database, { ...ENTRY, ...change })).rejects.toMatchObject({ constraint });
  });
});

describe('an entry, once written (AU-01)', () => {
  let before: Row[];
  beforeEach(async () => {
    before = await rows();
  });

  it.each([
    ['UPDATE', `UPDATE audit_log SET actor = 'nobody'`],
    ['DELETE', `DELETE FROM audit_log`],
    ['TRUNCATE', `TRUNCATE audit_log`],
  ])('refuses %s even to a superuser in replica mode', async (_what, text) => {
    for (const mode of ['origin', 'replica']) {
      await expect(db.query(`SET session_replication_role = ${mode}; ${text}`)).rejects.toMatchObject({
        code: '42501',
      });
    }
    expect(await rows()).toEqual(before);
  });
});
