import { InvalidArgumentError, type Command } from 'commander';
import { Listr } from 'listr2';
import { checkInvariant, type InvariantResult } from '../invariants/check-invariants.js';
import { INVARIANTS } from '../invariants/invariants.js';
import { Database } from '../persistence/database.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { databaseUrl } from './environment.js';
import { rowsTable } from './table.js';
import type { ExitCode, Terminal } from './terminal.js';

interface Options extends CommonOptions {
  readonly limitSeconds: number;
}

/** A nightly look at everything may take this long per invariant (s). */
const LIMIT_SECONDS = 300;
/** The driver waits a little longer than the server, so that the server's word is heard (ms). */
const DRIVER_MARGIN_MS = 5_000;
/** Ids shown to a person; `--json` shows up to 100. */
const IDS_SHOWN = 3;

/** `payments invariants`: checks everything once; 0 holds, 1 broken, 2 could not check. */
export function addInvariants(program: Command, session: Session): void {
  const command = addCommand(program, {
    name: 'invariants',
    summary: 'Check every invariant on all payments. Exit code 0: all hold, 1: broken, 2: could not check.',
    example: 'invariants --limit-seconds 600',
  }).option('--limit-seconds <n>', 'longest time of one check', positive, LIMIT_SECONDS);
  act(command, session, async (options: Options) => {
    const results = await check(session.terminal, options);
    session.terminal.out(options.json ? JSON.stringify(asJson(results)) : asTable(results));
    return verdictOf(results);
  });
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 86_400)) throw new InvalidArgumentError('a number of seconds, at most a day');
  return value;
}

async function check(terminal: Terminal, options: Options): Promise<readonly InvariantResult[]> {
  const limitMs = options.limitSeconds * 1_000;
  const database = new Database({
    url: databaseUrl(terminal, 'PAYMENTS_READ_DATABASE_URL'),
    poolSize: 1,
    applicationName: 'payments-ops',
    queryMs: limitMs + DRIVER_MARGIN_MS,
  });
  const results: InvariantResult[] = [];
  const tasks = INVARIANTS.map((invariant) => ({
    title: `${invariant.id} ${invariant.title}`,
    task: async () => {
      results.push(await checkInvariant(database, invariant, { since: null, limitMs }));
    },
  }));
  const renderer = terminal.isInteractive && !options.json ? 'default' : 'silent';
  try {
    await new Listr(tasks, { renderer }).run();
  } finally {
    await database.close();
  }
  return results;
}

/** A breach that was found outweighs a check that could not run. */
function verdictOf(results: readonly InvariantResult[]): ExitCode {
  if (results.some((result) => result.kind === 'checked' && result.count > 0)) return 1;
  return results.some((result) => result.kind === 'unchecked') ? 2 : 0;
}

function asTable(results: readonly InvariantResult[]): string {
  const rows = results.map((result) => [String(result.id), result.title, verdictText(result)]);
  return rowsTable(['id', 'invariant', 'violations'], rows);
}

function verdictText(result: InvariantResult): string {
  if (result.kind === 'unchecked') {
    return result.code === 'timeout' ? 'NOT CHECKED: too slow' : 'NOT CHECKED: Postgres did not answer it';
  }
  if (result.count === 0) return '0';
  const shown = result.ids.slice(0, IDS_SHOWN).join('\n');
  return `${result.count}\n${shown}${result.count > IDS_SHOWN ? '\n…' : ''}`;
}

function asJson(results: readonly InvariantResult[]): object {
  return {
    invariants: results.map((result) =>
      result.kind === 'checked'
        ? { id: result.id, title: result.title, violations: result.count, payment_ids: result.ids }
        : { id: result.id, title: result.title, violations: null, not_checked: result.code },
    ),
  };
}
