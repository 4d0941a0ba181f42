import type { Command } from 'commander';
import { callApi } from './api/api-client.js';
import { addApiCommand, type ApiCommandOptions } from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import { moneyText, type Payment } from './api/payment-table.js';
import { act, type Session } from './command.js';
import { rowsTable } from './table.js';

interface Options extends ApiCommandOptions {
  readonly limit?: string;
  readonly cursor?: string;
  readonly state?: string;
  readonly currency?: string;
  readonly provider?: string;
  readonly reference?: string;
  readonly executeAtFrom?: string;
  readonly executeAtBefore?: string;
  readonly createdAtFrom?: string;
  readonly createdAtBefore?: string;
}

interface Page {
  readonly data: readonly Payment[];
  readonly next_cursor: string | null;
}

/** `payments list`: payments of the tenant, newest first, a page at a time. */
export function addList(program: Command, session: Session): void {
  const command = addApiCommand(program, {
    name: 'list',
    summary: 'List payments, newest first, a page at a time.',
    example: 'list --state unknown --limit 50',
  })
    .option('--limit <n>', 'payments per page, 1 to 100')
    .option('--cursor <cursor>', 'where the page before ended; with the same filters')
    .option('--state <state>', 'only this state')
    .option('--currency <code>', 'only this currency')
    .option('--provider <name>', 'only this provider')
    .option('--reference <text>', 'only this reference')
    .option('--execute-at-from <time>', 'due at or after')
    .option('--execute-at-before <time>', 'due before')
    .option('--created-at-from <time>', 'created at or after')
    .option('--created-at-before <time>', 'created before');
  act(command, session, async (options: Options) => {
    const { body } = await callApi<Page>(apiTarget(session.terminal, options, 'client'), {
      method: 'GET',
      path: '/v1/payments',
      query: queryOf(options),
    });
    session.terminal.out(options.json ? JSON.stringify(body) : pageText(body));
    return 0;
  });
}

function queryOf(options: Options): Readonly<Record<string, string | undefined>> {
  return {
    limit: options.limit,
    cursor: options.cursor,
    state: options.state,
    currency: options.currency,
    provider: options.provider,
    reference: options.reference,
    execute_at_from: options.executeAtFrom,
    execute_at_before: options.executeAtBefore,
    created_at_from: options.createdAtFrom,
    created_at_before: options.createdAtBefore,
  };
}

function pageText(page: Page): string {
  if (page.data.length === 0) return 'No payments.';
  const table = rowsTable(
    ['id', 'state', 'amount', 'execute at', 'reference'],
    page.data.map((p) => [p.id, p.state, moneyText(p), p.execute_at, p.reference ?? '']),
  );
  return page.next_cursor === null ? table : `${table}\nMore: --cursor ${page.next_cursor}`;
}
