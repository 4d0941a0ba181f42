import type { Command } from 'commander';
import { addPaymentCommand } from './api/api-command.js';
import { LOCAL_OPERATOR } from './api/api-target.js';
import type { Session } from './command.js';

/** `payments hold`: a scheduled payment does not run until it is released. */
export function addHold(program: Command, session: Session): void {
  addPaymentCommand(program, session, {
    name: 'hold',
    summary: 'Hold a scheduled payment: it does not run until it is released.',
    localKey: LOCAL_OPERATOR,
  });
}
