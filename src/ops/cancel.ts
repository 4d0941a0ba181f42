import type { Command } from 'commander';
import { addPaymentCommand } from './api/api-command.js';
import type { Session } from './command.js';

/** `payments cancel`: stops a payment before its submission has started. */
export function addCancel(program: Command, session: Session): void {
  addPaymentCommand(program, session, {
    name: 'cancel',
    summary: 'Cancel a payment. Refused once submission has started; a repeat answers alike.',
    localKey: 'client',
  });
}
