import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADVISORY_LOCKS } from '../../src/persistence/advisory-locks.js';
import { payments, type Ran } from '../support/command-line.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createTestDatabase();
});
afterAll(() => db.drop());

const people = (...args: string[]): Promise<Ran> =>
  payments(['people', ...args], {
    PAYMENTS_ADMIN_DATABASE_URL: db.urlOf('payments_admin'),
    SUDO_USER: 'ada',
  });
const revoke = (subject: string, reason = 'left_company', ...more: string[]): Promise<Ran> =>
  people('revoke', '--subject', subject, '--reason', reason, ...more);
const revoked = () => db.query(`SELECT subject, revoked_by, reason FROM revoked_person ORDER BY subject`);
const audit = (target: string) =>
  db.query(
    `SELECT tenant_id, actor, db_role, action, code, detail FROM audit_log WHERE target = $1 ORDER BY id`,
    [target],
  );

describe('payments people', () => {
  it('revokes a person, tells it once, and keeps the first reason when it is repeated', async () => {
    const first = await revoke('auth0|5f7c+x');
    expect([first.exitCode, first.out]).toEqual([
      0,
      'auth0|5f7c+x is revoked: no token is taken any more, 0 open proposals are void.\n',
    ]);
    expect(JSON.parse(first.err)).toMatchObject({ event: 'person_revoked', code: 'left_company' });
    expect(first.err).not.toContain('5f7c');
    const again = await revoke('auth0|5f7c+x', 'suspected', '--json');
    expect([again.exitCode, again.json(), again.err]).toEqual([
      0,
      { subject: 'auth0|5f7c+x', result: 'repeated', proposals_voided: 0 },
      '',
    ]);
    expect(await revoked()).toContainEqual({
      ...{ subject: 'auth0|5f7c+x', revoked_by: 'operator:ada', reason: 'left_company' },
    });
    expect(await audit('auth0|5f7c+x')).toEqual([
      {
        ...{ tenant_id: null, actor: 'operator:ada', db_role: 'payments_admin', action: 'person_revoked' },
        ...{ code: 'left_company', detail: '{"proposals_voided":0}' },
      },
    ]);
  });

  it('restores a person, and says when there was nothing to restore', async () => {
    await revoke('grace');
    const ran = await people('restore', '--subject', 'grace');
    expect([ran.exitCode, ran.out]).toEqual([0, 'Tokens of grace are taken again.\n']);
    expect(JSON.parse(ran.err)).toMatchObject({ event: 'person_restored' });
    const again = await people('restore', '--subject', 'grace', '--json');
    expect([again.exitCode, again.json(), again.err]).toEqual([
      0,
      { subject: 'grace', was_revoked: false },
      '',
    ]);
    expect((await revoked()).map((row) => row['subject'])).not.toContain('grace');
    expect((await audit('grace')).map((row) => row['action'])).toEqual(['person_revoked', 'person_restored']);
    expect((await revoke('grace', 'suspected', '--json')).json()).toMatchObject({ result: 'revoked' });
  });

  it('lists who is revoked, the newest first', async () => {
    await db.query('DELETE FROM revoked_person');
    expect((await people()).out).toBe('Nobody is revoked.\n');
    await revoke('older');
    await revoke('newer', 'device_lost');
    const { people: found, has_more: hasMore } = (await people('list', '--json')).json() as {
      people: Record<string, string>[];
      has_more: boolean;
    };
    expect(found.map((row) => [row['subject'], row['reason']])).toEqual([
      ['newer', 'device_lost'],
      ['older', 'left_company'],
    ]);
    expect([hasMore, found[0]?.['revoked_at']]).toEqual([
      false,
      expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    ]);
    const table = (await people('list')).out;
    for (const word of ['subject', 'newer', 'operator:ada', 'device_lost']) expect(table).toContain(word);
  });

  it('changes nothing and answers 2 while somebody decides and does not come to an end', async () => {
    const decider = new pg.Client({ connectionString: db.url });
    await decider.connect();
    try {
      await decider.query(`BEGIN; SELECT pg_advisory_xact_lock_shared(${ADVISORY_LOCKS.revokePeople})`);
      const ran = await revoke('mary');
      expect([ran.exitCode, ran.out, ran.err]).toEqual([
        2,
        '',
        expect.stringContaining('Nothing was changed'),
      ]);
    } finally {
      await decider.end();
    }
    expect(await audit('mary')).toEqual([]);
    expect((await revoke('mary')).exitCode).toBe(0);
  });

  it('needs the database of payments_admin: 2 without it', async () => {
    const ran = await payments(['people', 'list'], { PAYMENTS_DATABASE_URL: db.urlOf('payments_worker') });
    expect([ran.exitCode, ran.err]).toEqual([2, expect.stringContaining('PAYMENTS_ADMIN_DATABASE_URL')]);
  });
});
