import { InvalidArgumentError, type Command } from 'commander';
import { callApi, type ApiCall } from './api/api-client.js';
import { addApiCommand, type ApiCommandOptions } from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import { act, type CommandText, type Session } from './command.js';
import { factsTable, rowsTable } from './table.js';
import { CommandFailure } from './terminal.js';

/** An endpoint as the API shows it; the members that a table shows. */
interface Endpoint {
  readonly id: string;
  readonly url: string;
  readonly description: string | null;
  readonly event_types: readonly string[] | null;
  readonly status: string;
  readonly status_reason: string | null;
  readonly failing_since: string | null;
  readonly previous_secret_until: string | null;
  readonly replaying_from: string | null;
  /** Only where it was made. */
  readonly secret?: string;
}
interface Delivery {
  readonly event_id: string;
  readonly type: string;
  readonly occurred_at: string;
  readonly result: string;
  readonly tries: number;
  readonly last_code: string | null;
  readonly last_http_status: number | null;
  readonly next_try_at: string | null;
}

const PATH = '/v1/webhook-endpoints';

/** `payments webhooks`: where a tenant hears of its payments, and what arrived there. */
export function addWebhooks(program: Command, session: Session): void {
  const webhooks = program
    .command('webhooks')
    .description(
      'Endpoints that are told of payments, and what was delivered. Without a word after it: list.',
    )
    .addHelpText(
      'after',
      '\nEach of them takes --json.\n\nExample:\n  $ payments webhooks create https://hooks.example.com/payments',
    );
  addList(webhooks, session);
  addCreateEndpoint(webhooks, session);
  for (const { name, summary } of CHANGES) {
    const command = onEndpoint(webhooks, { name, summary });
    act(command, session, (id: string, options: ApiCommandOptions) =>
      showEndpoint(session, options, { method: 'POST', path: `${PATH}/${id}/${name}` }),
    );
  }
  addRotate(webhooks, session);
  addDeliveries(webhooks, session);
  addResend(webhooks, session);
  addDelete(webhooks, session);
}

const CHANGES = [
  { name: 'disable', summary: 'Send nothing there until it is enabled. A repeat changes nothing.' },
  {
    name: 'enable',
    summary: 'Send events there again, what waited for it first. Then use resend for what it missed.',
  },
] as const;

function endpointArgument(text: string): string {
  if (/^whe_[0-9a-f]{32}$/.test(text)) return text;
  throw new InvalidArgumentError('An endpoint id is whe_ and 32 characters.');
}

function onEndpoint(webhooks: Command, of: Omit<CommandText, 'example'>): Command {
  return addApiCommand(webhooks, {
    ...of,
    example: `webhooks ${of.name} whe_019b1f0a00007000800000000000abcd`,
  }).argument('<endpoint>', 'id of the endpoint', endpointArgument);
}

function addList(webhooks: Command, session: Session): void {
  const command = addApiCommand(webhooks, {
    name: 'list',
    isDefault: true,
    summary: 'Show the endpoints, without their secrets.',
    example: 'webhooks list',
  });
  act(command, session, async (options: ApiCommandOptions) => {
    const body = await ask<{ readonly data: readonly Endpoint[] }>(session, options, {
      method: 'GET',
      path: PATH,
    });
    session.terminal.out(options.json ? JSON.stringify(body) : endpointsText(body.data));
    return 0;
  });
}

function endpointsText(endpoints: readonly Endpoint[]): string {
  if (endpoints.length === 0) return 'No endpoints: nobody is told of payments.';
  return rowsTable(
    ['endpoint', 'url', 'events', 'status'],
    endpoints.map((each) => [each.id, each.url, each.event_types?.join('\n') ?? 'all', statusText(each)]),
  );
}

function statusText(each: Endpoint): string {
  const lines = [each.status_reason === null ? each.status : `${each.status} (${each.status_reason})`];
  if (each.failing_since !== null) lines.push(`nothing arrives since ${each.failing_since}`);
  if (each.replaying_from !== null) lines.push(`a replay has come to ${each.replaying_from}`);
  return lines.join('\n');
}

interface CreateOptions extends ApiCommandOptions {
  readonly event?: readonly string[];
  readonly description?: string;
}

function addCreateEndpoint(webhooks: Command, session: Session): void {
  const command = addApiCommand(webhooks, {
    name: 'create',
    summary: 'Add an endpoint. Its signing secret is shown this once; a repeat makes another endpoint.',
    example: 'webhooks create https://hooks.example.com/payments --event payment.succeeded payment.failed',
  })
    .argument('<url>', 'https, a public host name')
    .option('--event <types...>', 'only these types; absent: all')
    .option('--description <text>', 'for people; nothing secret');
  act(command, session, (url: string, { event, description, ...options }: CreateOptions) =>
    showEndpoint(session, options, {
      method: 'POST',
      path: PATH,
      body: { url, event_types: event, description },
    }),
  );
}

