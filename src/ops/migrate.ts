import type { Command } from 'commander';
import { Listr } from 'listr2';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { databaseUrl, isUnreachable } from './environment.js';
import { CommandFailure } from './terminal.js';

/** `payments migrate`: brings the schema to this release; needs only PAYMENTS_OWNER_DATABASE_URL. */
export function addMigrate(program: Command, session: Session): void {
  const command = addCommand(program, {
    name: 'migrate',
    summary: 'Bring the database schema to this release. Safe to run twice, and by several at once.',
    example: 'migrate',
  });
  act(command, session, async (options: CommonOptions) => {
    const ran = await migrateWithProgress(
      databaseUrl(session.terminal, 'PAYMENTS_OWNER_DATABASE_URL'),
      session,
      options,
    );
    if (options.json) session.terminal.out(JSON.stringify({ ran }));
    else session.terminal.out(ran.length === 0 ? 'The schema is up to date.' : `Ran ${ran.join(', ')}.`);
    return 0;
  });
}

async function migrateWithProgress(
  url: string,
  session: Session,
  options: CommonOptions,
): Promise<readonly string[]> {
  // TypeORM is loaded only where it is needed: the other commands start in a fraction of its time.
  const { migrate } = await import('../persistence/migrate.js');
  let ran: readonly string[] = [];
  const tasks = new Listr(
    [{ title: 'Migrate the schema', task: async () => void (ran = await migrate(url)) }],
    { renderer: session.terminal.isInteractive && !options.json ? 'default' : 'silent' },
  );
  try {
    await tasks.run();
  } catch (error) {
    if (isUnreachable(error)) {
      throw new CommandFailure(2, `Postgres could not be asked: ${messageOf(error)}. Nothing was changed.`);
    }
    throw new CommandFailure(
      1,
      `The migration failed and was rolled back: ${messageOf(error)}. Migrations before it stay.`,
    );
  }
  return ran;
}

function messageOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  return String(message || code || error);
}
