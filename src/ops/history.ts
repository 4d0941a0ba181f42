import type { Command } from 'commander';
import { callApi } from './api/api-client.js';
import { addApiCommand, paymentIdArgument, type ApiCommandOptions } from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import { act, type Session } from './command.js';
import { rowsTable } from './table.js';

/** One entry of the history; members beside `kind` and `at` depend on the kind. */
interface Entry {
  readonly kind: string;
  readonly at: string;
  readonly [member: string]: unknown;
}

interface History {
  readonly payment_id: string;
  readonly data: readonly Entry[];
  readonly has_more: boolean;
}

/** `payments history`: everything that happened to one payment, oldest first. */
export function addHistory(program: Command, session: Session): void {
  const command = addApiCommand(program, {
    name: 'history',
    summary: 'Show every transition, attempt and piece of evidence of a payment, oldest first.',
    example: 'history pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk',
  }).argument('<payment>', 'id of the payment', paymentIdArgument);
  act(command, session, async (id: string, options: ApiCommandOptions) => {
    const target = apiTarget(session.terminal, options, 'client');
    const { body } = await callApi<History>(target, { method: 'GET', path: `/v1/payments/${id}/history` });
    session.terminal.out(options.json ? JSON.stringify(body) : historyText(body));
    return 0;
  });
}

function historyText(history: History): string {
  const rows = history.data.map((entry) => [entry.at, entry.kind, whatOf(entry), byOf(entry)]);
  const table = rowsTable(['at', 'kind', 'what', 'by'], rows);
  return history.has_more ? `${table}\nThere is more than this answer holds.` : table;
}

const known = (...parts: readonly unknown[]): string =>
  parts.filter((part) => part !== null && part !== undefined && part !== '').join(' ');

function whatOf(entry: Entry): string {
  switch (entry.kind) {
    case 'transition':
      return `${known(entry['from'] ?? '(none)')} → ${known(entry['to'])} by ${known(entry['cause'])}`;
    case 'attempt': {
      const end = entry['closed_at'] === null ? 'open' : known(entry['evidence'], entry['code']);
      return `${known(entry['phase'])} ${known(entry['generation'])}/${known(entry['attempt'])}: ${end}`;
    }
    default:
      return known(
        entry['evidence'],
        entry['status'],
        entry['code'],
        entry['observed_amount'],
        entry['observed_currency'],
      );
  }
}

function byOf(entry: Entry): string {
  return known(entry['actor'] ?? entry['source'] ?? entry['provider_ref']);
}
