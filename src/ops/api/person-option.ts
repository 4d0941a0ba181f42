import type { Command } from 'commander';
import type { ApiCommandOptions } from './api-command.js';
import type { LocalKey } from './api-target.js';

export interface PersonOptions extends ApiCommandOptions {
  readonly as?: string;
}

/** `--as <person>`: whose token of the local stack is taken; elsewhere PAYMENTS_API_KEY holds one. */
export function addPersonOption(command: Command, usual: string): Command {
  return command.option('--as <person>', `in a local stack: who asks; absent: ${usual}`);
}

export function personKey(options: PersonOptions, usual: string): LocalKey {
  return { person: options.as ?? usual };
}