interface RotateOptions extends ApiCommandOptions {
  readonly previousForSeconds?: number;
}

function addRotate(webhooks: Command, session: Session): void {
  const command = onEndpoint(webhooks, {
    name: 'rotate-secret',
    summary: 'Replace the signing secret; the one before signs beside it for a day. Safe to repeat.',
  }).option('--previous-for-seconds <n>', 'how long the one before still signs; 0 after a leak', seconds);
  act(command, session, (id: string, { previousForSeconds, ...options }: RotateOptions) =>
    showEndpoint(session, options, {
      method: 'POST',
      path: `${PATH}/${id}/rotate-secret`,
      body: { previous_expires_in_seconds: previousForSeconds },
    }),
  );
}

function seconds(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('A whole number of seconds, at most a week.');
}

interface DeliveriesOptions extends ApiCommandOptions {
  readonly result?: string;
  readonly limit?: string;
  readonly cursor?: string;
}

function addDeliveries(webhooks: Command, session: Session): void {
  const command = onEndpoint(webhooks, {
    name: 'deliveries',
    summary: 'Show what was delivered to an endpoint, newest first: codes and times.',
  })
    .option('--result <result>', 'pending, delivered or given_up')
    .option('--limit <n>', 'entries, 1 to 100')
    .option('--cursor <cursor>', 'where the page before ended');
  act(command, session, async (id: string, { result, limit, cursor, ...options }: DeliveriesOptions) => {
    const body = await ask<{ readonly data: readonly Delivery[]; readonly next_cursor: string | null }>(
      session,
      options,
      { method: 'GET', path: `${PATH}/${id}/deliveries`, query: { result, limit, cursor } },
    );
    session.terminal.out(options.json ? JSON.stringify(body) : deliveriesText(body.data));
    if (!options.json && body.next_cursor !== null)
      session.terminal.err(`More: --cursor ${body.next_cursor}`);
    return 0;
  });
}

function deliveriesText(deliveries: readonly Delivery[]): string {
  if (deliveries.length === 0) return 'Nothing was queued for this endpoint.';
  return rowsTable(
    ['event', 'type', 'occurred', 'result', 'tries', 'last try', 'next try'],
    deliveries.map((each) => [
      each.event_id,
      each.type,
      each.occurred_at,
      each.result,
      String(each.tries),
      [each.last_code, each.last_http_status].filter((part) => part !== null).join(' '),
      each.next_try_at ?? '',
    ]),
  );
}

interface ResendOptions extends ApiCommandOptions {
  readonly since?: string;
  readonly event?: string;
}

function addResend(webhooks: Command, session: Session): void {
  const command = onEndpoint(webhooks, {
    name: 'resend',
    summary: 'Send again what did not arrive since a time, or one event whether it arrived or not.',
  })
    .option('--since <time>', 'RFC 3339, at most 30 days back')
    .option('--event <id>', 'id of one event');
  act(command, session, async (id: string, { since, event, ...options }: ResendOptions) => {
    if ((since === undefined) === (event === undefined)) {
      throw new CommandFailure(2, 'Give either --since or --event.');
    }
    if (event === undefined) {
      return showEndpoint(session, options, {
        method: 'POST',
        path: `${PATH}/${id}/resend`,
        body: { since },
      });
    }
    const path = `${PATH}/${id}/deliveries/${encodeURIComponent(event)}/resend`;
    await ask(session, options, { method: 'POST', path });
    session.terminal.out(options.json ? JSON.stringify({ queued: event }) : `${event} is queued.`);
    return 0;
  });
}

function addDelete(webhooks: Command, session: Session): void {
  const command = onEndpoint(webhooks, {
    name: 'delete',
    summary: 'Forget an endpoint, its secrets, its log and what waits for it.',
  });
  act(command, session, async (id: string, options: ApiCommandOptions) => {
    await ask(session, options, { method: 'DELETE', path: `${PATH}/${id}` });
    session.terminal.out(options.json ? JSON.stringify({ deleted: id }) : `${id} is deleted.`);
    return 0;
  });
}

async function ask<T>(session: Session, options: ApiCommandOptions, call: ApiCall): Promise<T> {
  return (await callApi<T>(apiTarget(session.terminal, options, 'client'), call)).body;
}

async function showEndpoint(session: Session, options: ApiCommandOptions, call: ApiCall): Promise<0> {
  const body = await ask<Endpoint>(session, options, call);
  const facts = factsTable([
    ['endpoint', body.id],
    ['url', body.url],
    ['description', body.description],
    ['events', body.event_types?.join('\n') ?? 'all'],
    ['status', statusText(body)],
    ['previous secret until', body.previous_secret_until],
    ['secret, shown only now', body.secret ?? null],
  ]);
  session.terminal.out(options.json ? JSON.stringify(body) : facts);
  return 0;
}
