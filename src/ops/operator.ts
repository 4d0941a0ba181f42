import { userInfo } from 'node:os';
import type { Terminal } from './terminal.js';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * Who runs a command on the service, for the audit log: `operator:<user of this machine>`, and under sudo
 * whoever called it. The machine vouches for it as far as its log-in does.
 */
export function operatorActor(terminal: Terminal): string {
  const user = terminal.env['SUDO_USER'] ?? userInfo().username;
  return `operator:${NAME.test(user) ? user : 'unnamed'}`;
}
