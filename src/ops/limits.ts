import { InvalidArgumentError, Option, type Command } from 'commander';
import { recordAudit } from '../audit/audit-log.js';
import { LIMIT_SUBJECTS, type LimitSubject } from '../rate-limits/rate-limit.js';
import {
  listRateLimits,
  MOST_BURST,
  MOST_RATE_PER_SECOND,
  resetRateLimit,
  setRateLimit,
  type RateLimitSetting,
} from '../rate-limits/rate-limit-settings.js';
import { asAdmin } from './admin-database.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { operatorActor } from './operator.js';
import { rowsTable } from './table.js';
import { CommandFailure } from './terminal.js';

interface Of {
  readonly tenant: string;
  readonly subject: LimitSubject;
}

/** `payments limits`: how fast the clients of a tenant may call, where the default does not fit. */
export function addLimits(program: Command, session: Session): void {
  const limits = program
    .command('limits')
    .description('Show, set and reset how fast a tenant may call. Without a word after it: list.')
    .addHelpText(
      'after',
      '\nEach of them takes --json. Runs as payments_admin: PAYMENTS_ADMIN_DATABASE_URL, else the local stack. Tenants ' +
        'without a limit of their own have PAYMENTS_RATE_LIMIT_CLIENT and PAYMENTS_RATE_LIMIT_TENANT.\n\n' +
        'Example:\n  $ payments limits set --tenant shop --subject client --rate 200 --burst 400',
    );
  addListLimits(limits, session);
  addSetLimit(limits, session);
  addResetLimit(limits, session);
}

function addListLimits(limits: Command, session: Session): void {
  const command = addCommand(limits, {
    name: 'list',
    isDefault: true,
    summary: 'List the limits that tenants have of their own, at most 1,000.',
    example: 'limits list --tenant shop',
  }).option('--tenant <id>', 'only of this tenant');
  act(command, session, async ({ json, tenant }: CommonOptions & { readonly tenant?: string }) => {
    const settings = await asAdmin(session.terminal, (tx) => listRateLimits(tx, tenant ?? null));
    session.terminal.out(json ? JSON.stringify({ limits: settings.map(asJson) }) : asTable(settings));
    return 0;
  });
}

function addSetLimit(limits: Command, session: Session): void {
  const command = ofSubject(
    addCommand(limits, {
      name: 'set',
      summary: 'Give a tenant a limit of its own. Every process follows it within a second or two.',
      example: 'limits set --tenant shop --subject tenant --rate 500 --burst 1000',
    }),
  )
    .requiredOption(
      '--rate <n>',
      'requests per second, for as long as they come',
      number(MOST_RATE_PER_SECOND),
    )
    .requiredOption('--burst <n>', 'requests that may come at once after a rest', whole(MOST_BURST));
  interface Options extends CommonOptions, Of {
    readonly rate: number;
    readonly burst: number;
  }
  act(command, session, async ({ json, tenant, subject, rate, burst }: Options) => {
    const limit = { tenantId: tenant, subject, ratePerSecond: rate, burst };
    await asAdmin(session.terminal, async (tx) => {
      if (!(await setRateLimit(tx, limit))) throw new CommandFailure(1, `There is no tenant ${tenant}.`);
      await recordAudit(tx, {
        tenantId: tenant,
        actor: operatorActor(session.terminal),
        action: 'limits_changed',
        target: tenant,
        detail: { subject, rate_per_second: rate, burst },
      });
    });
    const said = { tenant_id: tenant, subject, rate_per_second: rate, burst };
    session.terminal.out(json ? JSON.stringify(said) : `${tenant}: ${subject} ${rate}/s, burst ${burst}.`);
    return 0;
  });
}

function addResetLimit(limits: Command, session: Session): void {
  const command = ofSubject(
    addCommand(limits, {
      name: 'reset',
      summary:
        'Take a limit of its own away from a tenant: the default counts again. A repeat changes nothing.',
      example: 'limits reset --tenant shop --subject client',
    }),
  );
  act(command, session, async ({ json, tenant, subject }: CommonOptions & Of) => {
    const isReset = await asAdmin(session.terminal, async (tx) => {
      if (!(await resetRateLimit(tx, tenant, subject))) return false;
      await recordAudit(tx, {
        tenantId: tenant,
        actor: operatorActor(session.terminal),
        action: 'limits_changed',
        target: tenant,
        detail: { subject, rate_per_second: null, burst: null },
      });
      return true;
    });
    if (json) session.terminal.out(JSON.stringify({ tenant_id: tenant, subject, was_set: isReset }));
    else session.terminal.out(isReset ? 'The default counts again.' : 'It had no limit of its own.');
    return 0;
  });
}

function ofSubject(command: Command): Command {
  return command
    .requiredOption('--tenant <id>', 'whose limit')
    .addOption(
      new Option('--subject <name>', 'client: each credential by itself; tenant: all of them together')
        .choices(LIMIT_SUBJECTS)
        .makeOptionMandatory(),
    );
}

const number =
  (most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= most) return value;
    throw new InvalidArgumentError(`a number above 0 and at most ${most}`);
  };

const whole =
  (most: number) =>
  (text: string): number => {
    if (/^[1-9]\d{0,9}$/.test(text) && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`a whole number from 1 to ${most}`);
  };

function asTable(settings: readonly RateLimitSetting[]): string {
  if (settings.length === 0) return 'No tenant has a limit of its own: the defaults count.';
  return rowsTable(
    ['tenant', 'subject', 'rate/s', 'burst', 'changed'],
    settings.map((s) => [s.tenantId, s.subject, String(s.ratePerSecond), String(s.burst), s.changedAt]),
  );
}

function asJson({ tenantId, subject, ratePerSecond, burst, changedAt }: RateLimitSetting): object {
  return { tenant_id: tenantId, subject, rate_per_second: ratePerSecond, burst, changed_at: changedAt };
}
