import { InvalidArgumentError, type Command } from 'commander';
import { callApi } from './api/api-client.js';
import { addApiCommand, paymentIdArgument, printPayment, versionArgument } from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import type { Payment } from './api/payment-table.js';
import { addPersonOption, personKey, type PersonOptions } from './api/person-option.js';
import { act, type Session } from './command.js';

const USUAL = 'approver-1';

function resolutionArgument(text: string): string {
  if (/^[0-9a-f-]{36}$/.test(text)) return text;
  throw new InvalidArgumentError('A proposal is named as payments resolve printed it.');
}

/** `payments approve`: the second person; the payment moves. */
export function addApprove(program: Command, session: Session): void {
  const command = addApiCommand(program, {
    name: 'approve',
    summary: "Approve another person's proposal: the payment moves by it.",
    example: 'approve pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk 019b1f0a-0000-7000-8000-000000000000',
  })
    .argument('<payment>', 'id of the payment', paymentIdArgument)
    .argument('<proposal>', 'id of the proposal', resolutionArgument)
    .option('--if-version <n>', 'refuse when the payment has changed since this version', versionArgument);
  addPersonOption(command, USUAL);
  act(
    command,
    session,
    async (id: string, proposal: string, options: PersonOptions & { readonly ifVersion?: string }) => {
      const target = apiTarget(session.terminal, options, personKey(options, USUAL));
      const { body: payment } = await callApi<Payment>(target, {
        method: 'POST',
        path: `/v1/payments/${id}/resolutions/${proposal}/approve`,
        headers: options.ifVersion === undefined ? {} : { 'if-match': options.ifVersion },
      });
      return printPayment(session, options, {
        payment,
        says: `Approved. ${payment.id} is ${payment.state}.`,
      });
    },
  );
}
