import type { Command } from 'commander';
import { wallMs } from '../platform/clock.js';
import {
  addApiCommand,
  movePayment,
  paymentIdArgument,
  printPayment,
  versionArgument,
  type ApiCommandOptions,
} from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import { durationArgument, executeAtOf } from './api/times.js';
import { act, type Session } from './command.js';
import { CommandFailure } from './terminal.js';

interface Options extends ApiCommandOptions {
  readonly ifVersion: string;
  readonly executeAt?: string;
  readonly in?: number;
  readonly notAfter?: string;
}

/** `payments reschedule`: gives a scheduled payment another time. */
export function addReschedule(program: Command, session: Session): void {
  const command = addApiCommand(program, {
    name: 'reschedule',
    summary: 'Give a scheduled payment another time. Without --not-after its deadline moves along.',
    example: 'reschedule pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk --if-version 1 --in 2h',
  })
    .argument('<payment>', 'id of the payment', paymentIdArgument)
    .requiredOption(
      '--if-version <n>',
      'the version you saw: another change in between refuses',
      versionArgument,
    )
    .option('--execute-at <time>', 'RFC 3339 with an offset, or now')
    .option('--in <duration>', "10s, 5m, 2h, 30d from this machine's clock", durationArgument)
    .option('--not-after <time>', 'the new deadline');
  act(command, session, async (id: string, options: Options) => {
    const executeAt = executeAtOf(options, wallMs());
    if (executeAt === null) throw new CommandFailure(2, 'Give either --execute-at or --in, and not both.');
    const payment = await movePayment(apiTarget(session.terminal, options, 'client'), {
      id,
      operation: 'reschedule',
      ifVersion: options.ifVersion,
      body: { execute_at: executeAt, not_after: options.notAfter },
    });
    return printPayment(session, options, {
      payment,
      says: `${payment.id} is due at ${payment.execute_at}.`,
    });
  });
}
