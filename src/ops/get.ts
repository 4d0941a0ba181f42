import type { Command } from 'commander';
import { callApi } from './api/api-client.js';
import { addApiCommand, paymentIdArgument, printPayment, type ApiCommandOptions } from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import type { Payment } from './api/payment-table.js';
import { act, type Session } from './command.js';

/** `payments get`: one payment as it is now. */
export function addGet(program: Command, session: Session): void {
  const command = addApiCommand(program, {
    name: 'get',
    summary: 'Show one payment as it is now.',
    example: 'get pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk',
  }).argument('<payment>', 'id of the payment', paymentIdArgument);
  act(command, session, async (id: string, options: ApiCommandOptions) => {
    const target = apiTarget(session.terminal, options, 'client');
    const { body } = await callApi<Payment>(target, { method: 'GET', path: `/v1/payments/${id}` });
    return printPayment(session, options, { payment: body, says: `${body.id} is ${body.state}.` });
  });
}
