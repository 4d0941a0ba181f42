import type { Command } from 'commander';
import { addPaymentCommand } from './api/api-command.js';
import { LOCAL_OPERATOR } from './api/api-target.js';
import type { Session } from './command.js';

/** `payments release`: a held payment runs again at its time, or at once when that has passed. */
export function addRelease(program: Command, session: Session): void {
  addPaymentCommand(program, session, {
    name: 'release',
    summary: 'Release a held payment: it runs at its time, or at once when that has passed.',
    localKey: LOCAL_OPERATOR,
  });
}
