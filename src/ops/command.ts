import { Command } from 'commander';
import { CommandFailure, type ExitCode, type Terminal } from './terminal.js';

/** What every command gets: the terminal, and how to end. */
export interface Session {
  readonly terminal: Terminal;
  exitCode: ExitCode;
}

export interface CommonOptions {
  readonly json?: boolean;
}

export interface CommandText {
  readonly name: string;
  readonly summary: string;
  readonly example: string;
  /** Runs when its parent is given no word. */
  readonly isDefault?: boolean;
}

/** Adds a sub-command with `--json` and an example in its help. */
export function addCommand(program: Command, of: CommandText): Command {
  return program
    .command(of.name, { isDefault: of.isDefault ?? false })
    .description(of.summary)
    .option('--json', 'print JSON for machines')
    .addHelpText('after', `\nExample:\n  $ payments ${of.example}`);
}

/**
 * Gives a command its work. The work prints its own answer and returns the exit code; a
 * CommandFailure is printed here: as JSON on standard output with `--json`, else on standard error.
 */
export function act<A extends unknown[]>(
  command: Command,
  session: Session,
  work: (...args: A) => Promise<ExitCode>,
): void {
  command.action(async (...args: unknown[]) => {
    try {
      session.exitCode = await work(...(args as A));
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      session.exitCode = error.exitCode;
      if (command.opts<CommonOptions>().json) session.terminal.out(JSON.stringify(error.body));
      else session.terminal.err(error.message);
    }
  });
}
