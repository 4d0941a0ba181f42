import { describe, expect, it } from 'vitest';
import { payments } from '../../support/command-line.js';

const COMMANDS = [
  ...['create', 'get', 'list', 'history', 'cancel', 'reschedule', 'hold', 'release', 'escalate'],
  ...['resolve', 'approve', 'token'],
  ...['lanes', 'webhooks', 'invariants', 'keys', 'people', 'doctor', 'migrate', 'seed-local'],
];
const ID = `pay_${'a2'.repeat(16)}`;

describe('the payments program', () => {
  it('lists every command and the exit codes', async () => {
    const { exitCode, out } = await payments(['--help']);
    expect(exitCode).toBe(0);
    for (const command of COMMANDS) expect(out).toMatch(new RegExp(`^ {2}${command} `, 'm'));
    expect(out).toContain('Exit codes: 0 done, 1 refused or failed, 2 wrong usage');
  });

  it.each(COMMANDS)('%s shows an example in its help and takes --json', async (command) => {
    const { exitCode, out } = await payments([command, '--help']);
    expect(exitCode).toBe(0);
    expect(out).toMatch(new RegExp(`Example:\n {2}\\$ payments ${command}`));
    expect(out).toContain('--json');
  });

  it.each([
    ['an unknown command', ['pay']],
    ['an unknown option', ['get', ID, '--force']],
    ['no payment', ['cancel']],
    ['a text that is no payment id', ['cancel', '../../v1/lanes']],
    ['a version that is no number', ['cancel', ID, '--if-version', '0']],
    ['a reschedule without a version', ['reschedule', ID, '--in', '1h']],
    ['no amount', ['create', '--currency', 'EUR', '--destination', 'a', '--in', '1h']],
    [
      'an amount with a fraction (AM-02)',
      ['create', '--amount', '19.99', '--currency', 'EUR', '--destination', 'a'],
    ],
    ['a limit that is no number', ['invariants', '--limit-seconds', 'x']],
    ['a key without a role', ['keys', 'create', '--tenant', 't', '--name', 'n']],
    ['a role of people for a key', ['keys', 'create', '--tenant', 't', '--name', 'n', '--role', 'operator']],
    [
      'a key for more than a year',
      ['keys', 'create', '--tenant', 't', '--name', 'n', '--role', 'client', '--life-days', '366'],
    ],
    ['a person to revoke without a reason', ['people', 'revoke', '--subject', 'ada']],
    ['a reason in free text', ['people', 'revoke', '--subject', 'ada', '--reason', 'She left.']],
    ['an actor for a subject', ['people', 'revoke', '--subject', 'person:ada', '--reason', 'left']],
    ['a subject of two lines', ['people', 'restore', '--subject', 'ada\nbob']],
    ['a text that is no id of a key', ['keys', 'revoke', `ps_test_${'a'.repeat(12)}_secret`]],
  ])('answers 2 to %s and says what is wrong', async (_what, args) => {
    const { exitCode, out, err } = await payments(args);
    expect(exitCode).toBe(2);
    expect(out).toBe('');
    expect(err).toMatch(/^error: .+/);
  });

  it.each([
    ['invariants', 'PAYMENTS_READ_DATABASE_URL'],
    ['migrate', 'PAYMENTS_OWNER_DATABASE_URL'],
    ['seed-local', 'PAYMENTS_DATABASE_URL'],
  ])('%s answers 2 without a database', async (command, variable) => {
    const { exitCode, err } = await payments([command]);
    expect(exitCode).toBe(2);
    expect(err).toContain(variable);
  });
});
