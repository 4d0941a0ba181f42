import type { Command } from 'commander';
import { addPaymentCommand } from './api/api-command.js';
import { LOCAL_OPERATOR } from './api/api-target.js';
import type { Session } from './command.js';

/** `payments escalate`: an open outcome is handed to people. */
export function addEscalate(program: Command, session: Session): void {
  addPaymentCommand(program, session, {
    name: 'escalate',
    summary: 'Hand a submitted or unknown payment to people: opens a review, decides nothing.',
    localKey: LOCAL_OPERATOR,
  });
}
