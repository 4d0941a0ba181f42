import type { Command } from 'commander';
import { callApi, type ApiCall } from './api/api-client.js';
import { addApiCommand, type ApiCommandOptions } from './api/api-command.js';
import { apiTarget, LOCAL_OPERATOR } from './api/api-target.js';
import { act, type Session } from './command.js';
import { rowsTable } from './table.js';

/** A lane as the API shows it; the members that a table shows. */
interface Lane {
  readonly provider: string;
  readonly account: string;
  readonly rate_per_second: number;
  readonly tokens: number;
  readonly burst: number;
  readonly paused: {
    readonly reason: string | null;
    readonly since: string | null;
    readonly by: string | null;
  } | null;
  readonly breaker: {
    readonly state: string;
    readonly reason: string | null;
    readonly opened_at: string | null;
    readonly next_probe_at: string | null;
  };
  readonly waiting_until: string | null;
  readonly is_probing: boolean;
  readonly backlog: number;
  readonly oldest_due_at: string | null;
  readonly backlog_ends_at: string | null;
}
interface Lanes {
  readonly data: readonly Lane[];
}

interface ChangeOptions extends ApiCommandOptions {
  readonly account?: string;
  readonly reason?: string;
}

/** `payments lanes`: what keeps payments back at their providers; pauses and resumes it. */
export function addLanes(program: Command, session: Session): void {
  const lanes = program
    .command('lanes')
    .description('Show the lanes of the providers, pause and resume them. Without a word after it: list.')
    .addHelpText(
      'after',
      '\nEach of them takes --json.\n\nExample:\n  $ payments lanes pause stripe --reason "wrong account"',
    );
  addListLanes(lanes, session);
  addChange(lanes, session, {
    name: 'pause',
    summary: 'Send nothing new to a provider until it is resumed. Lookups go on; a repeat changes nothing.',
    example: 'lanes pause stripe --reason "the provider asked us to stop until noon"',
  });
  addChange(lanes, session, {
    name: 'resume',
    summary: 'End the pause of a provider. A repeat changes nothing.',
    example: 'lanes resume stripe',
  });
}

function addListLanes(lanes: Command, session: Session): void {
  const command = addApiCommand(lanes, {
    name: 'list',
    isDefault: true,
    summary: 'Show every lane: budget, pause, breaker, what is due and when it is expected to be sent.',
    example: 'lanes list',
  });
  act(command, session, (options: ApiCommandOptions) =>
    ask(session, options, { method: 'GET', path: '/v1/lanes' }),
  );
}

function addChange(
  lanes: Command,
  session: Session,
  of: { readonly name: 'pause' | 'resume'; readonly summary: string; readonly example: string },
): void {
  const command = addApiCommand(lanes, of)
    .argument('<provider>', 'name of the provider')
    .option('--account <account>', 'only this account of it; absent: all');
  if (of.name === 'pause')
    command.requiredOption('--reason <text>', 'why, for whoever finds it paused; nothing secret');
  act(command, session, (provider: string, { account, reason, ...options }: ChangeOptions) =>
    ask(session, options, {
      method: 'POST',
      path: `/v1/lanes/${encodeURIComponent(provider)}/${of.name}`,
      body: { reason, account },
    }),
  );
}

async function ask(session: Session, options: ApiCommandOptions, call: ApiCall): Promise<0> {
  const { body } = await callApi<Lanes>(apiTarget(session.terminal, options, LOCAL_OPERATOR), call);
  session.terminal.out(options.json ? JSON.stringify(body) : lanesText(body));
  return 0;
}

function lanesText({ data }: Lanes): string {
  if (data.length === 0) return 'No lanes: no API or worker with a provider has run on this database.';
  return rowsTable(
    ['lane', 'state', 'rate/s', 'tokens', 'backlog', 'oldest due', 'expected end'],
    data.map((lane) => [
      `${lane.provider}/${lane.account}`,
      stateText(lane),
      String(lane.rate_per_second),
      `${lane.tokens} of ${lane.burst}`,
      String(lane.backlog),
      lane.oldest_due_at ?? '',
      lane.backlog_ends_at ?? (lane.backlog > 0 ? 'when it is resumed' : ''),
    ]),
  );
}

/** What keeps the lane back, the strongest first, each on a line of its own. */
function stateText({ paused, breaker, waiting_until: waitingUntil, is_probing: isProbing }: Lane): string {
  const lines: string[] = [];
  if (paused) lines.push(`paused since ${paused.since} by ${paused.by}: ${paused.reason}`);
  if (breaker.state !== 'closed') {
    lines.push(`breaker ${breaker.state} since ${breaker.opened_at} (${breaker.reason})`);
    if (!isProbing) lines.push(`next probe ${breaker.next_probe_at}`);
  }
  if (waitingUntil !== null) lines.push(`too many calls: waits until ${waitingUntil}`);
  if (isProbing) lines.push('a probe is under way');
  return lines.length === 0 ? 'open' : lines.join('\n');
}
