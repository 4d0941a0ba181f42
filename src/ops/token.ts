import type { Command } from 'commander';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { signTokenFor } from './local-people.js';
import { readLocalStack } from './local-stack.js';
import { CommandFailure } from './terminal.js';

/** `payments token`: an access token of the local stack's own issuer. */
export function addToken(program: Command, session: Session): void {
  const command = addCommand(program, {
    name: 'token',
    summary: 'Sign a token for a person of the local stack: development only, valid for ten minutes.',
    example: 'token --as operator-1',
  }).requiredOption('--as <person>', 'operator-1, operator-2, approver-1 or auditor-1');
  act(command, session, (options: CommonOptions & { readonly as: string }) => {
    const stack = readLocalStack(session.terminal);
    if (stack === null) throw new CommandFailure(2, 'There is no local stack. Run npm start.');
    const token = signTokenFor(session.terminal, stack, options.as);
    session.terminal.out(options.json ? JSON.stringify({ token }) : token);
    return Promise.resolve(0);
  });
}
